package shadow

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// shapes answers in the shape that the path's last segment names, always the same to the
// same request. Each answer tells in its body, or X-Seen where it has none, what came:
// what a proxy changes about a request shows in the answer.
type shapes struct{}

func (shapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	shape := segments[len(segments)-1]
	h := w.Header()
	h["Date"] = []string{"Mon, 30 Nov 2026 00:00:00 GMT"}
	if shape == "early" { // before it has read the request
		w.WriteHeader(http.StatusForbidden)
		return
	}
	seen := echo(r)
	h.Set("X-Seen", fmt.Sprintf("%x", sha256.Sum256([]byte(seen)))[:16])
	h.Add("Set-Cookie", "a=1")
	h.Add("Set-Cookie", "b=2; Path=/")
	switch shape {
	case "cut", "cut-long", "nothing":
		breakOff(w, shape)
	case "empty":
		w.WriteHeader(http.StatusNoContent)
	case "unchanged":
		h.Set("ETag", `"1"`)
		w.WriteHeader(http.StatusNotModified)
	case "hints":
		h.Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, seen)
	case "chunked":
		for i := range 5 {
			_, _ = fmt.Fprintf(w, "%d %s\n", i, seen)
			w.(http.Flusher).Flush()
		}
	case "trailers":
		h.Set("Trailer", "X-Sum, X-Note")
		_, _ = io.WriteString(w, seen)
		w.(http.Flusher).Flush()
		h.Set("X-Sum", strconv.Itoa(len(seen)))
		h.Set("X-Note", "done")
	case "gzip":
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Type", "application/json")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"code":0,"seen":"`+h.Get("X-Seen")+`"}`)
		_ = z.Close()
	case "big":
		h.Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(bytes.Repeat([]byte(seen+"\n"), 1+(200<<10)/len(seen)))
	case "moved":
		h.Set("Location", "/somewhere?else")
		w.WriteHeader(http.StatusSeeOther)
	case "409", "404", "422", "500", "503", "201":
		h.Set("Content-Type", "application/json")
		h.Set("Retry-After", "7")
		status, _ := strconv.Atoi(shape)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"code":7}`+"\n"+seen)
	default:
		h.Set("Content-Type", "application/json")
		h.Set("Gate-Decision", "forged")
		_, _ = fmt.Fprintf(w, `{"code":0,"id":"B1","seen":%q}`, seen)
	}
}

// breakOff ends the connection before the answer has ended, or begun.
func breakOff(w http.ResponseWriter, shape string) {
	conn, out, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	length := map[string]int{"cut": 100, "cut-long": 100 << 10, "nothing": 0}[shape]
	if length > 0 {
		_, _ = fmt.Fprintf(out, "HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n", length)
		_, _ = out.Write(bytes.Repeat([]byte("."), length/2))
		_ = out.Flush()
	}
}

// echo is the request as it came, but for what any proxy adds and each connection has.
func echo(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	var lines []string
	for _, fields := range []http.Header{r.Header, r.Trailer} {
		for name, values := range fields {
			switch {
			case strings.HasPrefix(name, "X-Forwarded-"), name == "Forwarded", name == "Via", name == "Connection", name == "Expect":
			default:
				lines = append(lines, name+": "+strings.Join(values, " | "))
			}
		}
	}
	slices.Sort(lines)
	return fmt.Sprintf("%s %s %s\n%s\n%d %x %v\n%v", r.Method, r.RequestURI, r.Host,
		strings.Join(lines, "\n"), len(body), sha256.Sum256(body), err, r.TransferEncoding)
}
