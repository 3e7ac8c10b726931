package issue

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// cache is a shared cache before the gate that stores all that RFC 9111, section 3, lets
// it, and gives it to everybody. It goes by Cookie where Vary says so.
type cache struct {
	next http.Handler

	mu     sync.Mutex
	stored map[string]*httptest.ResponseRecorder
}

func startCache(t *testing.T, gate string) string {
	t.Helper()
	to, err := url.Parse(gate)
	if err != nil {
		t.Fatal(err)
	}
	return stage.Serve(t, &cache{next: httputil.NewSingleHostReverseProxy(to), stored: map[string]*httptest.ResponseRecorder{}})
}

func (c *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, byCookie := r.URL.Path, r.URL.Path+"\n"+r.Header.Get("Cookie")
	c.mu.Lock()
	answer := c.stored[byCookie]
	if answer == nil {
		answer = c.stored[name]
	}
	c.mu.Unlock()
	if answer == nil || r.Method != http.MethodGet {
		answer = httptest.NewRecorder()
		c.next.ServeHTTP(answer, r)
		said := strings.ToLower(answer.Header().Get("Cache-Control"))
		if r.Method == http.MethodGet && answer.Code == 200 && !strings.Contains(said, "private") && !strings.Contains(said, "no-store") {
			if strings.Contains(answer.Header().Get("Vary"), "Cookie") {
				name = byCookie
			}
			c.mu.Lock()
			c.stored[name] = answer
			c.mu.Unlock()
		}
	}
	for field, lines := range answer.Header() {
		w.Header()[field] = lines
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(bytes.Clone(answer.Body.Bytes()))
}

// TestNoCacheGivesAnIDToOthers: two people come by a shared cache, to pages that say this
// and that to it.
func TestNoCacheGivesAnIDToOthers(t *testing.T) {
	for said, issues := range map[string]bool{
		"":                                        true,
		"Cache-Control: private":                  true,
		"Cache-Control: no-store":                 true,
		"Cache-Control: no-cache":                 true,
		"Expires: 0":                              true,
		"Cache-Control: max-age=60":               false,
		"Cache-Control: public":                   false,
		"Cache-Control: s-maxage=5":               false,
		"Expires: Fri, 01 Jan 2100 00:00:00 GMT":  false,
		"Cache-Control: max-age=60\nVary: Cookie": false,
		"Cache-Control: private\nCDN-Cache-Control: max-age=60": false,
	} {
		t.Run(said, func(t *testing.T) {
			site, backend := startSite(t)
			if said != "" {
				site.cache = strings.Split(said, "\n")
			}
			gate := stage.StartGate(t, config(backend, stage.MemoryStore, issuing))
			by := startCache(t, gate.URL)
			one, two := newBrowser(t), newBrowser(t)
			one.open(by, "1")
			two.open(by, "1")
			first, second := one.id(by, "1"), two.id(by, "1")
			if first != "" && first == second {
				t.Fatalf("both have %q", first)
			}
			if (first != "") != issues || (second != "") != issues {
				t.Errorf("issued %q and %q", first, second)
			}
			want(t, one.book(by, "1", "ann"), 201, "admitted")
			want(t, two.book(by, "1", "bob"), 201, "admitted")
		})
	}
}
