package gate

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/issue"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// idKeys knows the key that signs one-time ids.
type idKeys struct {
	store   store.Store
	retryAt atomic.Int64 // when the store is asked again, in nanoseconds; pages do not wait for it
}

// idKeyPause is how long a store that did not tell the key is not asked for it.
const idKeyPause = time.Second

func (k *idKeys) key() (issue.Key, bool) {
	now := time.Now()
	if now.UnixNano() < k.retryAt.Load() {
		return issue.Key{}, false
	}
	key, err := k.store.Secret(context.Background(), "one-time ids")
	if err != nil {
		k.retryAt.Store(now.Add(idKeyPause).UnixNano())
	}
	return key, err == nil
}

// ids is what a request has to do with one-time ids (package issue).
type ids struct {
	key   issue.Key
	own   []issue.Cookie // that the request brought
	pages []page         // that it fetches, and that are to bring an id
	ttl   time.Duration  // of those that are keys

	// The key of the request, once there is one.
	used    issue.ID
	binding issue.Binding
}

// page is a booking page.
type page struct {
	route   *route
	binding issue.Binding
}

// takeIDs takes the gate's own cookies off a request before anybody reads it, and finds
// the booking pages that it fetches.
func (g *Gate) takeIDs(now *modes, req *Request) {
	names := now.book.Set.IssuedCookies()
	if len(names) == 0 || now.untouched {
		return
	}
	var x ids
	req.Header, x.own = issue.Take(req.Header, names)
	pages := now.book.Set.Pages(&req.Request)
	if len(x.own) == 0 && len(pages) == 0 {
		return
	}
	var ok bool
	if x.key, ok = g.idKeys.key(); !ok {
		return // no id is good, and none is issued
	}
	for _, p := range pages {
		if now.of[p.Rule.Index] == modeEnforce {
			x.want(page{now.book.routes[p.Rule.Index], issue.BindingOf(p)})
		}
	}
	if slices.ContainsFunc(x.pages, func(p page) bool { return !p.route.pageShared.Load() }) {
		req.Header = unconditional(req.Header)
	}
	req.ids, req.Issued = &x, &x
}

// want notes a page, unless the request has an id for it that is still fresh.
func (x *ids) want(p page) {
	ttl := p.route.rule.Idempotency.TTL
	if id, ok := x.find(p.binding, ttl); ok && id.Fresh(time.Now(), ttl) {
		return
	}
	if !slices.ContainsFunc(x.pages, func(other page) bool { return other.binding == p.binding }) {
		x.pages = append(x.pages, p)
	}
}

// find returns the first good id for a binding.
func (x *ids) find(b issue.Binding, ttl time.Duration) (issue.ID, bool) {
	name := b.Name()
	for _, c := range x.own {
		if c.Name != name {
			continue
		}
		if id, ok := x.key.Open(b, c.Value); ok && id.Good(time.Now(), ttl) {
			return id, true
		}
	}
	return issue.ID{}, false
}

// ID implements rules.Issued.
func (x *ids) ID(cookie, group, pool, slot string) string {
	b := issue.Binding{Cookie: cookie, Group: group, Pool: pool, Slot: slot}
	id, ok := x.find(b, x.ttl)
	if !ok {
		return ""
	}
	x.used, x.binding = id, b
	return id.Text
}

// unconditional leaves out what lets a backend answer without the page (RFC 9110, 13.1):
// the browser has it, but not the cookie that is to come with it.
func unconditional(fields []rules.Field) []rules.Field {
	conditional := func(f rules.Field) bool {
		return strings.EqualFold(f.Name, "If-None-Match") || strings.EqualFold(f.Name, "If-Modified-Since")
	}
	if !slices.ContainsFunc(fields, conditional) {
		return fields
	}
	return slices.DeleteFunc(slices.Clone(fields), conditional)
}

// WithIDs returns the fields of the backend's answer with the one-time ids that it is to
// bring, if it is a whole page that no cache gives to others. The fields that were given
// are not changed.
func (r *Request) WithIDs(status int, header []rules.Field) []rules.Field {
	if r.ids == nil || len(r.ids.pages) == 0 || status != 200 {
		return header
	}
	sharing := issue.SharingOf(r.Header, header)
	for _, p := range r.ids.pages {
		p.route.pageShared.Store(sharing == issue.Shared)
	}
	switch sharing {
	case issue.Shared:
		return header
	case issue.Unclaimed:
		header = issue.MakePrivate(header)
	}
	return r.ids.issue(header, r.Secure)
}

func (x *ids) issue(header []rules.Field, secure bool) []rules.Field {
	header = slices.Clip(header)
	now := time.Now()
	added := map[string][]string{} // names by cookie
	for _, p := range x.pages {
		name := p.binding.Name()
		added[p.binding.Cookie] = append(added[p.binding.Cookie], name)
		header = append(header, issue.Set(name, x.key.Seal(p.binding, issue.NewID(now)), p.route.rule.Idempotency.TTL, secure))
	}
	for cookie, names := range added {
		for _, name := range issue.Surplus(x.own, cookie, names) {
			header = append(header, issue.Remove(name, secure))
		}
	}
	return header
}

// issue has the reply bring ids to the browser: of the page that it is, and the one that
// was the request's key, if that is spent.
func (j *journey) issue(reply *Reply) {
	j.spend(reply)
	if !reply.Replayed && reply.Outcome != rules.NoOutcome { // it is the backend's
		reply.Header = j.req.WithIDs(reply.Status, reply.Header)
	}
}

// spend marks the id that was the request's key as spent, in the browser, when the reply
// is the last word on it. Gate-made and replayed answers count: the browser has seen them.
func (j *journey) spend(reply *Reply) {
	if rules.KeySourceOf(j.facts.Key) != rules.KeyIssued {
		return
	}
	x, now := j.req.ids, time.Now()
	from := now.Add(-issue.ClockSkew) // by the clock of every gate
	switch {
	case reply.Outcome == rules.Unknown, reply.Decision == decision.DecisionOutcomeUnknown, reply.Decision == decision.DecisionKeyMismatch:
		from = now.Add(max(j.route.decide.HoldTTL, j.route.decide.Lease)) // A1
	case reply.Outcome != rules.NoOutcome && j.match.Rule.Keeps(reply.Outcome):
		if reply.Status/100 == 3 {
			from = now.Add(issue.RedirectGrace)
		}
	case reply.Decision == decision.DecisionDuplicate:
	default:
		return // not used: it may come again
	}
	id := x.used
	if !id.Spend(from) {
		return
	}
	sharing := issue.SharingOf(j.req.Header, reply.Header)
	if j.req.Method != "GET" && j.req.Method != "HEAD" {
		sharing = issue.SharingOfPost(j.req.Header, reply.Header)
	}
	switch sharing {
	case issue.Shared:
		return
	case issue.Unclaimed:
		reply.Header = issue.MakePrivate(reply.Header)
	}
	life := id.Issued.Add(x.ttl).Sub(now)
	reply.Header = append(slices.Clip(reply.Header), issue.Set(x.binding.Name(), x.key.Seal(x.binding, id), life, j.req.Secure))
}
