package admin

import (
	"bytes"
	"embed"
	"io/fs"
	"net/http"
	"path"
)

// dashboardFiles are the page, which is as it stands here: nothing builds it. It talks
// to the API beside it and to nothing else.
//
//go:embed dashboard
var dashboardFiles embed.FS

// dashboardPolicy lets the page load and call only what comes from this listener (CSP
// level 3).
const dashboardPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// contentTypes by extension; what the system says of them differs by machine.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// tokenMark is where the page says whether it must ask for a token first.
var tokenMark = []byte(` data-token="required"`)

// dashboardPage serves the page at the root, and what it is made of. Neither holds any
// of the gate's data, so neither needs the token.
func (s *Server) dashboardPage(w http.ResponseWriter, r *http.Request) {
	name := "index.html"
	if file := r.PathValue("file"); file != "" {
		name = file
	}
	text, err := fs.ReadFile(dashboardFiles, path.Join("dashboard", path.Base(name)))
	if err != nil || name == "index.html" && r.PathValue("file") != "" {
		notFound(w, r)
		return
	}
	if name == "index.html" && s.access.token == nil {
		text = bytes.Replace(text, tokenMark, nil, 1)
	}
	h := w.Header()
	h.Set("Content-Type", contentTypes[path.Ext(name)])
	h.Set("Content-Security-Policy", dashboardPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	_, _ = w.Write(text)
}
