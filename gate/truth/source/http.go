package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

const (
	maxAnswer = 1 << 20 // bytes of a body, after inflation
	maxHead   = 64 << 10
)

// httpSource looks with a GET to the backend, past the gate's own rules.
type httpSource struct {
	client  *http.Client
	base    string // scheme and authority
	path    string // with {slot}
	headers map[string]string
	value   string // JSON Pointer
	total   string // JSON Pointer; read if hasTotal
	meaning meaning

	hasTotal bool
}

func openHTTP(cfg *rules.TruthConfig, o Options) (Source, error) {
	c := cfg.HTTP
	base, transport, err := newTransport(o)
	if err != nil {
		return nil, fmt.Errorf("truth: http: upstream.url: %w", err)
	}
	s := &httpSource{
		client: &http.Client{
			Transport: transport,
			// A redirect is an answer like others, and not the value.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		base: base, path: c.Path, headers: c.Headers, value: c.Value.Name,
		meaning: meaning{means: c.Means, total: c.Total.Units},
	}
	if c.Value.Source != rules.FromJSON {
		return nil, errors.New("truth: http.value: want json: and a JSON Pointer, such as json:/data/remain")
	}
	if c.Means == rules.MeansBooked && c.Total.Value.Source == rules.FromJSON {
		s.total, s.hasTotal = c.Total.Value.Name, true
	}
	if cfg.Bookings == nil {
		return s, nil
	}
	return &httpBookings{httpSource: s, path: cfg.Bookings.Path}, nil
}

// newTransport dials as gate/upstream does: to the host of the URL, never through a
// proxy, with HTTP/1.1, or to a unix socket.
func newTransport(o Options) (base string, t *http.Transport, err error) {
	dialer := &net.Dialer{}
	t = &http.Transport{
		DialContext:            dialer.DialContext,
		MaxConnsPerHost:        connections,
		MaxIdleConnsPerHost:    connections,
		IdleConnTimeout:        maxIdleTime,
		MaxResponseHeaderBytes: maxHead,
	}
	if path, ok := strings.CutPrefix(o.URL, "unix:"); ok {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
		return "http://localhost", t, nil
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", nil, errors.New("want http://host, https://host or unix:/path")
	}
	if o.TLS != nil {
		t.TLSClientConfig = o.TLS.Clone()
	}
	return u.Scheme + "://" + u.Host, t, nil
}

func (s *httpSource) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

func (s *httpSource) Read(ctx context.Context, slot string) (Value, error) {
	path, ok := fill(s.path, "{slot}", slot)
	if !ok {
		return Value{Missing: true}, nil
	}
	response, err := s.get(ctx, path)
	if err != nil {
		return Value{}, fmt.Errorf("truth: http: %w", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return Value{Missing: true}, nil
	case response.StatusCode < 200 || response.StatusCode > 299:
		return Value{}, fmt.Errorf("truth: http: the backend answers %d: want 200, or 404 for no such slot", response.StatusCode)
	}
	v, err := s.read(response.Body)
	if err != nil {
		return Value{}, fmt.Errorf("truth: http: %w", err)
	}
	return v, nil
}

// read takes the value, and the total if the answer has it, out of a body.
func (s *httpSource) read(body io.Reader) (Value, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err != nil {
		return Value{}, fmt.Errorf("read the answer: %w", err)
	}
	if len(text) > maxAnswer {
		return Value{}, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	// Stricter than encoding/json: UTF-8, and no member twice.
	if !jsontext.Value(text).IsValid() {
		return Value{}, errors.New("the answer is not JSON (RFC 8259) with each member once")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return Value{}, fmt.Errorf("the answer: %w", err)
	}
	total := store.Learned
	if s.hasTotal {
		var found bool
		if total, found, err = units(document, s.total); err != nil || !found {
			return Value{None: err == nil}, err
		}
	}
	n, found, err := units(document, s.value)
	if err != nil || !found {
		return Value{None: err == nil}, err
	}
	return s.meaning.value(n, total)
}

// units reads a number of units at a JSON Pointer; false if there is none.
func units(document any, pointer string) (int64, bool, error) {
	value, found := follow(document, pointer)
	var n int64
	var err error
	switch v := value.(type) {
	case nil:
		return 0, false, nil
	case json.Number:
		n, err = whole(v.String())
	case string:
		n, err = whole(v)
	default:
		err = errors.New("is neither a number nor text")
	}
	if err != nil {
		return 0, false, fmt.Errorf("json:%s: %w", pointer, err)
	}
	return n, found, nil
}

// follow returns what a JSON Pointer (RFC 6901) points at.
func follow(value any, pointer string) (any, bool) {
	if pointer == "" {
		return value, true
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		found := false
		switch v := value.(type) {
		case map[string]any:
			value, found = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if found = err == nil && strconv.Itoa(i) == token && i >= 0 && i < len(v); found {
				value = v[i]
			}
		}
		if !found {
			return nil, false
		}
	}
	return value, true
}

// get asks for a path. Its errors do not show the URL, which may hold a token.
func (s *httpSource) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return nil, errors.New("path: the backend's URL and this path make no URL")
	}
	request.Header.Set("User-Agent", "slotgate")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Cache-Control", "no-cache") // what is between must not answer
	for name, value := range s.headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			request.Host = value
			continue
		}
		request.Header.Set(name, value)
	}
	response, err := s.client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, err
	}
	return response, nil
}

// fill replaces names such as {slot} in a path, each with one segment, or with text
// of its query; names and values alternate. It is false if no server would read a
// value as such.
func fill(path string, pairs ...string) (string, bool) {
	segments, texts := make([]string, len(pairs)), make([]string, len(pairs))
	for i := 0; i < len(pairs); i += 2 {
		name, value := pairs[i], pairs[i+1]
		if !spellable(value) || value == "." || value == ".." {
			return "", false
		}
		segments[i], segments[i+1] = name, url.PathEscape(value)
		texts[i], texts[i+1] = name, url.QueryEscape(value)
	}
	path, query, hasQuery := strings.Cut(path, "?")
	path = strings.NewReplacer(segments...).Replace(path)
	if hasQuery {
		path += "?" + strings.NewReplacer(texts...).Replace(query)
	}
	return path, true
}

// httpBookings is an httpSource that also looks bookings up.
type httpBookings struct {
	*httpSource
	path string // with {slot} and {subject}
}

func (s *httpBookings) Booked(ctx context.Context, slot, subject string) (bool, error) {
	path, ok := fill(s.path, "{slot}", slot, "{subject}", subject)
	if !ok {
		return false, nil
	}
	response, err := s.get(ctx, path)
	if err != nil {
		return false, fmt.Errorf("truth: http: bookings: %w", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return false, nil
	case response.StatusCode < 200 || response.StatusCode > 299:
		return false, fmt.Errorf("truth: http: bookings: the backend answers %d: want 2xx, or 404 for not booked", response.StatusCode)
	}
	return true, nil
}
