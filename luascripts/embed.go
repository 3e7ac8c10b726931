// Package luascripts holds the scripts that make each store call one atomic step
// in Redis, and the names of the keys they touch.
//
// A script is an entry file, headed by its KEYS, ARGV and reply, with the parts it
// uses in front: the parts are written to be run apart too, where the slot and the
// key live on different shards. Every key a script touches is declared; every key
// it writes gets a time to live; everything is checked before anything is written.
package luascripts

import (
	"bytes"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

//go:embed *.lua
var files embed.FS

// Script is the text of a script and the digest Redis knows it by.
type Script struct {
	Name   string
	Source string
	SHA1   string   // lower-case hex
	parts  []string // the files it is made of
}

var (
	slotParts = []string{"clock", "bounds", "finished", "hold", "truth", "cancel", "slot", "subject", "hold_moves",
		"pool_index", "pool_looks", "pool_outbox", "slot_save", "full"}
	leaderParts = []string{"clock", "bounds", "finished"}
	keyParts    = []string{"clock", "bounds", "finished", "key"}
)

// The scripts. Their contracts stand at the head of the entry files.
var (
	Decide      = assemble("decide", slotParts, "limit", "key", "decide_key", "decide_adopt", "pool_subject", "decide_slot", "decide_cancel")
	Settle      = assemble("settle", slotParts, "key", "settle_slot", "settle_cancel", "settle_key")
	SlotRead    = assemble("slot_read", slotParts, "slot_view")
	SlotChange  = assemble("slot_change", slotParts, "slot_view")
	SlotRelease = assemble("slot_release", slotParts)
	Touch       = assemble("touch", slotParts, "key", "touch_key")
	Look        = assemble("look", slotParts, "run")
	Apply       = assemble("apply", slotParts, "run")
	Due         = assemble("due", leaderParts)
	Lead        = assemble("lead", leaderParts)
	Resign      = assemble("resign", leaderParts)
	Epoch       = assemble("epoch", nil)
	Announce    = assemble("announce", []string{"clock"})
)

// The scripts that a cluster needs besides, where a call is several steps on several
// shards.
var (
	Claim       = assemble("claim", keyParts, "decide_key")
	ClaimHold   = assemble("claim_hold", keyParts, "key_claimed")
	ClaimBooked = assemble("claim_booked", keyParts, "key_claimed", "decide_key")
	ClaimEnd    = assemble("claim_end", keyParts, "key_claimed")
	ClaimForced = assemble("claim_forced", keyParts, "touch_key")
	ClaimSettle = assemble("claim_settle", keyParts, "settle_key")
	Charge      = assemble("charge", leaderParts, "limit")
	Reserve     = assemble("reserve", leaderParts, "pool_subject")
	Unreserve   = assemble("unreserve", nil)
	Note        = assemble("note", []string{"clock"})
	Enlist      = assemble("enlist", []string{"clock", "bounds", "pool_index"})
	Plan        = assemble("plan", []string{"clock", "pool_looks"})
	Ship        = assemble("ship", []string{"clock"})
	Shipped     = assemble("shipped", []string{"bounds"})
	Publish     = assemble("publish", []string{"bounds", "pool_outbox"})
)

// All lists the scripts.
func All() []*Script {
	return []*Script{Decide, Settle, SlotRead, SlotChange, SlotRelease, Touch, Look, Apply, Due, Lead, Resign, Epoch, Announce,
		Claim, ClaimHold, ClaimBooked, ClaimEnd, ClaimForced, ClaimSettle, Charge, Reserve, Unreserve, Note,
		Enlist, Plan, Ship, Shipped, Publish}
}

// assemble puts the parts in front of an entry. The first line makes Redis refuse
// keys of several cluster slots, and memory shortage before the script starts.
func assemble(entry string, parts []string, more ...string) *Script {
	all := slices.Concat(parts, more, []string{entry})
	var body bytes.Buffer
	for _, name := range all {
		text, err := files.ReadFile(name + ".lua")
		if err != nil {
			panic(err) // a file that was not embedded: caught by any test
		}
		body.Write(withoutComments(text))
	}
	source := "#!lua\n" + withoutConstants(body.String())
	sum := sha1.Sum([]byte(source))
	return &Script{Name: entry, Source: source, SHA1: hex.EncodeToString(sum[:]), parts: all}
}

// withoutComments drops lines that are comments or blank, which Redis need not be
// sent. The line numbers in its error messages count what is left.
func withoutComments(text []byte) []byte {
	var kept []byte
	for line := range strings.Lines(string(text)) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "--") {
			kept = append(kept, line...)
		}
	}
	return kept
}

var (
	constant = regexp.MustCompile(`(?m)^local ([A-Z][A-Z_]+) = (-?\d+(?: \^ \d+)?|'[^'\n]*')(?: +--.*)?\n`)
	word     = regexp.MustCompile(`'[^'\n]*'|[A-Za-z_]\w*`)
)

// withoutConstants puts the value of each constant, a number or text that a line of its
// own names in capitals, where it is used. Redis runs a script from its first line for
// each call, and makes all its functions anew: in each of them a constant would be one
// more variable to be found.
func withoutConstants(source string) string {
	values := map[string]string{}
	for _, found := range constant.FindAllStringSubmatch(source, -1) {
		values[found[1]] = "(" + found[2] + ")"
	}
	return word.ReplaceAllStringFunc(constant.ReplaceAllString(source, ""), func(word string) string {
		if value, ok := values[word]; ok {
			return value
		}
		return word
	})
}
