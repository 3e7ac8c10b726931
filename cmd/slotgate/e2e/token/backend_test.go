package token

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// backend finds the token of a request in its path, and answers with it as the query's m
// wants.
type backend struct{ t *testing.T }

func (b backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, manner := tokens.FindString(r.URL.Path), r.URL.Query().Get("m")
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s %s\n", r.Method, r.RequestURI, r.Host)
	_ = r.Header.Write(&text)
	if r.Header.Get("X-Hop") != "" {
		b.t.Error("a field of the hop was forwarded")
	}
	if manner == "early" { // before the request has come whole
		only(b.t, "the forwarded head", token, text.String())
		w.Header().Set("Connection", "close")
		w.Header().Set("X-Token", token)
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, filler(token, 100))
		return
	}
	body, err := io.ReadAll(r.Body)
	text.Write(body)
	_ = r.Trailer.Write(&text)
	only(b.t, "the forwarded request", token, text.String())
	if err == nil && len(body) > 0 && !strings.Contains(string(body), token) {
		b.t.Errorf("the forwarded body of %s is another's: %.100q", token, body)
	}
	h := w.Header()
	h.Set("X-Token", token)
	h.Set("Etag", `"`+token+`"`)
	h.Set("Location", "/"+token)
	h.Add("Set-Cookie", "sid="+token)
	for i := range rand.IntN(20) {
		h.Set("X-More-"+strconv.Itoa(i), token)
	}
	if answer, ok := manners[manner]; ok {
		answer(w, token)
	} else {
		_, _ = io.WriteString(w, filler(token, rand.IntN(500)))
	}
}

// manners of answering, by name.
var manners = map[string]func(w http.ResponseWriter, token string){
	"long": func(w http.ResponseWriter, token string) {
		body := filler(token, 60<<10+rand.IntN(200<<10))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
	},
	"chunked": func(w http.ResponseWriter, token string) {
		w.Header().Set("Trailer", "X-End")
		for range rand.IntN(20) {
			_, _ = io.WriteString(w, filler(token, rand.IntN(8<<10)))
			w.(http.Flusher).Flush()
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
		}
		w.Header().Set("X-End", token)
	},
	"slow": func(w http.ResponseWriter, token string) {
		time.Sleep(time.Duration(5+rand.IntN(60)) * time.Millisecond)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"token":"`+filler(token, 40+rand.IntN(2000))+`"}`)
	},
	"big": func(w http.ResponseWriter, token string) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, filler(token, 17<<10+rand.IntN(60<<10)))
	},
	"long head": func(w http.ResponseWriter, token string) {
		for i := range 60 {
			w.Header().Set("X-Long-"+strconv.Itoa(i), filler(token, 100+rand.IntN(300)))
		}
		_, _ = io.WriteString(w, filler(token, rand.IntN(30<<10)))
	},
	"204": func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusNoContent) },
	"304": func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusNotModified) },
	"refused": func(w http.ResponseWriter, token string) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, filler(token, 30))
	},
	"cut": func(w http.ResponseWriter, token string) {
		raw(w, fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Token: %s\r\nContent-Length: %d\r\n\r\n%s", token, 200+rand.IntN(100<<10), filler(token, 50)), nil)
	},
	"unasked": func(w http.ResponseWriter, token string) { // bytes behind the answer
		raw(w, fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Token: %s\r\nContent-Length: 13\r\n\r\n%s,HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n%s", token, token, token),
			func(io.ReadWriter) { time.Sleep(20 * time.Millisecond) })
	},
	"echo": func(w http.ResponseWriter, token string) {
		raw(w, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Token: "+token+"\r\n\r\n",
			func(c io.ReadWriter) { _, _ = io.Copy(c, c) })
	},
}

// raw writes to the connection itself, lets then have it, and closes it.
func raw(w http.ResponseWriter, text string, then func(io.ReadWriter)) {
	c, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = buffered.WriteString(text)
	_ = buffered.Flush()
	if then != nil {
		then(struct {
			io.Reader
			io.Writer
		}{buffered, c})
	}
}
