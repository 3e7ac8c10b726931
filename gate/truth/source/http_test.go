package source

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// backendSource is a source whose path is /lessons/{slot} and whose value json:/data/remain.
func backendSource(t *testing.T, url string, change ...func(*rules.TruthConfig, *Options)) Source {
	t.Helper()
	cfg := &rules.TruthConfig{HTTP: &rules.HTTPSource{
		Path: "/lessons/{slot}", Value: pointer("/data/remain"), Means: rules.MeansRemaining,
	}}
	o := Options{URL: url}
	for _, c := range change {
		c(cfg, &o)
	}
	return open(t, cfg, o)
}

func pointer(p string) rules.Extractor { return rules.Extractor{Source: rules.FromJSON, Name: p} }

// backend answers every request with the same status and body.
func backend(t *testing.T, status int, body string) string {
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func TestHTTPValues(t *testing.T) {
	for _, test := range []struct {
		body string
		want Value
		says string
	}{
		{`{"data":{"remain":7}}`, left(7), ""},
		{`{"data":{"remain":7.0}}`, left(7), ""},
		{`{"data":{"remain":70e-1}}`, left(7), ""},
		{`{"data":{"remain":"7"}}`, left(7), ""},
		{`{"data":{"remain":-7}}`, left(-7), ""},
		{`{"data":{"remain":9007199254740993}}`, left(9007199254740993), ""},
		{`{"data":{"remain":9223372036854775807}}`, left(9223372036854775807), ""},
		{` {"other":[{"data":1}],"data":{"x":null,"remain":0}} `, left(0), ""},
		{`{"data":{"remain":null}}`, Value{None: true}, ""},
		{`{"data":{}}`, Value{None: true}, ""},
		{`{"data":null}`, Value{None: true}, ""},
		{`{"data":{"Remain":7}}`, Value{None: true}, ""},
		{`{}`, Value{None: true}, ""},
		{`[]`, Value{None: true}, ""},
		{`7`, Value{None: true}, ""},
		{`{"data":{"remain":7.5}}`, Value{}, "7.5"},
		{`{"data":{"remain":9223372036854775808}}`, Value{}, "64 bits"},
		{`{"data":{"remain":1e999999999}}`, Value{}, "whole"},
		{`{"data":{"remain":"seven"}}`, Value{}, "seven"},
		{`{"data":{"remain":true}}`, Value{}, "neither"},
		{`{"data":{"remain":[7]}}`, Value{}, "neither"},
		{`{"data":{"remain":{"n":7}}}`, Value{}, "neither"},
		{`{"data":{"remain":7,"remain":8}}`, Value{}, "once"},
		{`{"data":{"remain":7},"data":{"remain":8}}`, Value{}, "once"},
		{`{"data":{"remain":7}} {}`, Value{}, "JSON"},
		{`{"data":{"remain":7}`, Value{}, "JSON"},
		{`{"data":{"remain":07}}`, Value{}, "JSON"},
		{"{\"data\":{\"remain\":7,\"x\":\"\xff\"}}", Value{}, "JSON"},
		{`<html>`, Value{}, "JSON"},
		{``, Value{}, "JSON"},
		{`{"data":{"remain":7,"pad":"` + strings.Repeat("x", maxAnswer) + `"}}`, Value{}, "longer"},
		{strings.Repeat("[", 20000) + strings.Repeat("]", 20000), Value{}, "truth: http: "},
	} {
		got, err := backendSource(t, backend(t, 200, test.body)).Read(within(t, soon), "1")
		if got != test.want || (err == nil) != (test.says == "") {
			t.Errorf("%.60s is %+v (%v), want %+v", test.body, got, err, test.want)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "truth: http: ") || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%.60s: error is %q, want it to say %q", test.body, err, test.says)
		}
	}
}

func TestHTTPPointers(t *testing.T) {
	url := backend(t, 200, `{"a/b":{"~":[1,{"":2}]},"":3,"m":{"0":4},"x":{"":{"":5}}}`)
	for p, want := range map[string]Value{
		"/a~1b/~0/0": left(1), "/a~1b/~0/1/": left(2), "/": left(3), "/m/0": left(4), "/x//": left(5),
		"/a~1b/~0/2": {None: true}, "/a~1b/~0/-": {None: true}, "/a~1b/~0/00": {None: true}, "/a~1b/~0/-1": {None: true}, "/x/": {},
	} {
		s := backendSource(t, url, func(c *rules.TruthConfig, _ *Options) { c.HTTP.Value = pointer(p) })
		got, err := s.Read(within(t, soon), "1")
		if got != want || (err != nil) != (want == Value{}) {
			t.Errorf("%s is %+v (%v), want %+v", p, got, err, want)
		}
	}
	whole := backendSource(t, backend(t, 200, "7"), func(c *rules.TruthConfig, _ *Options) { c.HTTP.Value = pointer("") })
	if got := read(t, whole, "1"); got != left(7) {
		t.Errorf("the whole document is %+v, want 7 left", got)
	}
}

func TestHTTPStatuses(t *testing.T) {
	body := `{"data":{"remain":7}}`
	if got := read(t, backendSource(t, backend(t, 404, body)), "1"); got != missing {
		t.Errorf("404 is %+v, want no slot", got)
	}
	for _, status := range []int{301, 302, 304, 307, 400, 401, 403, 410, 429, 500, 502, 503} {
		got, err := backendSource(t, backend(t, status, body)).Read(within(t, soon), "1")
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(status)) {
			t.Errorf("%d is %+v (%v), want an error that names it", status, got, err)
		}
	}
}

func TestHTTPFollowsNoRedirect(t *testing.T) {
	asked := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/lessons/2", http.StatusFound)
	})
	if got, err := backendSource(t, url).Read(within(t, soon), "1"); err == nil || asked != 1 {
		t.Errorf("a redirect is %+v (%v) after %d requests, want an error after one", got, err, asked)
	}
}

func TestHTTPMeans(t *testing.T) {
	url := backend(t, 200, `{"booked":4,"seats":"10","none":null}`)
	for _, test := range []struct {
		change func(*rules.HTTPSource)
		want   Value
	}{
		{func(c *rules.HTTPSource) { c.Total.Value = pointer("/seats") }, Value{N: 6, Total: 10}},
		{func(c *rules.HTTPSource) { c.Total.Units = 3 }, Value{N: -1, Total: 3}},
		{func(c *rules.HTTPSource) { c.Total.Value = pointer("/none") }, Value{None: true}},
		{func(c *rules.HTTPSource) { c.Total.Value = pointer("/missing") }, Value{None: true}},
		{func(c *rules.HTTPSource) { c.Means = rules.MeansCapacity }, Value{N: 4, Total: 4}},
		{func(c *rules.HTTPSource) { c.Means = rules.MeansRemaining }, left(4)},
	} {
		s := backendSource(t, url, func(c *rules.TruthConfig, _ *Options) {
			c.HTTP.Means, c.HTTP.Value = rules.MeansBooked, pointer("/booked")
			test.change(c.HTTP)
		})
		if got := read(t, s, "1"); got != test.want {
			t.Errorf("%+v, want %+v", got, test.want)
		}
	}
}

// The slot is one segment, or one text of the query, whatever it holds.
func TestHTTPAsksForTheSlotExactly(t *testing.T) {
	var asked string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.RequestURI
		_, _ = io.WriteString(w, `{"data":{"remain":7}}`)
	})
	s := backendSource(t, url)
	inQuery := backendSource(t, url, func(c *rules.TruthConfig, _ *Options) { c.HTTP.Path = "/a%2Fb/lessons?id={slot}&x={slot}" })
	for slot, want := range map[string][2]string{
		"7": {"7", "7"}, "a/b": {"a%2Fb", "a%2Fb"}, "a b": {"a%20b", "a+b"}, "a+b": {"a+b", "a%2Bb"}, "?x=1&y": {"%3Fx=1&y", "%3Fx%3D1%26y"},
		"#": {"%23", "%23"}, "%": {"%25", "%25"}, "%2e%2e": {"%252e%252e", "%252e%252e"}, "é名": {"%C3%A9%E5%90%8D", "%C3%A9%E5%90%8D"},
		"a;b": {"a%3Bb", "a%3Bb"}, `a\b`: {"a%5Cb", "a%5Cb"}, "...": {"...", "..."}, "{slot}": {"%7Bslot%7D", "%7Bslot%7D"}, "a\r\nb": {"a%0D%0Ab", "a%0D%0Ab"},
	} {
		if read(t, s, slot); asked != "/lessons/"+want[0] {
			t.Errorf("slot %q is asked for as %s, want /lessons/%s", slot, asked, want[0])
		}
		if read(t, inQuery, slot); asked != "/a%2Fb/lessons?id="+want[1]+"&x="+want[1] {
			t.Errorf("slot %q is asked for as %s, want %s in the query", slot, asked, want[1])
		}
	}
	asked = ""
	for _, slot := range []string{".", "..", "a\x00b", "\xff"} {
		if got := read(t, s, slot); got != missing || asked != "" {
			t.Errorf("slot %q is %+v and asked for as %q, want that it is not", slot, got, asked)
		}
	}
}

func TestHTTPSendsItsHeaders(t *testing.T) {
	var got *http.Request
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = io.WriteString(w, `{"data":{"remain":7}}`)
	})
	s := backendSource(t, url, func(c *rules.TruthConfig, _ *Options) {
		c.HTTP.Headers = map[string]string{"authorization": "Bearer t0ken", "Host": "lessons.example"}
	})
	read(t, s, "1")
	if got.Method != "GET" || got.Header.Get("Authorization") != "Bearer t0ken" || got.Host != "lessons.example" ||
		got.Header.Get("Cache-Control") != "no-cache" || got.ContentLength != 0 {
		t.Errorf("asked with %s %v for host %s", got.Method, got.Header, got.Host)
	}
}

func TestHTTPReadsGzipWithinItsBound(t *testing.T) {
	pad := ""
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Error("gzip is not asked for")
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"data":{"remain":7,"pad":"`+pad+`"}}`)
		_ = z.Close()
	})
	s := backendSource(t, url)
	if got := read(t, s, "1"); got != left(7) {
		t.Errorf("gzip is %+v, want 7 left", got)
	}
	pad = strings.Repeat("x", 8*maxAnswer) // some KiB on the wire
	if got, err := s.Read(within(t, soon), "1"); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("a gzip bomb is %+v (%v), want an error", got, err)
	}
}

func TestHTTPEndsWithItsDeadline(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"no head": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"no end of the body": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"data":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		s := backendSource(t, serve(t, h))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		begun := time.Now()
		got, err := s.Read(ctx, "1")
		cancel()
		if err == nil || time.Since(begun) > 5*time.Second {
			t.Errorf("%s: %+v (%v) after %s, want an error after 100 ms", name, got, err, time.Since(begun))
		}
	}
}

func TestHTTPErrorsShowNoURL(t *testing.T) {
	s := backendSource(t, "http://127.0.0.1:1", func(c *rules.TruthConfig, _ *Options) { c.HTTP.Path = "/lessons/{slot}?token=s3cret" })
	if got, err := s.Read(within(t, soon), "1"); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%+v (%v), want an error that names the address and no token", got, err)
	}
}

func TestHTTPDialsAsTheUpstream(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"data":{"remain":%d}}`, r.ProtoMajor)
	})
	socket := filepath.Join(t.TempDir(), "backend.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: answer, ReadHeaderTimeout: time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	if got := read(t, backendSource(t, "unix:"+socket), "1"); got != left(1) {
		t.Errorf("over a unix socket: %+v", got)
	}

	secure := httptest.NewUnstartedServer(answer)
	secure.EnableHTTP2 = true
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that is to fail
	secure.StartTLS()
	t.Cleanup(secure.Close)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	trusting := backendSource(t, secure.URL, func(_ *rules.TruthConfig, o *Options) { o.TLS = &tls.Config{RootCAs: roots} })
	if got := read(t, trusting, "1"); got != left(1) {
		t.Errorf("over TLS: %+v, want HTTP/1.1", got)
	}
	if got, err := backendSource(t, secure.URL).Read(within(t, soon), "1"); err == nil {
		t.Errorf("a certificate that nobody vouches for is taken: %+v", got)
	}

	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	if got := read(t, backendSource(t, backend(t, 200, `{"data":{"remain":7}}`)), "1"); got != left(7) {
		t.Errorf("%+v, want that no proxy is used", got)
	}
}

func TestHTTPLooksBookingsUp(t *testing.T) {
	status := 0
	var asked string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.RequestURI
		w.WriteHeader(status)
	})
	s := backendSource(t, url, func(c *rules.TruthConfig, _ *Options) {
		c.Bookings = &rules.BookingsConfig{Path: "/lessons/{slot}/students/{subject}"}
	})
	for code, want := range map[int]bool{200: true, 204: true, 404: false} {
		status = code
		if got, err := s.(Looker).Booked(within(t, soon), "7", "ann"); got != want || err != nil {
			t.Errorf("%d means %v (%v), want %v", code, got, err, want)
		}
	}
	for _, code := range []int{302, 400, 403, 500, 503} {
		status = code
		if got, err := s.(Looker).Booked(within(t, soon), "7", "ann"); got || err == nil || !strings.Contains(err.Error(), fmt.Sprint(code)) {
			t.Errorf("%d means %v (%v), want an error that names it", code, got, err)
		}
	}
	status = 200
	if _, err := s.(Looker).Booked(within(t, soon), "{subject}", "a/b"); err != nil || asked != "/lessons/%7Bsubject%7D/students/a%2Fb" {
		t.Errorf("asked for %s (%v), want slot and subject each as one segment", asked, err)
	}
	asked = ""
	for _, subject := range []string{"..", "\x00", "\xff"} {
		if got, err := s.(Looker).Booked(within(t, soon), "7", subject); got || err != nil || asked != "" {
			t.Errorf("%q has the slot: %v (%v), asked %q, want false and no request", subject, got, err, asked)
		}
	}
	if _, ok := s.(Lister); ok {
		t.Error("an http source says that it lists bookings")
	}
	if _, ok := backendSource(t, url).(Looker); ok {
		t.Error("a source without bookings says that it looks them up")
	}
}

func TestOpenRefuses(t *testing.T) {
	http := func(value rules.Extractor) *rules.TruthConfig {
		return &rules.TruthConfig{HTTP: &rules.HTTPSource{Path: "/{slot}", Value: value, Means: rules.MeansRemaining}}
	}
	query := func(q string) *rules.TruthConfig {
		return &rules.TruthConfig{SQL: &rules.SQLSource{Driver: "sqlite", DSN: "x.db", Query: q, Means: rules.MeansRemaining}}
	}
	total := query("SELECT n FROM t WHERE a = ?")
	total.SQL.Means, total.SQL.Total.Query = rules.MeansBooked, "SELECT 1"
	bookings := query("SELECT n FROM t WHERE a = ?")
	bookings.Bookings = &rules.BookingsConfig{Query: "SELECT 1"}
	both := query("SELECT n FROM t WHERE a = ?")
	both.HTTP = http(pointer("/n")).HTTP
	for says, test := range map[string]struct {
		cfg *rules.TruthConfig
		url string
	}{
		"one of sql and http":      {&rules.TruthConfig{}, ""},
		"want one of sql and http": {both, ""},
		"http.value: want json:":   {http(rules.Extractor{Source: rules.FromHeader, Name: "N"}), "http://h"},
		"want http://host":         {http(pointer("/n")), "ftp://h"},
		"upstream.url":             {http(pointer("/n")), "http://h:x"},
		"sql.query: has no":        {query("SELECT 1"), ""},
		"sql.total.query: has no":  {total, ""},
		"bookings.query: has no":   {bookings, ""},
	} {
		s, err := Open(test.cfg, Options{URL: test.url})
		if err == nil || !strings.HasPrefix(err.Error(), "truth: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("opens %v (%v), want an error with %q", s, err, says)
		}
	}
}
