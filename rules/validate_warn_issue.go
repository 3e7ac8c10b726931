package rules

import (
	"slices"
	"strings"
)

// issue says where handed out ids may not do what is meant.
func (w *warner) issue(p place, r *RuleConfig) {
	idem := r.Idempotency
	if idem == nil || idem.Issue.Cookie == "" {
		return
	}
	if slices.ContainsFunc(idem.Scope, func(e Extractor) bool { return e.Source == FromHeader && strings.EqualFold(e.Name, "Cookie") }) {
		p.field("scope").warnf("has header:Cookie, every cookie of a browser: where the backend sets one with a booking's answer, who sends the booking again is told duplicate and not shown that answer; name what tells people apart, such as cookie:session")
	}
	secure := w.cfg.Server.TLS.CertFile != "" || len(w.cfg.Server.TrustedProxies) > 0
	if cookie := idem.Issue.Cookie; !secure && (strings.HasPrefix(cookie, "__Host-") || strings.HasPrefix(cookie, "__Secure-")) {
		p.field("issue").field("cookie").warnf("browsers take a cookie of that name over https only: set server.tls, or server.trusted_proxies where a proxy does it")
	}
}
