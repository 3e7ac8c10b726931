package conformance

// connectionCases are about more than one message on a connection.
var connectionCases = []*conformanceCase{
	{name: "pipelined requests", rfc: "9.3.2", duty: "answered in order", raw: get("") + post("Content-Length: 3\r\n", "abc") + "GET /b HTTP/1.1\r\nHost: x\r\n\r\n", must: pass()},
	{name: "bytes behind the body", rfc: "6.3", duty: "the next request, or 400", raw: post("Content-Length: 3\r\n", "abc") + "\r\n" + get(""), must: pass()},
	{name: "HEAD", rfc: "9110 9.3.2", duty: "no body in the answer", raw: "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n", must: pass()},
	{name: "Connection: close", rfc: "9.6", duty: "the client's, not the backend's", raw: get("Connection: close\r\n"), must: pass("Connection")},
	{name: "GET on a connection that closes", rfc: "9.3.1", duty: "MAY be sent again", raw: "GET /first HTTP/1.1\r\nHost: x\r\n\r\n" + get(""), script: script{hangUp: true}, must: fail(502)},
	{name: "POST on a connection that closes", rfc: "9.3.1", duty: "MUST NOT be sent again", raw: "GET /first HTTP/1.1\r\nHost: x\r\n\r\n" + post("Content-Length: 3\r\n", "abc"), script: script{hangUp: true}, must: fail(502)},
	{name: "bytes behind an answer", rfc: "9.2", duty: "MUST NOT answer the next", raw: get(""), script: script{answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"}, inTurn: true, chance: true, must: relay()},
	{name: "bytes behind an answer to HEAD", rfc: "9.2", duty: "MUST NOT answer the next", raw: "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n", script: script{answer: "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"}, inTurn: true, chance: true, must: relay()},
	{name: "bytes behind 204", rfc: "6.3", duty: "no body", raw: get(""), script: script{answer: "HTTP/1.1 204 No Content\r\n\r\nstolen"}, inTurn: true, chance: true, must: relay()},
}

// answerCases are about the heads of answers.
var answerCases = []*conformanceCase{
	{name: "plain answer", rfc: "9110 7.6", duty: "no field is changed but for the connection", whole: true, raw: get(""),
		script: script{answer: "HTTP/1.1 200 OK\r\nx-b: 1\r\nSet-Cookie: a=1\r\nX-A: 2\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok"}, must: relay()},
	{name: "answer without Date", rfc: "9110 6.6.1", duty: "MUST be added when forwarded", whole: true, raw: get(""), script: answer("Content-Length: 2\r\n", "ok"), must: dated, breach: true},
	{name: "Date and Server of the backend", rfc: "9110 6.6.1", duty: "as they are", raw: get(""), script: answer("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: theirs\r\nContent-Length: 2\r\n", "ok"), must: relay()},
	{name: "body without Content-Type", rfc: "9110 8.3", duty: "none is made up", whole: true, raw: get(""), script: answer("Content-Length: 6\r\n", "<html>"), must: relay()},
	{name: "encoded body nobody asked for", rfc: "9110 7.7", duty: "not transformed", raw: get(""), script: answer("Content-Encoding: gzip\r\nContent-Length: 22\r\n", gzipped), must: relay()},
	{name: "status not known here", rfc: "9110 15", duty: "as it is", raw: get(""), script: script{answer: "HTTP/1.1 299 Fine\r\nContent-Length: 2\r\n\r\nok"}, must: relay()},
	{name: "HTTP/1.0 answer", rfc: "2.3", duty: "MUST be sent on in one's own version", raw: get(""), script: script{answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", hangUp: true}, must: relay()},
	{name: "Connection names a field", rfc: "9110 7.6.1", duty: "MUST be removed with it", raw: get(""), script: answer("Connection: X-A\r\nX-A: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n", "ok"), must: relay("X-A", "Keep-Alive", "Connection")},
	{name: "Proxy-Authenticate", rfc: "9110 11.7.1", duty: "for the next client only", raw: get(""), script: answer("Proxy-Authenticate: Basic\r\nContent-Length: 2\r\n", "ok"), must: relay("Proxy-Authenticate")},
	{name: "Upgrade offered", rfc: "9110 7.8", duty: "for the connection", raw: get(""), script: answer("Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n", "ok"), must: relay("Upgrade", "Connection")},
	{name: "folded line", rfc: "5.2", duty: "MUST be blanks, or 502", raw: get(""), script: answer("X-A: 1\r\n 2\r\nContent-Length: 2\r\n", "ok"), must: unfolded},
	{name: "blank before the colon", rfc: "5.1", duty: "MUST be removed", raw: get(""), script: answer("X-A : 1\r\nContent-Length: 2\r\n", "ok"), must: relay("X-A ")},
	{name: "NUL in a value", rfc: "9110 5.5", duty: "MUST be rejected or a blank", raw: get(""), script: answer("X-A: 1\x002\r\nContent-Length: 2\r\n", "ok"), must: withoutByte(0)},
	{name: "bare CR in a value", rfc: "2.2", duty: "MUST be invalid or a blank", raw: get(""), script: answer("X-A: 1\rX-B: 2\r\nContent-Length: 2\r\n", "ok"), must: withoutByte('\r')},
	{name: "line that is no field", rfc: "5", duty: "dropped, or 502", raw: get(""), script: answer("nonsense\r\nContent-Length: 2\r\n", "ok"), must: either(fail(502), relay("nonsense"))},
	{name: "100 unasked", rfc: "9110 15.2", duty: "MAY be dropped", raw: get(""), script: script{answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", hangUp: true}, must: relay()},
	{name: "103", rfc: "9110 15.2", duty: "a proxy MUST pass it on, a gateway need not", raw: get(""), script: script{answer: "HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", hangUp: true}, must: relay()},
	{name: "101 unasked", rfc: "9110 15.2.2", duty: "not passed on", raw: get(""), script: script{answer: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", hangUp: true}, must: fail(502)},
	{name: "no HTTP", rfc: "9110 15.6.3", duty: "502", raw: get(""), script: script{answer: "SSH-2.0-x\r\n", hangUp: true}, must: fail(502)},
	{name: "no answer", rfc: "9110 15.6.3", duty: "502", raw: post("Content-Length: 3\r\n", "abc"), script: script{hangUp: true}, must: fail(502)},
}

// answerFramingCases are about the length of an answer's body.
var answerFramingCases = []*conformanceCase{
	{name: "chunked answer", rfc: "7.1", duty: "same body", raw: get(""), script: answer("Transfer-Encoding: chunked\r\n", "2;x=y\r\nok\r\n0\r\n\r\n"), must: relay()},
	{name: "chunked answer to HTTP/1.0", rfc: "6.1", duty: "MUST NOT be sent chunked", raw: "GET /a HTTP/1.0\r\nHost: x\r\n\r\n", script: answer("Transfer-Encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n"), must: relay("Transfer-Encoding")},
	{name: "until the end of the connection", rfc: "6.3", duty: "same body", raw: get(""), script: script{answer: "HTTP/1.1 200 OK\r\n\r\nok", hangUp: true}, must: relay()},
	{name: "both framings", rfc: "6.3", duty: "coding wins, or 502", raw: get(""), script: answer("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n"), must: fail(502)},
	{name: "two lengths", rfc: "6.3", duty: "a proxy MUST send 502", raw: get(""), script: script{answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", hangUp: true}, must: fail(502)},
	{name: "two equal lengths", rfc: "6.3", duty: "MUST become one, or 502", raw: get(""), script: answer("Content-Length: 2\r\nContent-Length: 2\r\n", "ok"), must: either(fail(502), once("Content-Length"))},
	{name: "length with a sign", rfc: "6.3", duty: "a proxy MUST send 502", raw: get(""), script: script{answer: "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", hangUp: true}, must: fail(502)},
	{name: "unknown coding", rfc: "6.1", duty: "502", raw: get(""), script: script{answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nok", hangUp: true}, must: fail(502)},
	{name: "chunked in an HTTP/1.0 answer", rfc: "6.1", duty: "MUST be taken for faulty", raw: get(""), script: script{answer: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", hangUp: true}, must: fail(502)},
	{name: "204 with a length", rfc: "9110 8.6", duty: "no body whatever it says", raw: get(""), script: script{answer: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"}, must: relay("Content-Length")},
	{name: "304 with a length", rfc: "9110 8.6", duty: "that of the 200", raw: get(""), script: script{answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\n"}, must: relay()},
	{name: "HEAD with a length", rfc: "9110 8.6", duty: "that of the GET", raw: "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n", script: answer("Content-Length: 5\r\n", ""), must: relay()},
	{name: "cut body", rfc: "8", duty: "MUST stay cut", raw: get(""), script: script{answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", hangUp: true}, must: stayCut},
	{name: "cut chunks", rfc: "8", duty: "MUST stay cut", raw: get(""), script: script{answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", hangUp: true}, must: stayCut},
	{name: "cut head", rfc: "8", duty: "502", raw: get(""), script: script{answer: "HTTP/1.1 200 OK\r\nX-A: 1", hangUp: true}, must: fail(502)},
	{name: "announced trailer", rfc: "9110 6.5.1", duty: "MAY be passed on", raw: get(""), script: answer("Trailer: X-T\r\nTransfer-Encoding: chunked\r\n", "2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"), must: either(relay(), relay("Trailer"))},
	{name: "chunk size that is none", rfc: "7.1", duty: "MUST stay cut", raw: get(""), script: answer("Transfer-Encoding: chunked\r\n", "0x2\r\nok\r\n0\r\n\r\n"), must: stayCut},
}

// gzipped is "ok".
const gzipped = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xcb\xcf\x06\x00\x47\xdd\xdc\x79\x02\x00\x00\x00"

func answer(fields, body string) script {
	return script{answer: "HTTP/1.1 200 OK\r\n" + fields + "\r\n" + body}
}
