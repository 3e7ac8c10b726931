package conformance

// smuggled is a request that hides in the body of another for who takes the wrong
// framing.
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

// framingCases are about the length of a request's body.
var framingCases = []*conformanceCase{
	{name: "Content-Length", rfc: "6.3", duty: "as it is", raw: post("Content-Length: 3\r\n", "abc"), must: pass()},
	{name: "GET with a body", rfc: "9110 9.3.1", duty: "framed like any other", raw: get("Content-Length: 3\r\n") + "abc", must: pass()},
	{name: "Content-Length: 0", rfc: "9110 8.6", duty: "as it is", raw: post("Content-Length: 0\r\n", ""), must: pass()},
	{name: "POST without a length", rfc: "6.3", duty: "no body", raw: post("", ""), must: pass()},
	{name: "chunked", rfc: "7.1", duty: "same body", raw: post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"), must: pass()},
	{name: "Chunked", rfc: "7", duty: "codings are case-insensitive", raw: post("Transfer-Encoding: Chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"), must: pass()},
	{name: "both framings, chunked ends first", rfc: "6.3", duty: "MAY be 400; else coding wins, MUST close", raw: post("Content-Length: 40\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled), must: refuse(400)},
	{name: "both framings, length ends first", rfc: "6.3", duty: "MAY be 400; else coding wins, MUST close", raw: post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "23\r\n"+smuggled+"\r\n0\r\n\r\n"), must: refuse(400)},
	{name: "unknown coding with a length", rfc: "6.1", duty: "400", raw: post("Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n", "abc"), must: refuse(400)},
	{name: "unknown coding", rfc: "6.1", duty: "SHOULD be 501", raw: post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), must: refuse(400)},
	{name: "identity", rfc: "7", duty: "a coding no longer: 400", raw: post("Transfer-Encoding: identity\r\nContent-Length: 3\r\n", "abc"), must: refuse(400)},
	{name: "empty Transfer-Encoding", rfc: "6.1", duty: "400", raw: post("Transfer-Encoding:\r\nContent-Length: 3\r\n", "abc"), must: refuse(400)},
	{name: "chunked in two lines", rfc: "6.1", duty: "MUST NOT be applied twice: 400", raw: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), must: refuse(400)},
	{name: "chunked, identity in two lines", rfc: "6.3", duty: "chunked is not last: MUST be 400", raw: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"), must: refuse(400)},
	{name: "chunked, chunked", rfc: "6.1", duty: "MUST NOT be applied twice: 400", raw: post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), must: refuse(400)},
	{name: "gzip, chunked", rfc: "6.1", duty: "unknown here: SHOULD be 501", raw: post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), must: refuse(400)},
	{name: "chunked, gzip", rfc: "6.3", duty: "chunked is not last: MUST be 400", raw: post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), must: refuse(400)},
	{name: "chunked and a comma", rfc: "9110 5.6.1", duty: "an empty element; or 400", raw: post("Transfer-Encoding: chunked,\r\n", "0\r\n\r\n"), must: refuse(400)},
	{name: "quoted coding", rfc: "6.1", duty: "400", raw: post("Transfer-Encoding: \"chunked\"\r\nContent-Length: 3\r\n", "abc"), must: refuse(400)},
	{name: "vertical tab before the coding", rfc: "11.2", duty: "no blank: 400", raw: post("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"), must: refuse(400)},
	{name: "blank before the coding's colon", rfc: "5.1", duty: "MUST be 400", raw: post("Transfer-Encoding : chunked\r\nContent-Length: 3\r\n", "abc"), must: refuse(400)},
	{name: "chunked in HTTP/1.0", rfc: "6.1", duty: "MUST be taken for faulty", raw: "POST /a HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", must: refuse(400)},
	{name: "Transfer_Encoding", rfc: "11.2", duty: "400: CGI takes it for the field", raw: post("Transfer_Encoding: chunked\r\n", ""), must: refuse(400)},
	{name: "two lengths", rfc: "6.3", duty: "MUST be 400", raw: post("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"), must: refuse(400)},
	{name: "two equal lengths", rfc: "6.3", duty: "MAY be 400; else MUST become one", raw: post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), must: refuse(400)},
	{name: "list of equal lengths", rfc: "6.3", duty: "MAY be 400; else MUST become one", raw: post("Content-Length: 3, 3\r\n", "abc"), must: refuse(400)},
	{name: "length with a sign", rfc: "6.3", duty: "MUST be 400", raw: post("Content-Length: +3\r\n", "abc"), must: refuse(400)},
	{name: "negative length", rfc: "6.3", duty: "MUST be 400", raw: post("Content-Length: -3\r\n", "abc"), must: refuse(400)},
	{name: "hexadecimal length", rfc: "6.3", duty: "MUST be 400", raw: post("Content-Length: 0x3\r\n", "abc"), must: refuse(400)},
	{name: "length with a blank", rfc: "6.3", duty: "MUST be 400", raw: post("Content-Length: 3 0\r\n", "abc"), must: refuse(400)},
	{name: "length with a point", rfc: "6.3", duty: "MUST be 400", raw: post("Content-Length: 3.0\r\n", "abc"), must: refuse(400)},
	{name: "empty length", rfc: "6.3", duty: "MUST be 400", raw: post("Content-Length:\r\n", ""), must: refuse(400)},
	{name: "length beyond counting", rfc: "9110 8.6", duty: "MUST NOT overflow", raw: post("Content-Length: 18446744073709551619\r\n", "abc"), must: refuse(400)},
	{name: "body that is cut", rfc: "8", duty: "MUST NOT look whole", raw: post("Content-Length: 10\r\n", "abc"), cut: true, must: cutToo},
	{name: "chunks that are cut", rfc: "8", duty: "MUST NOT look whole", raw: post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n"), cut: true, must: cutToo},
}

// chunkCases are about the chunks of a request's body.
var chunkCases = []*conformanceCase{
	{name: "chunk extension", rfc: "7.1.1", duty: "MUST be ignored where unknown", raw: chunks("3;a=b;c=\"d;e\"\r\nabc\r\n0;f\r\n\r\n"), must: pass()},
	{name: "size with leading zeros", rfc: "7.1", duty: "1*HEXDIG", raw: chunks("0003\r\nabc\r\n000\r\n\r\n"), must: pass()},
	{name: "size in capitals", rfc: "7.1", duty: "1*HEXDIG", raw: chunks("A\r\n0123456789\r\n0\r\n\r\n"), must: pass()},
	{name: "blank behind the size", rfc: "7.1.1", duty: "bad whitespace, no grammar for it", raw: chunks("3 \r\nabc\r\n0\r\n\r\n"), must: either(pass(), refuseBody(400))},
	{name: "blank before the size", rfc: "7.1", duty: "400", raw: chunks(" 3\r\nabc\r\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "size with 0x", rfc: "7.1", duty: "400", raw: chunks("0x3\r\nabc\r\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "size with a sign", rfc: "7.1", duty: "400", raw: chunks("+3\r\nabc\r\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "negative size", rfc: "7.1", duty: "400", raw: chunks("-3\r\nabc\r\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "no size", rfc: "7.1", duty: "400", raw: chunks("\r\nabc\r\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "size beyond counting", rfc: "7.1", duty: "MUST NOT overflow", raw: chunks("10000000000000003\r\nabc\r\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "bare LF behind the size", rfc: "7.1", duty: "no line end here", raw: chunks("3\nabc\r\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "bare LF in an extension", rfc: "7.1.1", duty: "no line end here", raw: chunks("3;a\nabc\r\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "bare CR in an extension", rfc: "7.1.1", duty: "400", raw: chunks("3;a\rb\r\nabc\r\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "data longer than its size", rfc: "7.1", duty: "400", raw: chunks("3\r\nabcdef\r\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "data ends in a bare LF", rfc: "7.1", duty: "400", raw: chunks("3\r\nabc\n0\r\n\r\n"), must: refuseBody(400)},
	{name: "last chunk ends in a bare LF", rfc: "7.1", duty: "400", raw: chunks("3\r\nabc\r\n0\n\r\n"), must: refuseBody(400)},
	{name: "announced trailer", rfc: "9110 6.5.1", duty: "MAY be passed on", raw: post("Trailer: X-T\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"), must: pass()},
	{name: "trailer not announced", rfc: "9110 6.5.1", duty: "MAY be dropped", raw: chunks("3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"), must: pass()},
	{name: "Content-Length as trailer", rfc: "9110 6.5.1", duty: "MUST NOT be merged", raw: chunks("3\r\nabc\r\n0\r\nContent-Length: 1\r\n\r\n"), must: either(pass("Content-Length"), refuseBody(400))},
	{name: "trailer that is no field", rfc: "7.1.2", duty: "400", raw: chunks("3\r\nabc\r\n0\r\nX T: 1\r\n\r\n"), must: either(pass(), refuseBody(400))},
}

func chunks(body string) string { return post("Transfer-Encoding: chunked\r\n", body) }
