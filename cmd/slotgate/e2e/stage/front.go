package stage

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
)

// Trouble is what a Front does to a POST.
type Trouble string

// The troubles. In the first four the handler has done its work.
const (
	None      Trouble = ""
	Cut       Trouble = "cut"       // the head and half of the body, then the connection ends
	Error     Trouble = "error"     // 500
	Garbage   Trouble = "garbage"   // bytes that are no HTTP, then the connection ends
	Stray     Trouble = "stray"     // the answer, and behind it another that nobody asked for
	Silence   Trouble = "silence"   // work done, no answer while the trouble lasts
	Hang      Trouble = "hang"      // no work, no answer while the trouble lasts
	Overload  Trouble = "overload"  // no work, 503
	Throttled Trouble = "throttled" // no work, 503 with Retry-After
)

// StrayBody is the body of the answer that Stray adds.
const StrayBody = `{"data":{"booking_id":999999,"student_id":"stray"}}`

// ErrorBody is the body of an Error.
const ErrorBody = "the database is on fire"

// Front stands before a handler and misbehaves on demand, as a backend or the
// network before it might. Without trouble it adds nothing. Safe for concurrent
// use.
type Front struct {
	t       testing.TB
	handler http.Handler
	addr    string
	web     *http.Server
	serving sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while refusing
	trouble  Trouble
	over     chan struct{} // closed when trouble ends
	met      int           // requests that met a trouble
}

// StartFront serves handler on a free loopback port until the test ends.
func StartFront(t testing.TB, handler http.Handler) *Front {
	t.Helper()
	f := &Front{t: t, handler: handler, addr: "127.0.0.1:" + strconv.Itoa(testbed.FreePort(t)), over: make(chan struct{})}
	f.web = &http.Server{Handler: f, ReadHeaderTimeout: 10 * time.Second}
	t.Cleanup(func() {
		f.Make(None)
		f.web.Close()
		f.serving.Wait()
	})
	f.Refuse(false)
	return f
}

// URL returns where it serves.
func (f *Front) URL() string { return "http://" + f.addr }

// Refuse with true has new connections refused by the kernel; requests under way
// end, idle connections at once. With false it listens again, at the same port.
func (f *Front) Refuse(refuse bool) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.web.SetKeepAlivesEnabled(!refuse)
	if refuse == (f.listener == nil) {
		return
	}
	if refuse {
		f.listener.Close()
		f.listener = nil
		return
	}
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		f.t.Errorf("stage: front: %v", err)
		return
	}
	f.listener = listener
	f.serving.Go(func() { _ = f.web.Serve(listener) })
}

// Make begins a trouble and ends the one before it.
func (f *Front) Make(trouble Trouble) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.over)
	f.trouble, f.over = trouble, make(chan struct{})
}

// Met returns how many requests have met a trouble.
func (f *Front) Met() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.met
}

func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	trouble, over := f.current(r)
	if trouble == None {
		f.handler.ServeHTTP(w, r)
		return
	}
	switch trouble {
	case Hang:
		wait(over, r)
		panic(http.ErrAbortHandler) // the connection ends without an answer
	case Throttled:
		w.Header().Set("Retry-After", "1")
		fallthrough
	case Overload:
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
		return
	}
	// The work is not tied to the client's patience.
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	done := httptest.NewRecorder()
	f.handler.ServeHTTP(done, r)
	switch trouble {
	case Silence:
		wait(over, r)
		panic(http.ErrAbortHandler)
	case Error:
		http.Error(w, ErrorBody, http.StatusInternalServerError)
	default:
		answerWrongly(w, done, trouble)
	}
}

func (f *Front) current(r *http.Request) (trouble Trouble, over <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trouble == None || r.Method != http.MethodPost {
		return None, nil
	}
	f.met++
	return f.trouble, f.over
}

// wait lasts until the trouble is over or the client has left.
func wait(over <-chan struct{}, r *http.Request) {
	select {
	case <-over:
	case <-r.Context().Done():
	}
}

// answerWrongly writes to the connection itself, and closes it unless the trouble
// is that bytes follow on a connection that lives.
func answerWrongly(w http.ResponseWriter, done *httptest.ResponseRecorder, trouble Trouble) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the client has left
	}
	defer conn.Close()
	answer := done.Result()
	answer.ContentLength = int64(done.Body.Len())
	var whole bytes.Buffer
	_ = answer.Write(&whole) // a buffer takes it
	switch trouble {
	case Cut:
		whole.Truncate(whole.Len() - done.Body.Len()/2)
	case Garbage:
		whole.Reset()
		whole.WriteString("\x16\x03\x01\x00\xa5 500 not http at all\r\n\r\n")
	case Stray:
		whole.WriteString("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: " +
			strconv.Itoa(len(StrayBody)) + "\r\n\r\n" + StrayBody)
	}
	_, _ = conn.Write(whole.Bytes()) // the gate may have left
	if trouble == Stray {
		// A gate that would use the connection again finds it open.
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
		_, _ = io.Copy(io.Discard, conn)
	}
}
