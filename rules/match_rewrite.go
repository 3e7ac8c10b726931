package rules

import "strings"

// rewriteHeaders tell the path before a server rewrote it. Some backends route by them,
// whoever sent them.
var rewriteHeaders = []string{"X-Original-URL", "X-Rewrite-URL"}

// matchRewritten holds the paths in rewriteHeaders against the rules too: one that fits
// a rule has to come to what the request's own path has come to, which is m. It sets
// m.NeedsBody where the body has a say in that.
func (s *Set) matchRewritten(r *Request, m *Match) *Refusal {
	for i := range r.Header {
		f := &r.Header[i]
		for _, name := range rewriteHeaders {
			if len(f.Name) != len(name) || f.Value == "" || !sameHeader(f.Name, name) {
				continue
			}
			other := *r
			other.Path = pathOfURL(f.Value)
			o, refusal := s.match(&other)
			if refusal != nil {
				return refusal
			}
			if o.Rule != nil && (o.Rule != m.Rule || !o.Rule.sameParams(o.Params, m.Params)) {
				return refuse(RefuseAmbiguous, "%s has a path for which there is another rule", name)
			}
			m.NeedsBody = m.NeedsBody || o.NeedsBody
		}
	}
	return nil
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
