// Package storm tests an HTTP API with many bookings at once and counts what
// came of them.
//
// A storm is a fixed number of requests, numbered from 0, sent by a fixed
// number of clients, each of which waits for its answer before it takes the
// next request (a closed loop). A share of the requests is sent a second time
// with the same idempotency key at the same instant through another URL: its
// twin. What is sent (which subject, which key, which requests have a twin, in
// which order) follows from Options.Seed alone.
//
// Every request is written to the network once. A client that repeats a request
// by itself, as net/http does on a broken connection when it carries an
// Idempotency-Key, would hide the very faults a storm looks for; so clients
// here own their connections (connection.go) and report a broken one.
//
// Run starts a storm and returns its Report, which is rendered as text, JSON or a page
// of HTML and judged by its Expect methods.
package storm
