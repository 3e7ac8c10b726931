package storm

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// target is one URL to send to, with the requests for it compiled down to
// templates of the bytes on the wire.
type target struct {
	origin
	authority string
	base      string   // scheme://authority
	path      template // request target
	head      template // request line and fields, up to the length of the body
	body      template
	// lengthAlways sends Content-Length: 0 too, as RFC 9110 section 8.6 asks
	// of methods that expect a body.
	lengthAlways bool
	slot         part
	spread       bool // slot is set
}

// compile makes the targets of o.
func compile(o Options) ([]target, error) {
	body, err := parseTemplate(o.Body)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	fields, err := compileHeader(o.Header)
	if err != nil {
		return nil, err
	}
	targets := make([]target, len(o.Targets))
	namesKey := body.namesKey() || fields.namesKey()
	for i, text := range o.Targets {
		if targets[i], err = parseTarget(text, o.TLS); err != nil {
			return nil, fmt.Errorf("url %q: %w", text, err)
		}
		namesKey = namesKey || targets[i].path.namesKey()
	}
	if !fields.has("User-Agent") {
		fields.add("User-Agent", template{{literal: "slotgate-storm"}})
	}
	if o.Body != "" && !fields.has("Content-Type") {
		fields.add("Content-Type", template{{literal: contentType(o.Body)}})
	}
	if o.repeats() > 0 && !namesKey {
		fields.add("Idempotency-Key", template{{field: keyField}})
	}
	for i := range targets {
		targets[i].compile(o.Method, fields, body)
	}
	return targets, nil
}

// parseTarget splits a URL template. Only what follows the authority may hold
// placeholders, since a storm keeps its connections.
func parseTarget(text string, config *tls.Config) (target, error) {
	whole, err := parseTemplate(text)
	if err != nil {
		return target{}, err
	}
	sample, _, _ := strings.Cut(string(whole.append(nil, values{})), "#")
	if scheme, _, found := strings.Cut(strings.ToLower(sample), "://"); !found || scheme != "http" && scheme != "https" {
		return target{}, errors.New("must begin with http:// or https://")
	}
	u, err := url.Parse(sample)
	if err != nil {
		var reason *url.Error
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return target{}, err
	}
	switch {
	case u.Hostname() == "":
		return target{}, errors.New("has no host")
	case u.User != nil:
		return target{}, errors.New("must not hold a password: give an Authorization header")
	}
	base := u.Scheme + "://" + u.Host
	rest, literal := cutPrefixFold(text, base)
	if !literal {
		return target{}, errors.New("placeholders may stand only after the host")
	}
	rest, _, _ = strings.Cut(rest, "#")
	if !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	t := target{origin: origin{address: net.JoinHostPort(u.Hostname(), port)}, authority: u.Host, base: base}
	if t.path, err = parseTemplate(rest); err != nil {
		return target{}, err
	}
	for i := range t.path {
		t.path[i].literal = percentEncode(t.path[i].literal)
	}
	if u.Scheme == "https" {
		t.tls = config.Clone()
		if t.tls == nil {
			t.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		t.tls.NextProtos = []string{"http/1.1"}
		if t.tls.ServerName == "" {
			t.tls.ServerName = u.Hostname()
		}
	}
	return t, nil
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}

// percentEncode encodes what may not stand in a request line and leaves the
// rest, escapes among it, as the user wrote it.
func percentEncode(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (t *target) compile(method string, h header, body template) {
	t.head = append(t.head, part{literal: method + " "})
	t.head = append(t.head, t.path...)
	t.head = append(t.head, part{literal: " HTTP/1.1\r\n"})
	if !h.has("Host") {
		t.head = append(t.head, part{literal: "Host: " + t.authority + "\r\n"})
	}
	for _, f := range h {
		t.head = append(t.head, part{literal: f.name + ": "})
		t.head = append(t.head, f.value...)
		t.head = append(t.head, part{literal: "\r\n"})
	}
	t.body = body
	t.lengthAlways = method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
	if t.slot, t.spread = t.path.slot(true); !t.spread {
		t.slot, t.spread = body.slot(false)
	}
}

// append renders the whole request to dst. It returns scratch too, which it
// grows to hold the body.
func (t *target) append(dst, scratch []byte, v values) (request, body []byte) {
	body = t.body.append(scratch[:0], v)
	dst = t.head.append(dst, v)
	if len(body) > 0 || t.lengthAlways {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(body)), 10)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	return append(dst, body...), body
}

// slotOf is the slot that a request is for, -1 when the templates name none.
func (t *target) slotOf(v values) int64 {
	if !t.spread {
		return -1
	}
	return int64(t.slot.number(v))
}

func (t *target) url(v values) string {
	return string(t.path.append([]byte(t.base), v))
}

// header is a list of fields in the order given.
type header []headerField

type headerField struct {
	name  string
	value template
}

func (h *header) add(name string, value template) { *h = append(*h, headerField{name, value}) }

func (h header) has(name string) bool {
	for _, f := range h {
		if strings.EqualFold(f.name, name) {
			return true
		}
	}
	return false
}

func (h header) namesKey() bool {
	for _, f := range h {
		if f.value.namesKey() {
			return true
		}
	}
	return false
}

func compileHeader(lines []string) (header, error) {
	var h header
	for _, line := range lines {
		name, text, found := strings.Cut(line, ":")
		if !found || !isToken(name) {
			return nil, fmt.Errorf("header %q: write it as \"Name: value\"", line)
		}
		switch textproto.CanonicalMIMEHeaderKey(name) {
		case "Content-Length", "Transfer-Encoding", "Expect", "Upgrade":
			return nil, fmt.Errorf("header %q: the storm frames its requests itself", line)
		}
		text = strings.Trim(text, " \t")
		if strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0 {
			return nil, fmt.Errorf("header %q: has a control character", line)
		}
		value, err := parseTemplate(text)
		if err != nil {
			return nil, fmt.Errorf("header %q: %w", line, err)
		}
		h.add(name, value)
	}
	return h, nil
}

// isToken reports whether text is a token of RFC 9110 section 5.6.2.
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return text != ""
}

// contentType guesses what a body without a label is, as people mean it.
func contentType(body string) string {
	if start := strings.TrimLeft(body, " \t\r\n"); strings.HasPrefix(start, "{") || strings.HasPrefix(start, "[") {
		return "application/json"
	}
	return "application/x-www-form-urlencoded"
}
