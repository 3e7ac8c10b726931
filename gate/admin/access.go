package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// access decides who may call. With a token, whoever sends it. Without one the
// listener is loopback only, and what is left to fear is the operator's own
// browser on that machine: a page of another origin that posts here (refused by
// Origin and Sec-Fetch-Site), or one whose name was made to resolve to loopback
// (DNS rebinding, refused by Host).
type access struct {
	token  *[sha256.Size]byte // nil: none needed
	host   string             // the configured listen host, also accepted in Host
	origin *http.CrossOriginProtection
}

func newAccess(listen, token string) (access, error) {
	a := access{origin: http.NewCrossOriginProtection()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		a.token = &sum
		return a, nil
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return a, fmt.Errorf("admin.listen %q is not host:port: %w", listen, err)
	}
	if !isLoopback(host) {
		return a, fmt.Errorf("admin.listen %q can be reached from other machines: set admin.token, or listen on 127.0.0.1", listen)
	}
	a.host = host
	return a, nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func (a access) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.token == nil && !a.ownHost(r.Host) {
			fail(w, http.StatusForbidden, "without admin.token the Host must be a loopback name, such as localhost or 127.0.0.1")
			return
		}
		if err := a.origin.Check(r); err != nil {
			fail(w, http.StatusForbidden, "a page of another origin may not change anything here")
			return
		}
		if a.token != nil && !a.tokenMatches(r.Header.Values("Authorization")) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="slotgate"`)
			fail(w, http.StatusUnauthorized, "send admin.token as `Authorization: Bearer TOKEN`")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a access) ownHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return isLoopback(host) || strings.EqualFold(host, a.host)
}

// tokenMatches compares hashes, so that neither the token's length nor its first
// wrong byte shows in the time taken.
func (a access) tokenMatches(authorization []string) bool {
	if len(authorization) != 1 {
		return false
	}
	scheme, credentials, _ := strings.Cut(authorization[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	sum := sha256.Sum256([]byte(strings.TrimLeft(credentials, " ")))
	return subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1
}
