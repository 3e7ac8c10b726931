package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// client does its steps one after the other. It writes each request once and repeats
// it by itself as its step says, with the same key.
type client struct {
	number  int
	arena   *arena
	history *history
	first   int // number of the round's first lesson
	web     *http.Client
	// told is the booking that it was told of last, by lesson and student.
	told map[[2]int]int64
}

func newClient(number int, a *arena, h *history, first int) *client {
	return &client{
		number: number, arena: a, history: h, first: first,
		web: &http.Client{
			Transport:     &http.Transport{DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       15 * time.Second,
		},
		told: map[[2]int]int64{},
	}
}

func (c *client) run(ctx context.Context, steps []step) {
	defer c.web.CloseIdleConnections()
	for _, s := range steps {
		if !sleep(ctx, s.at-c.history.now()) {
			return
		}
		c.do(ctx, s)
	}
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (c *client) do(ctx context.Context, s step) {
	student := fmt.Sprint("s", s.student)
	ask := call{client: c.number, action: book, lesson: c.first + s.lesson - 1, student: student, key: s.key, principal: student, gate: s.gate}
	place := [2]int{s.lesson, s.student}
	switch s.kind {
	case stepThief:
		ask.principal = "thief"
	case stepReturn, stepCancel:
		ask.action, ask.key = cancel, ""
		if s.kind == stepReturn {
			ask.cancels = c.told[place]
			delete(c.told, place)
		}
	case stepTwins:
		twin := ask
		twin.gate = (s.gate + 1) % gates
		var both sync.WaitGroup
		defer both.Wait()
		both.Go(func() { c.send(ctx, twin) })
	}
	for try := 0; ; try++ {
		got := c.send(ctx, ask)
		if got.booking != 0 && got.status == http.StatusCreated {
			c.told[place] = got.booking
		}
		if !got.mayRetry() || try == s.retries || !sleep(ctx, s.pause) {
			return
		}
		ask.gate = (ask.gate + 1) % gates
	}
}

// mayRetry tells whether a client with any patience would ask again.
func (c *call) mayRetry() bool {
	switch c.decision {
	case "in-flight", "outcome-unknown":
		return true
	}
	return c.status == 0 || c.status >= 502
}

// send does one request and records it.
func (c *client) send(ctx context.Context, ask call) call {
	got := ask
	got.began = c.history.now()
	c.exchange(ctx, &got)
	got.ended = c.history.now()
	c.history.record(got)
	return got
}

func (c *client) exchange(ctx context.Context, got *call) {
	gate := c.arena.gate(got.gate).URL
	method, url, body := http.MethodPost, fmt.Sprintf("%s/api/lessons/%d/bookings", gate, got.lesson), fmt.Sprintf(`{"student_id":%q}`, got.student)
	switch {
	case got.cancels != 0:
		method, url, body = http.MethodDelete, fmt.Sprintf("%s/api/bookings/%d", gate, got.cancels), ""
	case got.action == cancel:
		method, url, body = http.MethodDelete, fmt.Sprintf("%s/api/lessons/%d/students/%s", gate, got.lesson, got.student), ""
	}
	// A reader of no known kind keeps net/http from repeating the request.
	request, err := http.NewRequestWithContext(ctx, method, url, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		panic(err) // the URL is ours
	}
	if request.ContentLength = int64(len(body)); body == "" {
		request.Body = http.NoBody
	} else {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", got.key)
	}
	request.Header.Set("Authorization", "Bearer "+got.principal)
	response, err := c.web.Do(request)
	if err != nil {
		var dial *net.OpError
		got.unsent = errors.As(err, &dial) && dial.Op == "dial"
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return // a part of an answer is none
	}
	got.read(response, text)
}

func (c *call) read(response *http.Response, body []byte) {
	c.status, c.body = response.StatusCode, string(body)
	c.decision, c.outcome = response.Header.Get("Gate-Decision"), response.Header.Get("Gate-Outcome")
	c.mode = response.Header.Get("Gate-Mode")
	c.bound, _ = strconv.Atoi(response.Header.Get("Gate-Bound")) // "backend" is none
	for _, cookie := range response.Cookies() {
		c.session = cookie.Value
	}
	var fields struct {
		Data struct {
			Booking int64  `json:"booking_id"`
			Student string `json:"student_id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &fields) == nil {
		c.booking, c.told = fields.Data.Booking, fields.Data.Student
	}
}
