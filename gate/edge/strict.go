package edge

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// head is a request's head, copied out of the server's buffers.
type head struct {
	method string
	path   string // raw
	query  string // raw, without "?"
	target string // what the backend gets: path and query, a lone "?" kept
	host   string
	fields []rules.Field // every line, in order
	http10 bool
	// upgrade is the protocol that the client asks for; "": none that is passed on.
	upgrade  string
	trailers []string // announced
	// length of the body: 0 without one, upstream.Unknown when it is chunked.
	length int64
	room   [16]rules.Field // of fields, where they fit
	texts  *rules.Texts    // make all texts here; nil: each has memory of its own
}

// spareFields are the fields the gate adds on the way to the backend.
const spareFields = 5

// read copies a head that fasthttp has accepted, and refuses what fasthttp lets pass
// but a backend could read in another way than the gate (P6).
func (in *head) read(h *fasthttp.RequestHeader) *refusal {
	in.method = methodName(h.Method())
	switch string(h.Protocol()) {
	case "HTTP/1.1":
	case "HTTP/1.0":
		in.http10 = true
	default:
		return refuseVersion
	}
	if in.method == "CONNECT" {
		return refuseConnect
	}
	// Methods are case-sensitive (RFC 9110 section 9.1), but some backends
	// take "post" for POST, and then a rule for POST would be dodged.
	if strings.ToUpper(in.method) != in.method {
		return refuseMethod
	}
	if refused := in.readFields(in.texts.Of(h.RawHeaders())); refused != nil {
		return refused
	}
	if refused := in.readHost(); refused != nil {
		return refused
	}
	if refused := in.readTarget(in.texts.Of(h.RequestURI())); refused != nil {
		return refused
	}
	if refused := in.frame(); refused != nil {
		return refused
	}
	in.upgrade = in.upgradeAsked()
	if in.length == upstream.Unknown {
		in.trailers = upstream.TrailerNames(in.fields)
	}
	return nil
}

// readFields takes the header block apart. All fields are slices of block.
func (in *head) readFields(block string) *refusal {
	in.fields = in.room[:0]
	if n := strings.Count(block, "\n") + spareFields; n > len(in.room) {
		in.fields = make([]rules.Field, 0, n)
	}
	for block != "" {
		var line string
		line, block, _ = strings.Cut(block, "\n")
		line, crlf := strings.CutSuffix(line, "\r")
		if !crlf || strings.IndexByte(line, '\r') >= 0 {
			return refuseLineEnd
		}
		if line == "" {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			return refuseFold
		}
		name, rest := upstream.CutToken(line)
		if name == "" || rest == "" || rest[0] != ':' {
			return refuseHeader
		}
		in.fields = append(in.fields, rules.Field{Name: name, Value: upstream.TrimBlanks(rest[1:])})
	}
	return nil
}

// frame finds the body's length. Whoever could see another length than the gate
// would see another next request on the connection.
func (in *head) frame() *refusal {
	hasLength, hasCoding := false, false
	for _, f := range in.fields {
		switch {
		case upstream.SameName(f.Name, "Content-Length"):
			n, ok := upstream.ParseLength(f.Value)
			if !ok || hasLength {
				return refuseFraming
			}
			in.length, hasLength = n, true
		case upstream.SameName(f.Name, "Transfer-Encoding"):
			if hasCoding || in.http10 || !strings.EqualFold(f.Value, "chunked") {
				return refuseFraming
			}
			hasCoding = true
		case equalFolded(f.Name, "Content-Length"), equalFolded(f.Name, "Transfer-Encoding"):
			return refuseFraming // in another spelling
		}
	}
	if hasLength && hasCoding {
		return refuseFraming
	}
	if hasCoding {
		in.length = upstream.Unknown
	}
	return nil
}

// methodName avoids a copy of the usual methods.
func methodName(b []byte) string {
	switch string(b) {
	case "GET":
		return "GET"
	case "POST":
		return "POST"
	case "HEAD":
		return "HEAD"
	case "PUT":
		return "PUT"
	case "DELETE":
		return "DELETE"
	case "PATCH":
		return "PATCH"
	case "OPTIONS":
		return "OPTIONS"
	}
	return string(b)
}

// equalFolded compares names as a CGI environment does, in which letter case is lost
// and what is no letter or digit becomes one mark.
func equalFolded(name, want string) bool {
	if len(name) != len(want) {
		return false
	}
	for i := range len(name) {
		if foldByte(name[i]) != foldByte(want[i]) {
			return false
		}
	}
	return true
}

func foldByte(c byte) byte {
	switch {
	case c >= 'A' && c <= 'Z':
		return c + 'a' - 'A'
	case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
		return c
	}
	return '-'
}
