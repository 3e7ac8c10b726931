// Package conformance holds three proxies side by side: this gate's edge,
// httputil.ReverseProxy as its documentation sets it up, and Debian's nginx with
// the configuration its documentation gives. Each gets the same raw bytes before
// the same raw backend, and what became of them is written to TABLE.md.
//
// There is no code here but tests. By file: message_test.go reads HTTP without
// judging it, backend_test.go records what arrives, proxies_test.go starts the
// three, exchange_test.go plays a case, verdict_test.go puts what happened into
// words, duty_test.go says what this gate must do with it, requests_test.go,
// framing_test.go and answers_test.go are the cases, table_test.go compares them
// with TABLE.md; -update writes it.
package conformance
