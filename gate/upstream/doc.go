// Package upstream is the one backend behind the gate: connections to it, the
// exchange of a request for an answer on one of them, and the breaker.
//
// # One attempt, and what is known after it
//
// A gated request is sent once, whatever its method. When there is no answer, the
// gate must know whether the backend can have seen the request: Forward says
// NotConnected only while not one byte was written, and TimedOut or Broken as
// soon as one was. An answer that was cut, or whose framing can be read in two
// ways, is Broken: it is never handed on as an answer.
//
// # Connections (design 3.8)
//
// Bytes that lie unread on a pooled connection would become the next request's
// answer, and a connection that the backend closed while idle would fail a
// request that cannot be repeated. So a connection is looked at, without
// blocking, in the moment it leaves the pool: closed, or with data on it, it is
// thrown away and the next is tried, before any byte of the request is sent. And
// only a connection whose last answer ended exactly where its framing said goes
// back into the pool.
//
// This is why the package speaks HTTP/1.1 on the connection itself. A client
// library that hides its pool cannot be checked at that moment, drops what its
// read buffer still holds, merges repeated fields, and reads an answer with both
// Content-Length and Transfer-Encoding as if it were fine.
//
// By file: pool.go and conn.go which connection, head.go what is written,
// answer.go and body.go what is read, early.go what is heard before all is written,
// forward.go gated requests (whole, until a deadline), pass.go all others (streamed),
// trailer.go what comes behind a body, tunnel.go other protocols, breaker.go when not
// to try.
package upstream
