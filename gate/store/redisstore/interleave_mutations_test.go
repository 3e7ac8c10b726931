package redisstore

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/store/storetest/interleave"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
)

// A rule that is taken out of the scripts is missed: some order of a small case breaks
// a promise without it.
func TestInterleavingsFindEveryMissingRule(t *testing.T) {
	open := interleaveRigs(testbed.Redis(t, "--databases", "1000"))
	sharded := shardedRigs(testbed.Redis(t, "--databases", "1000"))
	stepwise := map[string]bool{}
	cases := map[string]interleave.Case{}
	for _, c := range slices.Concat(interleave.Cases(), interleave.LargeCases(), interleave.Fragiles()) {
		cases[c.String()] = c
	}
	for _, c := range append(interleave.Stepwise(), interleave.LargeStepwise()...) {
		cases[c.String()], stepwise[c.String()] = c, true
	}
	for _, m := range []struct {
		rule    string
		text    string // of the scripts
		but     string // what stands there without the rule
		in      string // the case that misses it
		promise string // the one that breaks first
	}{
		{"only its owner releases a key",
			"local owned = rec.owner == d.id and", "local owned =", "two retries, late", "P2"},
		{"a booked attempt completes its key, though a retry owns it",
			"local made = open and", "local made = false and", "retry, late", "A3"},
		{"so it does on a cluster",
			"local made = open and", "local made = false and", "retry, step by step, late", "A3"},
		{"a finished id is not taken again (H4)",
			"if slot_finished(s, KEYS[6], KEYS[7]) then", "if false then", "retry", "P3"},
		{"a refusal of a call that was sent twice leaves a tombstone (H4)",
			"slot_finish(s, KEYS[7], '')", "", "cancel, other", "P3"},
		{"a grant is told again",
			"if i and hold_is_open(h) then", "if false then", "retry", "P3"},
		{"a settlement counts once",
			"local state = slot_finished(s, d.hold_grave, d.attempt_grave)", "local state", "retry", "P3"},
		{"a duplicate confirms (H1)",
			"if others_booked == 0 then return booked end", "", "retry", "S"},
		{"unless another hold of the subject is booked (H1)",
			"if others_booked == 0 then return booked end", "if true then return booked end", "two keys", "S"},
		{"one that was told before its booking goes when that is told (H1)",
			"local other = id and slot_hold(s, id)", "local other", "two keys", "A2"},
		{"a definite failure strikes out its own attempt only (H2)",
			"return (others or slot_doubted(s, h)) and 'unknown' or 'released'", "return 'released'", "retry", "P4"},
		{"who goes on under a hold renews it (H3)",
			"h.expires = s.now + d.hold_ttl\n  slot_start_attempt(s, h, d.id, d.lease)\n  slot_move(s, h, 'held', 'adopt')",
			"slot_start_attempt(s, h, d.id, d.lease)\n  slot_move(s, h, 'held', 'adopt')", "retry", "P4"},
		{"a twin waits while the owner of the key runs",
			"if rec.state == 'running' and not rec.overdue then", "if false then", "retry", "P2"},
		{"what is done is replayed",
			"if rec.state == 'done' then", "if false then", "retry, refusals stored", "P2"},
		{"under reject an unknown outcome is not tried again (H7)",
			"if not d.retry_unknown or rec.scope ~= d.scope then", "if rec.scope ~= d.scope then", "reject, keep unknown", "T1"},
		{"units of an unknown outcome are kept, where they are to be",
			"elseif not keep_unknown then", "elseif true then", "reject, keep unknown", "P4"},
		{"no more is taken than there is",
			"s.conf + s.held + d.units > capacity", "false", "retry, other", "P1"},
		{"a late booking is counted",
			"if r.late then r.oversold =", "if false then r.oversold =", "other, late", "P1"},
		{"a cancel of a hold with open attempts leaves it unknown (H8)",
			"if #h.attempts > 0 or running and running.open then", "if false then", "cancel, next", "P4"},
		{"a cancel waits for the booking that runs (H9)",
			"local waits = busy() or full()", "local waits = full()", "cancel, next", "A2"},
		{"a booking waits for the cancel that runs (H9)",
			"local running = cancel_running(s, subject)", "local running", "cancel, next", "A2"},
		{"a cancel frees the hold that it meant (H10)",
			"local h = d.hold ~= '' and slot_hold(s, d.hold)\n", "local h = slot_hold(s, slot_subject(s, d.subject).ids[1] or d.hold)\n",
			"cancel of nothing, late", "P4"},
		{"what a gate passed by, and is still at the backend, is registered (H18)",
			"local h = not known(f) and hold_for(f)", "local h = nil", "away", "P7"},
		{"a slot is believed under the run that it was verified under (H16)",
			"s.v.cap ~= nil and s.run == RUN", "s.v.cap ~= nil",
			"a replica behind, silent gates", "P7"},
		{"after a change of run the first look waits (H17)",
			"return math.max(0, math.ceil(RUN_SINCE / 1000) + hold_ttl - s.now)", "return 0",
			"emptied, silent gates", "P7"},
		{"on a cluster, who finds its hold booked does not forward (H21)",
			"if hold_is_booked(h) then return 'booked' end\n  adopt", "adopt", "retry, step by step", "P2"},
		{"on a cluster, a hold that is gone is taken under a new id (H22)",
			"if not h or hold_is_finished(h) then\n    if not d.pool_subject", "if not h then\n    if not d.pool_subject", "retry, other, step by step", "P1"},
		{"on a cluster, a twin waits while the claim stands",
			"if rec.state == 'running' and not rec.overdue then\n    r.verdict", "if false then\n    r.verdict", "retry, step by step", "P2"},
	} {
		t.Run(m.rule, func(t *testing.T) {
			withoutTheUsual(t) // it goes by many of the rules
			mutate(t, m.text, m.but)
			rigs := open
			if stepwise[m.in] {
				rigs = sharded
			}
			result := interleave.Explore(t, rigs, cases[m.in])
			for _, broken := range result.Broken {
				if strings.HasPrefix(broken.Promise, m.promise) {
					t.Log(&broken)
					return
				}
			}
			t.Errorf("%s does not break %s without it: %v", m.in, m.promise, result.Broken)
		})
	}
}

// mutate replaces a text of the scripts for the time of a test.
func mutate(t *testing.T, text, but string) {
	t.Helper()
	found := false
	for _, script := range luascripts.All() {
		if !strings.Contains(script.Source, text) {
			continue
		}
		found = true
		was := *script
		t.Cleanup(func() { *script = was })
		script.Source = strings.ReplaceAll(script.Source, text, but)
		sum := sha1.Sum([]byte(script.Source))
		script.SHA1 = hex.EncodeToString(sum[:])
	}
	if !found {
		t.Fatalf("no script has %q", text)
	}
}
