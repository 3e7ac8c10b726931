package main

import (
	"fmt"
	"time"

	"github.com/slotgate/slotgate/gate/issue"
	"github.com/slotgate/slotgate/rules"
)

// keySources are the words for where a key comes from.
var keySources = map[rules.KeySource]string{
	rules.KeySent: "sent", rules.KeyIssued: "issued", rules.KeyDerived: "derived",
}

var keySourceWords = map[string]string{
	"sent":    "sent by the client",
	"issued":  "handed out with the page, and brought back",
	"derived": "derived from subject, slot, method and fingerprint",
}

// keyMeaning is what a second request with the same key gets.
func keyMeaning(facts *explainedFacts) string {
	switch {
	case !facts.Replays && facts.KeySource == "derived":
		return "an equal request soon after gets 409 duplicate, for nothing shows that its sender is the same"
	case !facts.Replays:
		return "a second request with it and the same fingerprint gets 409 duplicate, for nothing shows that its sender is the same, and the key is shorter than 16 characters; with another fingerprint: 422"
	}
	switch facts.KeySource {
	case "issued":
		return "a second request from this page, for the same subject and with the same fingerprint, gets the first one's answer; with another fingerprint: 422"
	case "derived":
		return "an equal request soon after gets the first one's answer, if its scope is the same and not empty, else 409 duplicate"
	}
	return "a second request with it and the same fingerprint gets the first one's answer; with another fingerprint: 422"
}

func noKeyLayer(idem *rules.IdempotencyConfig) string {
	const none = "two equal requests are two bookings"
	if idem.Issue.Cookie == "" {
		return "the request has none: " + none
	}
	return fmt.Sprintf("the request has none, no good id in %s either, which comes with %s and is checked with store.secret: %s", idem.Issue.Cookie, idem.Issue.On, none)
}

// keyTime is how long a key is remembered.
func keyTime(idem *rules.IdempotencyConfig, facts *explainedFacts) time.Duration {
	if facts.KeySource == "derived" {
		return idem.Derive
	}
	return idem.TTL
}

// pageLayers tells of the ids that a page hands out.
func (r *rehearsal) pageLayers() []explainedLayer {
	if r.request == nil {
		return nil
	}
	var list []explainedLayer
	for _, p := range r.set.Pages(&r.request.Request) {
		does := fmt.Sprintf("sets a one-time id for slot %q of rule %s in cookie %s, unless the browser has one that is not spent, or a shared cache may store the page", p.Slot, p.Rule.Name, issue.BindingOf(p).Name())
		if p.Rule.Mode != "enforce" {
			does = fmt.Sprintf("nothing: rule %s, whose page this is, is in mode %s", p.Rule.Name, p.Rule.Mode)
		}
		list = append(list, explainedLayer{"issue", does})
	}
	return list
}
