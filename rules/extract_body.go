package rules

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"mime"
	"strings"
	"sync"
)

// bodyKind is what a body is read as.
type bodyKind uint8

const (
	bodyEmpty      bodyKind = iota
	bodyUnlabelled          // not empty, without a Content-Type that can be read
	bodyJSON
	bodyURLEncoded
	bodyMultipart
	bodyOther
)

func (k bodyKind) isForm() bool { return k == bodyURLEncoded || k == bodyMultipart }

// bodyText is the request body, labelled and out of its content coding.
type bodyText struct {
	loaded   bool
	kind     bodyKind
	boundary string
	charset  charset
	alien    bool   // the label's charset is none that writes ASCII as ASCII
	text     []byte // of JSON in UTF-8, else in charset
	refusal  *Refusal
}

// load reads label and coding once. The kind stands also where the text is refused.
func (b *bodyText) load(x *Extraction) *Refusal {
	if !b.loaded {
		b.loaded = true
		if len(x.req.Body) > 0 {
			b.refusal = b.read(x)
		}
	}
	return b.refusal
}

func (b *bodyText) read(x *Extraction) *Refusal {
	b.kind = bodyUnlabelled
	label, _, refusal := findHeader(x.req.Header, "Content-Type", "the Content-Type")
	if refusal != nil {
		return refusal
	}
	name, ok := b.classify(label)
	if !ok {
		return refuse(RefuseAmbiguous, "the Content-Type cannot be read")
	}
	switch x.rule.BodyAs {
	case "json":
		b.kind = bodyJSON
	case "form":
		if b.kind != bodyMultipart {
			b.kind = bodyURLEncoded
		}
	}
	if b.charset, ok = x.rule.charset.labelled(name); !ok && !x.rule.anyCharset {
		_, err := newCharset(name)
		b.alien = err != nil
		return refuse(RefuseUnsupported, "the body's charset is neither UTF-8 nor the rule's")
	}
	coding, _, refusal := findHeader(x.req.Header, "Content-Encoding", "the Content-Encoding")
	switch {
	case refusal != nil:
		return refusal
	case countHeader(x.req.Header, "Content-Encoding") > 1:
		return refuse(RefuseUnsupported, "the body has more than one Content-Encoding")
	}
	text, err := inflate(x.req.Body, coding, x.maxBody)
	switch {
	case errors.Is(err, errCoding):
		return refuse(RefuseUnsupported, "the Content-Encoding is neither gzip nor deflate")
	case errors.Is(err, errInflated):
		return refuse(RefuseTooLarge, "the body is larger than %v bytes", x.maxBody)
	case err != nil:
		return refuse(RefuseAmbiguous, "the body is not what its Content-Encoding says")
	}
	b.text = text
	if b.kind == bodyJSON && (b.charset.encoding != nil || b.charset.disputed) {
		decoded, ok := b.charset.text(string(text))
		if !ok {
			return refuse(RefuseAmbiguous, "the body is not in its charset, or in another one than the rule's")
		}
		b.text = []byte(decoded)
	}
	return nil
}

// classify sets kind and boundary from a Content-Type (RFC 9110, 8.3).
func (b *bodyText) classify(label string) (charset string, ok bool) {
	switch label { // what nearly every client sends
	case "application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8":
		b.kind = bodyJSON
		return "", true
	case "application/x-www-form-urlencoded":
		b.kind = bodyURLEncoded
		return "", true
	case "":
		b.kind = bodyUnlabelled
		return "", true
	}
	mediaType, params, err := mime.ParseMediaType(label)
	if err != nil || strings.Contains(label, "*") || !strings.Contains(mediaType, "/") {
		return "", false
	}
	b.kind = bodyOther
	switch {
	case mediaType == "application/json", mediaType == "text/json", strings.HasSuffix(mediaType, "+json"):
		b.kind = bodyJSON
	case mediaType == "application/x-www-form-urlencoded":
		b.kind = bodyURLEncoded
	case mediaType == "multipart/form-data":
		b.boundary = params["boundary"]
		if !isBoundary(b.boundary) || !namesOneBoundary(label, b.boundary) {
			b.kind = bodyUnlabelled
			return "", false
		}
		b.kind = bodyMultipart
	}
	// ASP.NET looks at how the label begins, others for a word anywhere.
	if !b.kind.isForm() && (containsFold(label, "form-urlencoded") || containsFold(label, "multipart/form-data")) {
		b.kind = bodyUnlabelled
		return "", false
	}
	return params["charset"], true
}

// namesOneBoundary: PHP takes the first "boundary" in the label, of xboundary= too.
func namesOneBoundary(label, boundary string) bool {
	count := func(s string) int { return strings.Count(strings.ToLower(s), "boundary") }
	return count(label) == 1+count(boundary)
}

func containsFold(s, lower string) bool { return strings.Contains(strings.ToLower(s), lower) }

// isBoundary: RFC 2046, 5.1.1, without the comma, at which Rack ends one in quotes too.
func isBoundary(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			continue
		}
		if strings.IndexByte("'()+_-./:=? ", c) < 0 {
			return false
		}
	}
	return 0 < len(s) && len(s) <= 70 && s[len(s)-1] != ' '
}

var (
	errCoding   = errors.New("content coding is not supported")
	errInflated = errors.New("inflated body is too large")
	errTrailing = errors.New("bytes follow the compressed data")
)

// gzipReaders keeps the tens of kilobytes that a decompressor is.
var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

// inflate undoes one content coding (RFC 9110, 8.4.1), up to limit bytes. Bytes after
// the compressed data, a second gzip member among them, are an error: some read them.
func inflate(body []byte, coding string, limit int64) ([]byte, error) {
	if coding == "" || strings.EqualFold(coding, "identity") {
		return body, nil
	}
	src := bytes.NewReader(body)
	var r io.Reader
	switch strings.ToLower(coding) {
	case "gzip", "x-gzip":
		z := gzipReaders.Get().(*gzip.Reader)
		defer gzipReaders.Put(z)
		if err := z.Reset(src); err != nil {
			return nil, err
		}
		z.Multistream(false)
		r = z
	case "deflate":
		z, err := zlib.NewReader(src)
		if err != nil {
			return nil, err
		}
		r = z
	default:
		return nil, errCoding
	}
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > limit:
		return nil, errInflated
	case src.Len() > 0:
		return nil, errTrailing
	}
	return text, nil
}

// InflateAnswer undoes the one content coding of a backend's answer, up to limit
// bytes: gzip, and deflate with and without the zlib wrapper, as servers send both.
// A coding that is not known, damage and a longer text are errors.
func InflateAnswer(body []byte, coding string, limit int64) ([]byte, error) {
	text, err := inflate(body, coding, limit)
	if err != nil && strings.EqualFold(coding, "deflate") {
		return inflateRaw(body, limit)
	}
	return text, err
}

// inflateRaw is inflate for deflate without the zlib wrapper, which some servers send.
func inflateRaw(body []byte, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(body)), limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, errInflated
	}
	return text, err
}
