// Package edge is the HTTP server that clients reach. It turns a client's request
// into a gate.Request, which nothing below ties to a connection, and a gate.Reply,
// or a stream from the backend, into the client's answer.
//
// By file, in the order of a request: conn.go the connection and its limits,
// strict.go what is refused because it could be read in two ways, request.go what
// the rules and the backend get to see, handle.go where it goes, body.go how its
// body is read, reply.go and pass.go the answer, field.go its head, refusal.go the
// edge's own answers.
//
// # fasthttp
//
// The server is fasthttp with its conveniences off. Three of its habits shape the
// code: a body stream that ends early reads as io.EOF, so lengths are counted
// here; the answer's Date can be set only by parsing a head, so heads are composed
// as text and parsed; and it sends chunks to HTTP/1.0 clients, so those answers
// are written on the hijacked connection.
package edge
