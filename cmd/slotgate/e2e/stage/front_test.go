package stage

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestFrontMakesTrouble(t *testing.T) {
	const body = `{"data":{"booking_id":1}}`
	for _, c := range []struct {
		trouble Trouble
		status  int // 0: no answer
		work    int64
	}{
		{None, 201, 1}, {Cut, 0, 1}, {Error, 500, 1}, {Garbage, 0, 1}, {Stray, 201, 1}, {Silence, 0, 1},
		{Hang, 0, 0}, {Overload, 503, 0}, {Throttled, 503, 0},
	} {
		t.Run(string(c.trouble), func(t *testing.T) {
			var work atomic.Int64
			front := StartFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				work.Add(1)
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, body)
			}))
			front.Make(c.trouble)
			answered := make(chan Answer, 1)
			go func() { answered <- Send("POST", front.URL(), `{}`) }()
			if c.trouble == Hang || c.trouble == Silence {
				Eventually(t, 10*time.Second, func() string {
					if front.Met() == 0 || work.Load() != c.work {
						return "the request is not there"
					}
					return ""
				})
				select {
				case a := <-answered:
					t.Fatalf("answered: %v", a)
				default:
				}
				front.Make(None)
			}
			a := <-answered
			if a.Err != nil != (c.status == 0) || a.Err == nil && a.Status != c.status {
				t.Errorf("answered %v, want status %d", a, c.status)
			}
			if c.status == 201 && string(a.Body) != body {
				t.Errorf("body %s", a.Body)
			}
			if after := a.Header.Get("Retry-After"); (after != "") != (c.trouble == Throttled) {
				t.Errorf("Retry-After %q", after)
			}
			if n := work.Load(); n != c.work {
				t.Errorf("the handler worked %d times, want %d", n, c.work)
			}
			front.Make(None)
			if a := Send("POST", front.URL(), `{}`); a.Status != 201 {
				t.Errorf("after the trouble: %v", a)
			}
		})
	}
}

func TestFrontRefuses(t *testing.T) {
	front := StartFront(t, http.NotFoundHandler())
	for range 3 {
		if a := Send("POST", front.URL(), ""); a.Status != 404 {
			t.Fatalf("open: %v", a)
		}
		front.Refuse(true)
		// A connection that was idle may still be there for one request, and end with it.
		Eventually(t, 10*time.Second, func() string {
			if a := Send("POST", front.URL(), ""); !errors.Is(a.Err, syscall.ECONNREFUSED) {
				return a.String()
			}
			return ""
		})
		front.Refuse(false)
	}
}
