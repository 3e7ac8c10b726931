package conformance

import "strings"

// get and post are requests with the fields, each with its line end.
func get(fields string) string { return "GET /a HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n" }

func post(fields, body string) string {
	return "POST /a HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n" + body
}

// lineCases are about the request line.
var lineCases = []*conformanceCase{
	{name: "plain request", rfc: "9110 7.6", duty: "no field is changed but for the connection", whole: true, must: pass(),
		raw: get("accept: */*\r\nX-B: 1\r\nX-A: 2\r\nX-B: 3\r\n")},
	{name: "empty line before", rfc: "2.2", duty: "SHOULD be ignored", raw: "\r\n" + get(""), must: pass()},
	{name: "bare LF ends the request line", rfc: "2.2", duty: "MAY be taken for a line end", raw: "GET /a HTTP/1.1\nHost: x\r\n\r\n", must: pass()},
	{name: "bare CR in the line", rfc: "2.2", duty: "MUST be invalid or a blank", raw: "GET /a\rb HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "blanks before the first field", rfc: "2.2", duty: "MUST be rejected or ignored", raw: "GET /a HTTP/1.1\r\n X-A: 1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "two blanks", rfc: "3", duty: "MAY be lenient; 400", raw: "GET  /a HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "blank in the target", rfc: "3.2", duty: "SHOULD be 400, not repaired", raw: "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "method in small letters", rfc: "9110 9.1", duty: "methods are case-sensitive", raw: "get /a HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "method that is no token", rfc: "9110 9.1", duty: "400", raw: "G(T /a HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "method not known here", rfc: "9110 9.1", duty: "the backend's to say", raw: "PURGE /a HTTP/1.1\r\nHost: x\r\n\r\n", must: pass()},
	{name: "CONNECT", rfc: "9110 9.3.6", duty: "no tunnel behind a gateway", raw: "CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n", must: refuse(405)},
	{name: "HTTP/1.0", rfc: "2.3", duty: "MUST be sent on in one's own version", raw: "GET /a HTTP/1.0\r\n\r\n", must: pass()},
	{name: "HTTP/0.9", rfc: "2.3", duty: "no longer spoken", raw: "GET /a\r\n\r\n", must: refuse(400)},
	{name: "HTTP/1.2", rfc: "9110 2.5", duty: "SHOULD be read as 1.1", raw: "GET /a HTTP/1.2\r\nHost: x\r\n\r\n", must: refuse(505)},
	{name: "HTTP/2.0", rfc: "9110 15.6.6", duty: "505", raw: "GET /a HTTP/2.0\r\nHost: x\r\n\r\n", must: refuse(505)},
	{name: "HTTP/2 preface", rfc: "9113 3.4", duty: "400, not a request", raw: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", must: refuse(400)},
	{name: "version in small letters", rfc: "2.3", duty: "case-sensitive: 400", raw: "GET /a http/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "no HTTP", rfc: "2.2", duty: "400 and closed", raw: "\x16\x03\x01\x02\x00\x01", must: refuse(400)},
}

// targetCases are about the request target and Host.
var targetCases = []*conformanceCase{
	{name: "dot segments", rfc: "3.2.1", duty: "origin-form is sent on as it is", raw: "GET /a/../b/./%2e%2e/c HTTP/1.1\r\nHost: x\r\n\r\n", must: pass()},
	{name: "escaped slash", rfc: "9110 4.2.3", duty: "not the same as a slash", raw: "GET /a%2Fb%2fc HTTP/1.1\r\nHost: x\r\n\r\n", must: either(pass(), refuseOne(400))},
	{name: "empty segments", rfc: "3.2.1", duty: "as it is", raw: "GET //a///b HTTP/1.1\r\nHost: x\r\n\r\n", must: pass()},
	{name: "parameters and escapes", rfc: "3.2.1", duty: "as it is", raw: "GET /a;v=1/%61%7E?q=%zz&;%20+ HTTP/1.1\r\nHost: x\r\n\r\n", must: pass()},
	{name: "query that is empty", rfc: "3.2.1", duty: "as it is", raw: "GET /a? HTTP/1.1\r\nHost: x\r\n\r\n", must: pass()},
	{name: "backslash", rfc: "3.2.1", duty: "as it is, or 400", raw: "GET /a\\b HTTP/1.1\r\nHost: x\r\n\r\n", must: either(pass(), refuseOne(400))},
	{name: "escape that is none", rfc: "3986 2.1", duty: "400: servers differ", raw: "GET /a%zz HTTP/1.1\r\nHost: x\r\n\r\n", must: either(refuse(400), refuseOne(400))},
	{name: "NUL in the target", rfc: "3986 2", duty: "400", raw: "GET /a\x00b HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "bytes beyond ASCII", rfc: "3986 2", duty: "as they are, or 400", raw: "GET /caf\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n", must: pass()},
	{name: "fragment", rfc: "9110 7.1", duty: "never sent in a target: 400", raw: "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "absolute-form", rfc: "3.2.2", duty: "MUST be accepted", raw: "GET http://x/a?b HTTP/1.1\r\nHost: x\r\n\r\n", must: passAs("/a?b")},
	{name: "absolute-form, other host", rfc: "3.2.2", duty: "its host MUST replace Host; or 400", raw: "GET http://y/a HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "absolute-form with user", rfc: "9110 4.2.4", duty: "userinfo is an error", raw: "GET http://u@x/a HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "absolute-form of another scheme", rfc: "9110 7.4", duty: "not this gateway's", raw: "GET ftp://x/a HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "authority-form for GET", rfc: "3.2.3", duty: "for CONNECT only", raw: "GET x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n", must: refuse(400)},
	{name: "asterisk-form", rfc: "3.2.4", duty: "for OPTIONS, as it is", raw: "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", must: pass()},
	{name: "asterisk-form for GET", rfc: "3.2.4", duty: "for OPTIONS only", raw: "GET * HTTP/1.1\r\nHost: x\r\n\r\n", must: refuse(400)},
	{name: "no Host", rfc: "3.2", duty: "MUST be 400", raw: "GET /a HTTP/1.1\r\nX-A: 1\r\n\r\n", must: refuse(400)},
	{name: "two Hosts", rfc: "3.2", duty: "MUST be 400", raw: get("Host: y\r\n"), must: refuse(400)},
	{name: "two equal Hosts", rfc: "3.2", duty: "MUST be 400", raw: get("Host: x\r\n"), must: refuse(400)},
	{name: "empty Host", rfc: "3.2", duty: "no host to route by: 400", raw: "GET /a HTTP/1.1\r\nHost:\r\n\r\n", must: refuse(400)},
	{name: "Host with a slash", rfc: "3.2", duty: "invalid: MUST be 400", raw: "GET /a HTTP/1.1\r\nHost: x/y\r\n\r\n", must: refuse(400)},
	{name: "Host with a blank", rfc: "3.2", duty: "invalid: MUST be 400", raw: "GET /a HTTP/1.1\r\nHost: x y\r\n\r\n", must: refuse(400)},
	{name: "Host with a user", rfc: "3.2", duty: "invalid: MUST be 400", raw: "GET /a HTTP/1.1\r\nHost: u@x\r\n\r\n", must: refuse(400)},
	{name: "Host with a port that is none", rfc: "3.2", duty: "invalid: MUST be 400", raw: "GET /a HTTP/1.1\r\nHost: x:8a\r\n\r\n", must: refuse(400)},
}

// fieldCases are about the syntax of field lines.
var fieldCases = []*conformanceCase{
	{name: "blanks around a value", rfc: "5.1", duty: "no part of it", raw: get("X-A: \t 1 \t\r\n"), must: pass()},
	{name: "empty value", rfc: "9110 5.5", duty: "as it is", raw: get("X-A:\r\n"), must: pass()},
	{name: "bytes beyond ASCII", rfc: "9110 5.5", duty: "opaque", raw: get("X-A: \xe9\xff\r\n"), must: pass()},
	{name: "repeated field", rfc: "9110 5.3", duty: "order MUST be kept", raw: get("X-A: 2\r\nX-A: 1\r\n"), must: pass()},
	{name: "blank before the colon", rfc: "5.1", duty: "MUST be 400", raw: get("X-A : 1\r\n"), must: refuse(400)},
	{name: "name with a blank", rfc: "5.1", duty: "no token: 400", raw: get("X A: 1\r\n"), must: refuse(400)},
	{name: "no name", rfc: "5", duty: "400", raw: get(": 1\r\n"), must: refuse(400)},
	{name: "no colon", rfc: "5", duty: "400", raw: get("X-A\r\n"), must: refuse(400)},
	{name: "folded line", rfc: "5.2", duty: "MUST be 400, or blanks for it", raw: get("X-A: 1\r\n 2\r\n"), must: refuse(400)},
	{name: "folded Transfer-Encoding", rfc: "5.2", duty: "MUST be 400, or blanks for it", raw: post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"), must: refuse(400)},
	{name: "bare LF between fields", rfc: "2.2", duty: "MAY be a line end; 400", raw: get("X-A: 1\nX-B: 2\r\n"), must: refuse(400)},
	{name: "bare LF hides a length", rfc: "11.2", duty: "400: servers differ", raw: post("X-A: 1\nContent-Length: 3\r\n", "abc"), must: refuse(400)},
	{name: "bare CR in a value", rfc: "2.2", duty: "MUST be invalid or a blank", raw: get("X-A: 1\rX-B: 2\r\n"), must: refuse(400)},
	{name: "NUL in a value", rfc: "9110 5.5", duty: "MUST be rejected or a blank", raw: get("X-A: 1\x002\r\n"), must: refuse(400)},
	{name: "NUL in a name", rfc: "5.1", duty: "no token: 400", raw: get("X\x00A: 1\r\n"), must: refuse(400)},
	{name: "control character", rfc: "9110 5.5", duty: "MAY be kept where it is safe", raw: get("X-A: 1\x012\r\n"), must: refuse(400)},
	{name: "underscore in a name", rfc: "9110 5.1", duty: "a token; as it is", raw: get("X_A: 1\r\n"), must: pass()},
	{name: "underscore in Content_Length", rfc: "11.2", duty: "400: CGI takes it for the field", raw: post("Content_Length: 0\r\n", ""), must: refuse(400)},
	{name: "head over the limit", rfc: "9110 5.4", duty: "MUST be 4xx", raw: get("X-A: " + strings.Repeat("a", 40<<10) + "\r\n"),
		shown: "GET /a HTTP/1.1\r\nHost: x\r\nX-A: (40 KiB)\r\n\r\n", must: refuse(431)},
}

// hopCases are about fields that belong to one connection, or to the gateway.
var hopCases = []*conformanceCase{
	{name: "Connection names a field", rfc: "9110 7.6.1", duty: "MUST be removed with it", raw: get("Connection: X-A\r\nX-A: 1\r\nX-B: 2\r\n"), must: pass("Connection", "X-A")},
	{name: "Connection names Host", rfc: "9110 7.6.1", duty: "the message stays valid", raw: get("Connection: Host\r\n"), must: pass("Connection")},
	{name: "Connection names Content-Length", rfc: "9110 7.6.1", duty: "the framing stays true", raw: post("Connection: Content-Length\r\nContent-Length: 3\r\n", "abc"), must: pass("Connection")},
	{name: "Connection: keep-alive", rfc: "9110 7.6.1", duty: "MUST be removed", raw: get("Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n"), must: pass("Keep-Alive")},
	{name: "Proxy-Connection", rfc: "9110 7.6.1", duty: "SHOULD be removed", raw: get("Proxy-Connection: keep-alive\r\n"), must: pass("Proxy-Connection")},
	{name: "Proxy-Authorization", rfc: "9110 11.7.2", duty: "for the first proxy, perhaps the next", raw: get("Proxy-Authorization: Basic eDp5\r\n"), must: pass("Proxy-Authorization")},
	{name: "TE", rfc: "9110 10.1.4", duty: "for the connection", raw: get("Connection: TE\r\nTE: trailers\r\n"), must: pass("TE")},
	{name: "TE without Connection", rfc: "9110 7.6.1", duty: "SHOULD be removed", raw: get("TE: gzip\r\n"), must: pass("TE")},
	{name: "Upgrade: websocket", rfc: "9110 7.8", duty: "MAY be passed on", raw: get("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"),
		script: script{answer: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", upgrade: true}, inTurn: true, must: either(pass(), pass("Upgrade"))},
	{name: "Upgrade: h2c", rfc: "9113 3.1", duty: "obsolete; not passed on", raw: get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n"), inTurn: true, must: pass("Upgrade", "HTTP2-Settings")},
	{name: "Upgrade in HTTP/1.0", rfc: "9110 7.8", duty: "MUST be ignored", raw: "GET /a HTTP/1.0\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", inTurn: true, must: pass("Upgrade")},
	{name: "Upgrade without Connection", rfc: "9110 7.8", duty: "not for this hop; not passed on", raw: get("Upgrade: websocket\r\n"), inTurn: true, must: pass("Upgrade")},
	{name: "Expect: 100-continue", rfc: "9110 10.1.1", duty: "answered, or handed on", raw: post("Expect: 100-continue\r\nContent-Length: 3\r\n", "abc"), must: pass("Expect")},
	{name: "Expect in HTTP/1.0", rfc: "9110 10.1.1", duty: "MUST be ignored", raw: "POST /a HTTP/1.0\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", must: pass("Expect")},
	{name: "Expect of something else", rfc: "9110 10.1.1", duty: "MAY be 417", raw: get("Expect: tea\r\n"), must: pass("Expect")},
	{name: "Via from the client", rfc: "9110 7.6.3", duty: "MUST be added to", raw: get("Via: 1.1 edge\r\n"), must: appends("Via", "1.1 edge, ")},
	{name: "X-Forwarded-For from the client", rfc: "7239 8.1", duty: "a client can say anything", raw: get("X-Forwarded-For: 6.6.6.6\r\n"), must: replaces("X-Forwarded-For", "127.0.0.1")},
	{name: "Forwarded from the client", rfc: "7239 8.1", duty: "a client can say anything", raw: get("Forwarded: for=6.6.6.6\r\n"), must: replaces("Forwarded", "for=127.0.0.1;host=x;proto=http")},
	{name: "X_Forwarded_For", rfc: "7239 8.1", duty: "CGI takes it for the field", raw: get("X_Forwarded_For: 6.6.6.6\r\n"), must: pass("X_Forwarded_For")},
	{name: "OPTIONS with Max-Forwards: 0", rfc: "9110 7.6.2", duty: "MUST NOT be forwarded", raw: "OPTIONS /a HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n", must: finalRecipient},
	{name: "OPTIONS with Max-Forwards: 5", rfc: "9110 7.6.2", duty: "MUST be counted down", raw: "OPTIONS /a HTTP/1.1\r\nHost: x\r\nMax-Forwards: 5\r\n\r\n", must: replaces("Max-Forwards", "4")},
	{name: "TRACE with Max-Forwards: 0", rfc: "9110 7.6.2", duty: "MUST NOT be forwarded", raw: "TRACE /a HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n", must: finalRecipient},
	{name: "GET with Max-Forwards: 0", rfc: "9110 7.6.2", duty: "MAY be ignored", raw: get("Max-Forwards: 0\r\n"), must: pass()},
	{name: "Accept-Encoding is the client's", rfc: "9110 12.5.3", duty: "as it is", raw: get("Accept-Encoding: br;q=1.0, *;q=0\r\n"), must: pass()},
}
