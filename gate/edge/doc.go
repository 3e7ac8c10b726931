// Package edge is the HTTP server that clients reach. It turns a client's request
// into a gate.Request, which nothing below ties to a connection, and a gate.Reply,
// or a stream from the backend, into the client's answer.
//
// By file, in the order of a request: listen.go and certificate.go where clients
// come, conn.go the connection and its limits, strict.go and target.go what is
// refused because it could be read in two ways, forwarded.go and request.go what
// the rules and the backend get to see, lasthop.go what ends here, expect.go and handle.go where it goes,
// body.go how its body is read, reply.go, pass.go and tunnel.go the answer,
// field.go its head, refusal.go the edge's own answers.
//
// # fasthttp
//
// The server is fasthttp with its conveniences off. Three of its habits shape the
// code: a body stream that ends early reads as io.EOF, so lengths are counted
// here; it has a Date of its own for answers, so the backend's goes in by a side
// door (setHead); and it sends chunks to HTTP/1.0 clients, so those answers are
// written on the hijacked connection.
//
// # A request that waits with its body
//
// Expect: 100-continue is answered where the handling first reads the body. Up to
// there it runs as a coroutine inside fasthttp's ExpectHandler (expect.go): what is
// decided from the head alone, max_body among it, is answered without 100. Where the
// rule does not read the body that is the whole decision (gate/body.go).
//
// # Conformance
//
// What RFC 9110 section 7.6 and RFC 9112 ask of a gateway, what this one does, and
// the test that holds it; those marked u are in gate/upstream. FuzzEdge holds all
// of the request side at once: net/http reads at the backend what the edge read.
// conformance/TABLE.md shows, and its test measures, what this gateway,
// httputil.ReverseProxy and nginx do with the same bytes.
//
//	9110 7.6    no field but for the connection is changed      TestFieldsOfARequest, TestHeadIsForwardedAsSent u
//	9110 7.6.1  Connection and what it names stay on one side   TestEndToEnd u, TestFieldsOfAnAnswer
//	9110 7.6.1  a client's close is not the backend's           TestCloseStaysOnItsSide
//	9110 7.6.2  Max-Forwards: counted down for OPTIONS and      TestMaxForwards
//	            TRACE, answered here at 0
//	9110 7.6.3  Via on requests, one line                       TestForwarded
//	9110 7.7    the message is not transformed                  TestFieldsOfAnAnswer, TestLongStreams
//	9110 7.8    Upgrade: tunnelled, but for HTTP and TLS        TestTunnel, TestUpgradesThatAreNotPassedOn
//	9110 6.5    trailers: announced ones pass, others do not,   TestTrailers
//	            those of gated requests are dropped
//	9110 10.1.1 Expect: answered here, not handed on            TestExpectContinue, TestExpectIsDecidedByTheRule
//	9110 15.2   1xx: 100, 102, 103 dropped, 101 unasked refused TestScenarios u
//	9112 2.2    empty lines before a request are ignored        TestUnusualHeadsPass
//	9112 2.2    a bare LF ends a request line, no field line;   TestUnusualHeadsPass, TestStrictHeads
//	            a bare CR is refused
//	9112 2.3    HTTP/1.1 is sent whatever came; others 505      TestHTTP10, TestStrictHeads
//	9112 3.2    one valid Host, else 400                        TestStrictHeads
//	9112 3.2.2  absolute-form: the Host's own, sent on as       TestUnusualHeadsPass, TestStrictHeads
//	            origin-form
//	9112 3.2.4  asterisk-form for OPTIONS only                  TestUnusualHeadsPass, TestStrictHeads
//	9112 5.1    a blank before the colon: 400, removed from     TestStrictHeads, TestAnswers u
//	            answers
//	9112 5.2    obs-fold: 400, one blank in answers             TestStrictHeads, TestAnswers u
//	9112 6.1    Transfer-Encoding: chunked alone, once, in 1.1  TestStrictHeads
//	9112 6.3    Content-Length: once, digits, without coding    TestStrictHeads, TestHeadFraming u
//	9112 6.3    HEAD, 204, 304 have no body; one that comes     TestAnswersWithoutBody, TestScenarios u
//	            ends the connection
//	9112 6.3    both framings in an answer: 502                 TestScenarios u
//	9112 7.1.1  chunk extensions are read and dropped           TestUnusualHeadsPass
//	9112 8      a cut body stays cut, both ways                 TestCutAnswersStayCut, TestPassedRequestThatIsCut u
//	9112 9.3.1  no request is sent twice by itself              TestIdleConnectionsThatTurnedBad u
//	9112 9.3.2  pipelined requests are answered in order        TestPipelinedRequests
//	9112 9.5    slow heads and bodies: 408; silence: closed     TestSilentConnectionsGetNoAnswer, TestBadBodies
//	9112 9.6    the answer can be read before the close         TestUnreadBody, TestShutdown
//	9112 9.8    an end of TLS without notice is no end of body  (lengths are counted: TestCutAnswersStayCut)
//	9112 11.2   whatever two readers could frame differently    TestStrictHeads, FuzzEdge
//	            is refused, counted, and ends the connection
package edge
