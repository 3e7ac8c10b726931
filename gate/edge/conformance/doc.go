// Package conformance holds three proxies side by side: this gate's edge,
// httputil.ReverseProxy as its documentation sets it up, and Debian's nginx with
// the configuration its documentation gives. Each gets the same raw bytes before
// the same raw backend, and what became of them is written to TABLE.md.
//
// There is no code here but tests. By file: table_test.go compares what happens
// with TABLE.md, and writes it with -update; requests_test.go, framing_test.go and
// answers_test.go are the cases, exchange_test.go plays one, proxies_test.go starts
// the three, backend_test.go is behind them, message_test.go reads HTTP without
// judging it, verdict_test.go puts what happened into words, duty_test.go says what
// this gate must have done.
package conformance
