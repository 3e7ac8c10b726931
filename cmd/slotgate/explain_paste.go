package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// readRequestFile reads a request in whichever of three forms it stands: a curl line,
// a HAR file or entry, or HTTP itself.
func readRequestFile(name string, entry int, stdin io.Reader) (raw []byte, notes []string, err error) {
	var text []byte
	if name == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, nil, err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // editors write it
	switch trimmed := bytes.TrimPrefix(bytes.TrimSpace(text), []byte("$ ")); {
	case len(trimmed) == 0:
		return nil, nil, fmt.Errorf("%s is empty", name)
	case trimmed[0] == '{':
		return fromHAR(trimmed, entry)
	case bytes.HasPrefix(trimmed, []byte("curl ")), bytes.HasPrefix(trimmed, []byte("curl.exe ")):
		line := string(trimmed)
		if bytes.Contains(trimmed, []byte(`^"`)) {
			line = uncaret(line)
		}
		words, err := shellWords(line)
		if err != nil {
			return nil, nil, err
		}
		var c curlRequest
		if err := c.parse(words[1:]); err != nil {
			return nil, nil, err
		}
		raw, err := c.bytes()
		return raw, nil, err
	}
	if first, _, _ := bytes.Cut(text, []byte("\n")); !bytes.Contains(first, []byte(" HTTP/")) {
		return nil, nil, fmt.Errorf("%s has no curl line, no HAR file and no HTTP request, which begins like GET /path HTTP/1.1", name)
	}
	return fromRaw(text)
}

// notHTTP1 is the first line of a request as browsers and proxies show those of later
// versions, which have none.
var notHTTP1 = regexp.MustCompile(`^\S+ \S+ HTTP/[23](\.0)?\r?\n`)

// fromRaw takes HTTP/1 as it is, unless its lines end as those of text files do: then it
// has been through an editor, and is put right. So is what cannot have been on the wire.
func fromRaw(text []byte) (raw []byte, notes []string, err error) {
	if bytes.Contains(text, []byte("\r\n")) {
		if !notHTTP1.Match(text) {
			return text, nil, nil
		}
		head, body, _ := bytes.Cut(text, []byte("\r\n\r\n"))
		text = slices.Concat(bytes.ReplaceAll(head, []byte("\r\n"), []byte("\n")), []byte("\n\n"), body)
	}
	head, body, found := bytes.Cut(text, []byte("\n\n"))
	if !found {
		head = bytes.TrimRight(head, "\n")
	}
	lines := strings.Split(string(head), "\n")
	if words := strings.Fields(lines[0]); len(words) == 3 && (words[2] == "HTTP/2" || words[2] == "HTTP/3" || words[2] == "HTTP/2.0") {
		lines[0] = words[0] + " " + words[1] + " HTTP/1.1"
		notes = append(notes, words[2]+" was taken for HTTP/1.1")
	}
	framed := false
	for _, line := range lines[1:] {
		field, _, _ := strings.Cut(line, ":")
		framed = framed || strings.EqualFold(field, "Content-Length") || strings.EqualFold(field, "Transfer-Encoding")
	}
	if !framed && len(body) > 0 {
		body = bytes.TrimSuffix(body, []byte("\n"))
		lines = append(lines, fmt.Sprintf("Content-Length: %d", len(body)))
		notes = append(notes, "a Content-Length was added, the request has none")
	}
	return append([]byte(strings.Join(lines, "\r\n")+"\r\n\r\n"), body...), notes, nil
}

// harRequest is what HAR 1.2 has of a request.
type harRequest struct {
	Method  string `json:"method"`
	URL     string `json:"url"`
	Headers []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"headers"`
	PostData *struct {
		MimeType string `json:"mimeType"`
		Text     string `json:"text"`
		Params   []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"params"`
	} `json:"postData"`
}

// fromHAR reads a HAR file, one of its entries, or one entry's request.
func fromHAR(text []byte, entry int) (raw []byte, notes []string, err error) {
	var har struct {
		Log *struct {
			Entries []struct {
				Request *harRequest `json:"request"`
			} `json:"entries"`
		} `json:"log"`
		Request *harRequest `json:"request"`
		harRequest
	}
	if err := json.Unmarshal(text, &har); err != nil {
		return nil, nil, fmt.Errorf("this begins as a HAR file and is none: %w", err)
	}
	r := har.Request
	switch {
	case har.Log != nil:
		if entry < 1 || entry > len(har.Log.Entries) {
			return nil, nil, fmt.Errorf("the HAR file has %d requests, and --entry is %d", len(har.Log.Entries), entry)
		}
		if r = har.Log.Entries[entry-1].Request; len(har.Log.Entries) > 1 {
			notes = append(notes, fmt.Sprintf("request %d of %d in the HAR file; --entry N takes another", entry, len(har.Log.Entries)))
		}
	case r == nil:
		r = &har.harRequest
	}
	if r == nil || r.URL == "" || r.Method == "" {
		return nil, nil, errors.New("this begins as a HAR file and has no request with method and url")
	}
	c := curlRequest{method: r.Method, url: r.URL}
	for _, h := range r.Headers {
		switch strings.ToLower(h.Name) {
		case "content-length", "connection", "transfer-encoding": // of the recorded connection
		default:
			if !strings.HasPrefix(h.Name, ":") { // HTTP/2's own
				c.headers = append(c.headers, h.Name+": "+h.Value)
			}
		}
	}
	if r.PostData != nil && r.PostData.Text == "" && len(r.PostData.Params) > 0 {
		if !strings.HasPrefix(strings.ToLower(r.PostData.MimeType), "application/x-www-form-urlencoded") {
			return nil, nil, fmt.Errorf("the HAR file has the fields of a body of %s, and not the body: record it with its text", r.PostData.MimeType)
		}
		var fields []string
		for _, p := range r.PostData.Params {
			fields = append(fields, url.QueryEscape(p.Name)+"="+url.QueryEscape(p.Value))
		}
		r.PostData.Text = strings.Join(fields, "&")
		notes = append(notes, "the body was made of the form's fields, which are all that the HAR file has")
	}
	if r.PostData != nil && r.PostData.Text != "" {
		_ = c.add(r.PostData.Text, true, true)
		if r.PostData.MimeType != "" && !c.says("Content-Type:") {
			c.headers = append(c.headers, "Content-Type: "+r.PostData.MimeType)
		}
	}
	raw, err = c.bytes()
	return raw, notes, err
}

// carets are those with which a browser writes a line for Windows' cmd: one stands before
// whatever cmd would read, at the end of a line for its going on, and for a line's end that
// is meant there are two.
var carets = regexp.MustCompile(`\^(\r?\n\r?\n|\r?\n|.)`)

// uncaret takes a line for cmd to one whose words are quoted alike.
func uncaret(line string) string {
	return carets.ReplaceAllStringFunc(line, func(escape string) string {
		switch strings.Count(escape, "\n") {
		case 2:
			return "\n"
		case 1:
			return " "
		}
		return escape[1:]
	})
}

// shellWords splits a command line as a POSIX shell does, without expanding anything:
// browsers quote what they copy. $'…' is read too, as bash does.
func shellWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	open := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		case c == '\\':
			if i++; i < len(line) && line[i] == '\r' && i+1 < len(line) && line[i+1] == '\n' {
				i++
			}
			if i < len(line) && line[i] != '\n' {
				word.WriteByte(line[i])
				open = true
			}
		case c == '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return nil, errors.New("a ' of the curl line is not closed")
			}
			word.WriteString(line[i+1 : i+1+end])
			i += end + 1
			open = true
		case c == '"', c == '$' && i+1 < len(line) && line[i+1] == '\'':
			read, n, err := quoted(line[i:])
			if err != nil {
				return nil, err
			}
			word.WriteString(read)
			i += n - 1
			open = true
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

// quoted reads "…" or $'…' at the beginning of a text, and tells how long it is there.
func quoted(text string) (read string, length int, err error) {
	var b strings.Builder
	ansi := text[0] == '$'
	i, end := 1, byte('"')
	if ansi {
		i, end = 2, '\''
	}
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c == end:
			return b.String(), i + 1, nil
		case c != '\\' || i+1 == len(text):
			b.WriteByte(c)
		case ansi:
			n := ansiEscape(&b, text[i:])
			i += n - 1
		default:
			if i++; strings.IndexByte("\"\\$`", text[i]) < 0 && text[i] != '\n' {
				b.WriteByte('\\')
			}
			if text[i] != '\n' {
				b.WriteByte(text[i])
			}
		}
	}
	return "", 0, fmt.Errorf("a %c of the curl line is not closed", end)
}

// ansiEscape writes what one escape of $'…' stands for, and returns its length.
func ansiEscape(b *strings.Builder, text string) int {
	digits := func(from, most int, base int) (value, n int) {
		for n < most && from+n < len(text) {
			d := strings.IndexByte("0123456789abcdef", text[from+n]|0x20)
			if d < 0 || d >= base {
				break
			}
			value, n = value*base+d, n+1
		}
		return value, n
	}
	switch c := text[1]; c {
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r':
		b.WriteByte('\r')
	case 'x':
		value, n := digits(2, 2, 16)
		b.WriteByte(byte(value))
		return 2 + n
	case 'u':
		value, n := digits(2, 4, 16)
		b.WriteRune(rune(value))
		return 2 + n
	default:
		b.WriteByte(c)
	}
	return 2
}
