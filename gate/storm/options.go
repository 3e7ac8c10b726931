package storm

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The bounds of one storm.
const (
	MaxClients  = 65_536
	MaxRequests = 10_000_000
)

// Options describe a storm. Zero values of Method, Timeout and MaxTime mean
// their defaults; Targets, Clients and Requests are required.
//
// Targets, Header and Body are templates. {n} is the number of the request:
// each number from 0 to Requests-1 is sent once (twice with its twin), in an
// order drawn from Seed. {subject} is a number from 1 to Subjects; every
// subject sends equally often, give or take one. {key} is the idempotency key,
// 32 hexadecimal digits, one for each number. {n%20} and {n%20+1} spread
// requests over 20 lessons numbered from 0 or from 1.
type Options struct {
	Targets []string // absolute http or https URLs; request i goes to Targets[i mod len], its twin to the next
	Method  string   // default POST
	Header  []string // "Name: value" lines
	Body    string

	Clients        int     // requests under way at once
	Requests       int     // distinct requests; twins come on top
	Subjects       int     // distinct subjects; 0 means one for each request
	RetriesSameKey float64 // share of requests (0 to 1) that have a twin
	Rate           float64 // most requests a second, twins included; 0 means no limit

	Success  Success
	Capacity int           // seats that each slot has, for Report.ExpectCapacity; 0 means not known
	Timeout  time.Duration // for one request, and for one connect; default 10 s
	MaxTime  time.Duration // for the whole storm; default 5 min
	Seed     uint64
	TLS      *tls.Config // for https targets; nil means the system's roots

	// Progress is called by one goroutine about five times a second and once
	// at the end.
	Progress func(Progress)
	// OnResponse is called by the client that sent the request, so by many
	// goroutines at once, before it sends its next one.
	OnResponse func(Exchange)
}

// Exchange is one request and what came of it. Header and Body are valid only
// during the call.
type Exchange struct {
	N       int
	Repeat  bool // the twin of request N
	Subject int
	Slot    int64 // the value of the placeholder that spreads over slots; -1 without one
	Key     string
	URL     string
	Status  int // 0 when Err is set
	Header  http.Header
	Body    []byte        // the first MiB
	Sent    time.Time     // when its first byte was written
	Latency time.Duration // from Sent to the answer's last byte or the error
	Err     error         // a *TransportError
}

// Progress is how far a storm is.
type Progress struct {
	Done      int // answers and transport errors
	Total     int // requests and twins
	Successes int // distinct
	Status5xx int
	Errors    int // transport errors
	Elapsed   time.Duration
	Final     bool
}

func (o *Options) setDefaults() {
	if o.Method == "" {
		o.Method = http.MethodPost
	}
	if o.Subjects == 0 {
		o.Subjects = o.Requests
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.MaxTime == 0 {
		o.MaxTime = 5 * time.Minute
	}
}

func (o *Options) validate() error {
	switch {
	case len(o.Targets) == 0:
		return errors.New("no URL to send to")
	case !isToken(o.Method):
		return fmt.Errorf("method %q is not a token such as POST", o.Method)
	case o.Method == http.MethodConnect:
		return errors.New("method CONNECT cannot be stormed")
	case o.Requests < 1 || o.Requests > MaxRequests:
		return fmt.Errorf("requests must be 1 to %d, not %d", MaxRequests, o.Requests)
	case o.Clients < 1 || o.Clients > MaxClients:
		return fmt.Errorf("clients must be 1 to %d, not %d", MaxClients, o.Clients)
	case o.Subjects < 1 || o.Subjects > o.Requests:
		return fmt.Errorf("subjects must be 1 to the number of requests (%d), not %d", o.Requests, o.Subjects)
	case !(o.RetriesSameKey >= 0 && o.RetriesSameKey <= 1):
		return fmt.Errorf("the share of retries with the same key must be 0 to 1, not %v", o.RetriesSameKey)
	case o.repeats() > 0 && o.Clients < 2:
		return errors.New("retries with the same key are sent at the same instant, which takes 2 clients or more")
	case !(o.Rate >= 0 && o.Rate <= 1e9):
		return fmt.Errorf("the rate must be 0 (no limit) to 1000000000 a second, not %v", o.Rate)
	case o.Capacity < 0:
		return fmt.Errorf("capacity must be 1 or more seats a slot, not %d", o.Capacity)
	case o.Timeout < 0 || o.MaxTime < 0:
		return errors.New("timeouts must be positive")
	}
	return nil
}

// repeats is the number of requests that have a twin.
func (o *Options) repeats() int { return int(o.RetriesSameKey*float64(o.Requests) + 0.5) }
