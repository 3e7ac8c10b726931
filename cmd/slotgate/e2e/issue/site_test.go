package issue

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/issue"
)

// website has a page for each lesson, with a form that books it. It books every form that
// comes, also twice.
type website struct {
	mu       sync.Mutex
	booked   map[string]int // by lesson and student
	cookies  []string       // Cookie lines that it has seen
	cache    []string       // what pages say to caches, "Name: value"
	redirect bool           // bookings lead to the page
	sessions int            // that were begun
	hold     chan struct{}  // bookings wait until it is closed; nil: they do not
	inside   chan struct{}  // gets one for each that waits
}

func startSite(t *testing.T) (*website, string) {
	t.Helper()
	s := &website{booked: map[string]int{}, inside: make(chan struct{}, 100)}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /lessons/{lesson}", s.page)
	routes.HandleFunc("POST /lessons/{lesson}/book", s.book)
	return s, stage.Serve(t, routes)
}

func (s *website) page(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cookies = append(s.cookies, r.Header["Cookie"]...)
	if _, err := r.Cookie("session"); err != nil {
		s.sessions++
		http.SetCookie(w, &http.Cookie{Name: "session", Value: fmt.Sprintf("s%d", s.sessions), Path: "/"})
	}
	for _, line := range s.cache {
		name, value, _ := strings.Cut(line, ": ")
		w.Header().Add(name, value)
	}
	w.Header().Set("ETag", `"page"`)
	if r.Header.Get("If-None-Match") == `"page"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	fmt.Fprintf(w, "<form method=post action=/lessons/%s/book><input name=student></form>", r.PathValue("lesson"))
}

func (s *website) book(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.cookies = append(s.cookies, r.Header["Cookie"]...)
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		s.inside <- struct{}{}
		<-hold
	}
	what := r.PathValue("lesson") + " " + r.FormValue("student")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.booked[what]++
	if s.redirect {
		http.Redirect(w, r, "/lessons/"+r.PathValue("lesson"), http.StatusSeeOther)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "booked %s, number %d", what, s.booked[what])
}

func (s *website) set(change func(*website)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// bookings is how often a student was booked for a lesson.
func (s *website) bookings(lesson, student string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.booked[lesson+" "+student]
}

// sawOwnCookies returns a Cookie line with a cookie of the gate's, "" none.
func (s *website) sawOwnCookies() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.cookies, func(line string) bool { return strings.Contains(line, "sg_rid") }); i >= 0 {
		return s.cookies[i]
	}
	return ""
}

// config is that of a gate before the site; settings are those of idempotency.
func config(backend, store, settings string) string {
	return `
upstream: { url: "` + backend + `" }
store: { ` + store + ` }
pools:
  lessons: { capacity: 1000 }
rules:
  - name: book-lesson
    match: { methods: [POST], path: "/lessons/{lesson}/book" }
    action: book
    pool: lessons
    slot: path:lesson
    subject: form:student
    outcomes: [{ when: { status: 303 }, is: booked }]
    idempotency: { scope: cookie:session, ` + settings + ` }
`
}

const issuing = `issue: { on: "GET /lessons/{lesson}", cookie: sg_rid }`

// browser is one person's, with any number of tabs: they share its cookies.
type browser struct {
	t      *testing.T
	client *http.Client
	jar    http.CookieJar
	fields []string // of every request, "Name: value"
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, jar: jar, client: &http.Client{Jar: jar, Timeout: 60 * time.Second}}
}

// answer is a response with its body read.
type answer struct {
	status   int
	decision string
	header   http.Header
	body     string
}

func (b *browser) send(method, url, body string, fields ...string) answer {
	req, err := http.NewRequest(method, url, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		b.t.Error(err)
		return answer{}
	}
	req.ContentLength = int64(len(body))
	if body == "" {
		req.Body = http.NoBody
	} else {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, line := range append(slices.Clone(b.fields), fields...) {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Error(err)
		return answer{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Error(err)
	}
	return answer{resp.StatusCode, resp.Header.Get("Gate-Decision"), resp.Header, string(text)}
}

// open fetches the page of a lesson.
func (b *browser) open(gate, lesson string, fields ...string) answer {
	return b.send("GET", gate+"/lessons/"+lesson, "", fields...)
}

// book sends the form of a page.
func (b *browser) book(gate, lesson, student string) answer {
	return b.send("POST", gate+"/lessons/"+lesson+"/book", "student="+student)
}

// cookie is the name of a lesson's.
func cookie(lesson string) string {
	return issue.Binding{Cookie: "sg_rid", Group: "book-lesson", Pool: "lessons", Slot: lesson}.Name()
}

// id is what the browser has for a lesson, "" nothing.
func (b *browser) id(gate, lesson string) string {
	for _, c := range b.jar.Cookies(b.at(gate)) {
		if c.Name == cookie(lesson) {
			return c.Value
		}
	}
	return ""
}

// setID puts something else in its place.
func (b *browser) setID(gate, lesson, value string) {
	b.jar.SetCookies(b.at(gate), []*http.Cookie{{Name: cookie(lesson), Value: value, Path: "/"}})
}

func (b *browser) at(gate string) *url.URL {
	u, err := url.Parse(gate)
	if err != nil {
		b.t.Fatal(err)
	}
	return u
}

func want(t *testing.T, a answer, status int, decision string) answer {
	t.Helper()
	if a.status != status || a.decision != decision {
		t.Fatalf("got %d %s %q, want %d %s", a.status, a.decision, a.body, status, decision)
	}
	return a
}
