package rules

import (
	"slices"
	"strings"
)

// rewriteHeaders tell the path before a server rewrote it. Some backends route by them,
// whoever sent them: Symfony below 4.1.3, Zend Framework.
var rewriteHeaders = []string{"X-Original-URL", "X-Rewrite-URL"}

// routeParameters of a query tell front controllers the path, where no server rewrites
// it: ThinkPHP, Yii, Drupal, OpenCart, WordPress, Phalcon, CakePHP.
var routeParameters = []string{"s", "r", "q", "route", restRoute, "_url", "url"}

// restRoute is WordPress's, which stands for what is below restRoot.
const (
	restRoute = "rest_route"
	restRoot  = "/wp-json"
)

// matchRewritten holds the other paths that a request tells against the rules too: one
// that fits a rule has to come to what the request's own path has come to, which is m.
// It sets m.NeedsBody where the body has a say in that.
func (s *Set) matchRewritten(r *Request, m *Match) *Refusal {
	for _, path := range s.dialect.toldPaths(r) {
		other := *r
		other.Path = path
		var o Match
		if refusal := s.match(&other, &o); refusal != nil {
			return refusal
		}
		if o.Rule != nil && (o.Rule != m.Rule || !o.Rule.sameParams(&o.Params, &m.Params)) {
			return refuse(RefuseAmbiguous, "a header or the query tells another path, which falls under another rule")
		}
		m.NeedsBody = m.NeedsBody || o.NeedsBody
	}
	return nil
}

// toldPaths lists the raw paths in rewriteHeaders and routeParameters. A query that is
// a path itself, as CodeIgniter takes it, is one too.
func (d *dialect) toldPaths(r *Request) (paths []string) {
	for i := range r.Header {
		f := &r.Header[i]
		for _, name := range rewriteHeaders {
			if len(f.Name) == len(name) && f.Value != "" && sameHeader(f.Name, name) {
				paths = append(paths, pathOfURL(f.Value))
			}
		}
	}
	if r.Query == "" || !d.isFront(r.Path) {
		return paths
	}
	for piece := range splitPairs(r.Query) {
		name, value, _ := strings.Cut(piece, "=")
		switch name, _ = decodePercent(name, true); {
		case strings.HasPrefix(name, "/"):
			paths = append(paths, pathOfURL(piece))
		case slices.Contains(routeParameters, foldName(name)):
			path := pathOfURL(value)
			paths = append(paths, path)
			if foldName(name) == restRoute {
				paths = append(paths, restRoot+path)
			}
		}
	}
	return paths
}

// isFront reports whether a raw path is a folder's or a script's.
func (d *dialect) isFront(raw string) bool {
	path, err := NormalizePath(raw)
	return err != nil || strings.HasSuffix(path, "/") || d.isScript(path[strings.LastIndexByte(path, '/')+1:])
}

// pathOfURL is the path of a URL with or without scheme and host, raw.
func pathOfURL(url string) string {
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		url = url[:i]
	}
	if scheme, rest, ok := strings.Cut(url, "://"); ok && !strings.Contains(scheme, "/") {
		_, url, _ = strings.Cut(rest, "/")
	}
	if !strings.HasPrefix(url, "/") {
		url = "/" + url
	}
	return url
}
