package admin

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// methods is one resource: its handler for each method. HEAD is GET.
type methods map[string]http.HandlerFunc

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if handle, ok := m[method]; ok {
		handle(w, r)
		return
	}
	allowed := slices.Sorted(maps.Keys(m))
	if m[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	fail(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s is not possible here; use %s", clip(r.Method), strings.Join(allowed, " or ")))
}

// resource is one path of the API. A segment in braces stands for any text.
type resource struct {
	path string
	methods
}

// routes is the whole admin API. http.ServeMux would redirect some slots
// (`.`, an empty segment) and cannot find the slot `/`; so paths are matched
// here, segment by segment as sent, and only then decoded.
func (s *Server) routes() http.Handler {
	open := []resource{
		{"/healthz", methods{"GET": s.healthz}},
		{"/readyz", methods{"GET": s.readyz}},
		{"/", methods{"GET": s.dashboardPage}},
		{"/dashboard/{file}", methods{"GET": s.dashboardPage}},
	}
	guarded := []resource{
		{"/metrics", methods{"GET": s.metrics.ServeHTTP}},
		{"/v1/status", methods{"GET": s.getStatus}},
		{"/v1/rules", methods{"GET": s.getRules}},
		{"/v1/rules/{name}/mode", methods{"PUT": s.putRuleMode}},
		{"/v1/mode", methods{"PUT": s.putMode}},
		{"/v1/slots", methods{"GET": s.listSlots}},
		{"/v1/slots/{pool}/{slot}", methods{"GET": s.getSlot, "PUT": s.putSlot}},
		{"/v1/slots/{pool}/{slot}/holds/{hold}", methods{"DELETE": s.deleteHold}},
		{"/v1/slots/{pool}/{slot}/resync", methods{"POST": s.resyncSlot}},
		{"/v1/slots/{pool}/{slot}/ledger", methods{"GET": s.getLedger}},
		{"/v1/reload", methods{"POST": s.postReload}},
	}
	behindGuard := s.access.guard(dispatch(guarded, http.HandlerFunc(notFound)))
	all := dispatch(open, behindGuard)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		all.ServeHTTP(w, r)
	})
}

// dispatch serves the resource that fits the path, else the rest.
func dispatch(resources []resource, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		segments := strings.Split(r.URL.EscapedPath(), "/")
		for _, res := range resources {
			if res.fits(r, segments) {
				res.ServeHTTP(w, r)
				return
			}
		}
		rest.ServeHTTP(w, r)
	})
}

// fits compares segment by segment and leaves what stood for the names in the
// request's path values.
func (res *resource) fits(r *http.Request, segments []string) bool {
	names := strings.Split(res.path, "/")
	if len(names) != len(segments) {
		return false
	}
	for i, name := range names {
		if !strings.HasPrefix(name, "{") {
			if name != segments[i] {
				return false
			}
			continue
		}
		text, err := url.PathUnescape(segments[i])
		if err != nil || text == "" {
			return false
		}
		r.SetPathValue(strings.Trim(name, "{}"), text)
	}
	return true
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	fail(w, http.StatusNotFound, "there is no such endpoint; the API is under /v1/, metrics are at /metrics")
}
