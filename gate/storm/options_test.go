package storm

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

func TestKeyHeaderIsAddedOnlyWhenNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    bool
	}{
		"twins":              {Options{RetriesSameKey: 1}, true},
		"no twins":           {Options{}, false},
		"key in the body":    {Options{RetriesSameKey: 1, Body: "{key}"}, false},
		"key in a header":    {Options{RetriesSameKey: 1, Header: []string{"X-Key: {key}"}}, false},
		"key in the URL":     {Options{RetriesSameKey: 1, Targets: []string{"/?k={key}"}}, false},
		"another header set": {Options{RetriesSameKey: 1, Header: []string{"X-Key: {n}"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var missing, present atomic.Int64
			url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Idempotency-Key") == "" {
					missing.Add(1)
				} else {
					present.Add(1)
				}
			})
			o := test.options
			path := ""
			if len(o.Targets) > 0 {
				path = o.Targets[0]
			}
			o.Targets, o.Clients, o.Requests = []string{url + path}, 2, 4
			mustRun(t, o)
			if test.want && missing.Load() > 0 || !test.want && present.Load() > 0 {
				t.Errorf("%d with and %d without Idempotency-Key", present.Load(), missing.Load())
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	good := func() Options { return Options{Targets: []string{"http://127.0.0.1:1/"}, Clients: 2, Requests: 10} }
	for want, spoil := range map[string]func(*Options){
		"no URL":                              func(o *Options) { o.Targets = nil },
		"must begin with http":                func(o *Options) { o.Targets = []string{"127.0.0.1:80"} },
		"invalid port":                        func(o *Options) { o.Targets = []string{"http://127.0.0.1:x/y"} },
		"must begin with http:// or https://": func(o *Options) { o.Targets = []string{"ftp://h/"} },
		"has no host":                         func(o *Options) { o.Targets = []string{"http:///x"} },
		"must not hold a password":            func(o *Options) { o.Targets = []string{"http://u:p@h/"} },
		"only after the host":                 func(o *Options) { o.Targets = []string{"http://h{n}/"} },
		"unknown placeholder":                 func(o *Options) { o.Targets = []string{"http://h/{lesson}"} },
		"invalid URL escape":                  func(o *Options) { o.Targets = []string{"http://h/%zz"} },
		"body: {x} at byte 2":                 func(o *Options) { o.Body = "a={x}" },
		`"X: {x}": {x} at byte 0`:             func(o *Options) { o.Header = []string{"X: {x}"} },
		`write it as "Name: value"`:           func(o *Options) { o.Header = []string{"X"} },
		`"X Y: 1": write it`:                  func(o *Options) { o.Header = []string{"X Y: 1"} },
		"control character":                   func(o *Options) { o.Header = []string{"X: a\r\nY: b"} },
		"frames its requests itself":          func(o *Options) { o.Header = []string{"content-length: 3"} },
		"not a token":                         func(o *Options) { o.Method = "PO ST" },
		"CONNECT":                             func(o *Options) { o.Method = "CONNECT" },
		"requests must be 1 to":               func(o *Options) { o.Requests = 0 },
		"requests must be 1 to 10000000":      func(o *Options) { o.Requests = MaxRequests + 1 },
		"clients must be 1 to":                func(o *Options) { o.Clients = 0 },
		"subjects must be 1 to":               func(o *Options) { o.Subjects = 11 },
		"subjects must be 1 to the":           func(o *Options) { o.Subjects = -1 },
		"must be 0 to 1":                      func(o *Options) { o.RetriesSameKey = 1.5 },
		"takes 2 clients or more":             func(o *Options) { o.RetriesSameKey, o.Clients = 1, 1 },
		"the rate must be":                    func(o *Options) { o.Rate = -1 },
		"timeouts must be positive":           func(o *Options) { o.Timeout = -1 },
	} {
		o := good()
		spoil(&o)
		report, err := Run(t.Context(), o)
		if report != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q has more than one line", err)
		}
	}
}
