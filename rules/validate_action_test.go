package rules

import (
	"fmt"
	"strings"
	"testing"
)

// withRule is base with a second rule: a cancel with hold unless lines say
// otherwise. Lines may hold a mark.
func withRule(action, lines string) string {
	return base + `  - name: other
    match: { path: "/api/bookings/{booking}" }
    action: ` + action + "\n" + lines
}

func TestValidateCancelAndConfirm(t *testing.T) {
	const pool, hold = "    pool: lessons\n", "    hold: path:booking\n"
	for _, action := range []string{"cancel", "confirm"} {
		for _, row := range []struct{ lines, want string }{
			{pool + hold, ""},
			{pool + "    hold: { from: path:booking, as: integer }\n    slot: json:/lesson\n", ""},
			{pool + "    slot: [json:/day, json:/hour]\n    subject: json:/student\n", ""},
			{pool + hold + "    outcomes: [{ when: { status: 404 }, is: done }, { when: { status: 409 }, is: refused }, { when: { status: 4xx }, is: unknown }]\n", ""},
			{pool + hold + "    idempotency: { store: [done, refused], unknown: retry }\n", ""},
			{pool + hold + "    units: «json:/a\n", "a " + action + " is for all units of a booking: remove the line"},
			{pool + hold + "    reference: «json:/a\n", "reference: is for action book"},
			{pool + "    «hold: [path:booking, json:/b]\n", "takes one extractor, not a list of 2"},
			{pool + "    hold: «path:bookng\n", "has no variable bookng, did you mean booking?"},
			{pool + hold + "    outcomes: [{ when: { status: 409 }, is: «busy }]\n", "busy is not an outcome of action " + action + ": write done, refused or unknown"},
			{pool + hold + "    outcomes: [{ when: { status: 409 }, is: «booked }]\n", "booked is not an outcome"},
			{pool + hold + "    outcomes: [{ when: { status: 409 }, is: «sold_out }]\n", "sold_out is not an outcome"},
			{pool + hold + "    outcomes: [{ when: { status: 409 }, is: «duplicate }]\n", "duplicate is not an outcome"},
			{pool + hold + "    retry: { «on: [busy] }\n", "has no place with action " + action},
			{pool + hold + "    idempotency: { store: [«booked] }\n", "booked has no place here: an answer can be kept when it is done or refused"},
			{pool + hold + "    idempotency: { unknown: «probe }\n", "probe is for action book"},
			{"    pool: «lesson\n" + hold, "there is no pool lesson, did you mean lessons?"},
		} {
			t.Run(action+" "+row.lines, func(t *testing.T) {
				if row.want == "" {
					load(t, withRule(action, row.lines), LoadOptions{})
					return
				}
				expectFault(t, withRule(action, row.lines), row.want, LoadOptions{})
			})
		}
		for lines, want := range map[string]string{
			hold:                                  "pool: is required for action " + action,
			pool + "    subject: json:/student\n": "slot: is required for action " + action + " without hold",
			pool + "    slot: json:/lesson\n":     "subject: is required for action " + action + " without hold",
		} {
			src := strings.Replace(withRule(action, lines), "  - name: other", "  - «name: other", 1)
			t.Run(action+" "+want, func(t *testing.T) { expectFault(t, src, want, LoadOptions{}) })
		}
	}
}

func TestValidateReferences(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"reference: json:/data/booking_id", ""},
		{"reference: header:X-Booking-Id", ""},
		{"reference: { from: json:/id, as: integer }", ""},
		{"reference: [json:/id]", ""},
		{"reference: «path:lesson", "path:lesson cannot be read from an answer"},
		{"reference: [«form:id]", "form:id cannot be read from an answer"},
		{"reference: «cookie:id", "cookie:id cannot be read from an answer"},
		{"reference: «json:id", "write /id"},
		{"«reference: [json:/a, json:/b]", "takes one extractor"},
		{"hold: «path:lesson", "is for actions cancel and confirm"},
	} {
		t.Run(row.text, func(t *testing.T) {
			if row.want == "" {
				load(t, edit(t, "name:", row.text), LoadOptions{})
				return
			}
			expectFault(t, edit(t, "name:", row.text), row.want, LoadOptions{})
		})
	}
	for line, want := range map[string]string{
		"    reference: «json:/a\n": "is for action book",
		"    hold: «path:booking\n": "is for actions cancel and confirm",
	} {
		expectFault(t, withRule("guard", line), want, LoadOptions{})
	}
}

func TestValidateProbe(t *testing.T) {
	probing := func(capacity, lines string) string {
		return strings.Replace(base, "capacity: 6", capacity, 1) + lines
	}
	const (
		probe = "    subject: json:/s\n    idempotency: { unknown: «probe }\n"
		want  = "probe asks truth, and pool lessons has no bookings in its capacity"
	)
	withBookings := strings.TrimSuffix(sqlTruth, " }") + `, bookings: { query: "SELECT id, student FROM b WHERE slot = $1" } }`
	byPath := strings.TrimSuffix(httpTruth, " }") + `, bookings: { path: "/b/{slot}/{subject}" } }`
	for _, capacity := range []string{withBookings, byPath} {
		cfg := load(t, strings.Replace(probing(capacity, probe), "«", "", 1), LoadOptions{})
		set, err := NewSet(cfg)
		if err != nil || !set.Rules[0].ProbesUnknown() || set.Rules[0].RetryUnknown() {
			t.Errorf("%s: the rule does not probe: %v", capacity, err)
		}
	}
	for _, capacity := range []string{"capacity: 6", "capacity: learned", sqlTruth, httpTruth} {
		expectFault(t, probing(capacity, probe), want, LoadOptions{})
	}
	expectFault(t, probing(withBookings, strings.Replace(probe, "    subject: json:/s\n", "", 1)), "write where the request says the subject", LoadOptions{})
	expectFault(t, probing("capacity: «sixx", strings.Replace(probe, "«", "", 1)), `"sixx" is no capacity`, LoadOptions{})
	expectFault(t, withRule("guard", "    idempotency: { unknown: «probe }\n"), "probe is for action book", LoadOptions{})
}

// TestStoreFollowsTheAction: what is kept where idempotency.store does not say.
func TestStoreFollowsTheAction(t *testing.T) {
	for action, want := range map[string]string{"book": "[booked duplicate]", "guard": "[booked duplicate]", "cancel": "[done]", "confirm": "[done]"} {
		lines := "    pool: lessons\n    slot: path:booking\n    subject: json:/s\n    idempotency: { ttl: 1h }\n"
		if action == "guard" {
			lines = strings.Replace(lines, "    pool: lessons\n", "", 1)
		}
		cfg := load(t, withRule(action, lines), LoadOptions{})
		if got := fmt.Sprint(cfg.Rules[1].Idempotency.Store); got != want {
			t.Errorf("%s keeps %s, want %s", action, got, want)
		}
		cfg = load(t, withRule(action, strings.Replace(lines, "ttl: 1h", "store: []", 1)), LoadOptions{})
		if got := cfg.Rules[1].Idempotency.Store; got == nil || len(got) > 0 {
			t.Errorf("%s: store: [] keeps %v", action, got)
		}
	}
	keeps := Rule{RuleConfig: RuleConfig{Action: "cancel", Idempotency: &IdempotencyConfig{}}}
	if !keeps.Keeps(Done) || keeps.Keeps(Refused) || keeps.Keeps(Unknown) {
		t.Error("a cancel keeps other answers than done")
	}
}
