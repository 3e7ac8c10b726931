// Package luascripts holds the scripts that make each store call one atomic step
// in Redis, and the names of the keys they touch.
//
// A script is an entry file, headed by its KEYS, ARGV and reply, with the parts it
// uses in front: the parts are written to be run apart too, where the slot and the
// key live on different shards. Every key a script touches is declared; every key
// it writes gets a time to live; everything is checked before anything is written.
package luascripts

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed *.lua
var files embed.FS

// Script is the text of a script and the digest Redis knows it by.
type Script struct {
	Name   string
	Source string
	SHA1   string // lower-case hex
}

var slotParts = []string{"clock", "bounds", "finished", "hold", "truth", "cancel", "slot", "subject", "hold_moves", "slot_save", "full"}

var leaderParts = []string{"clock", "bounds", "finished"}

// The scripts. Their contracts stand at the head of the entry files.
var (
	Decide      = assemble("decide", slotParts, "limit", "key", "decide_key", "decide_slot", "decide_cancel")
	Settle      = assemble("settle", slotParts, "key", "settle_slot", "settle_cancel", "settle_key")
	SlotRead    = assemble("slot_read", slotParts, "slot_view")
	SlotChange  = assemble("slot_change", slotParts, "slot_view")
	SlotRelease = assemble("slot_release", slotParts)
	Touch       = assemble("touch", slotParts, "key")
	Look        = assemble("look", slotParts, "run")
	Apply       = assemble("apply", slotParts, "run")
	Due         = assemble("due", leaderParts)
	Lead        = assemble("lead", leaderParts)
	Resign      = assemble("resign", leaderParts)
	Epoch       = assemble("epoch", nil)
)

// All lists the scripts.
func All() []*Script {
	return []*Script{Decide, Settle, SlotRead, SlotChange, SlotRelease, Touch, Look, Apply, Due, Lead, Resign, Epoch}
}

// assemble puts the parts in front of an entry. The first line makes Redis refuse
// keys of several cluster slots, and memory shortage before the script starts.
func assemble(entry string, parts []string, more ...string) *Script {
	var source strings.Builder
	source.WriteString("#!lua\n")
	for _, names := range [][]string{parts, more, {entry}} {
		for _, name := range names {
			text, err := files.ReadFile(name + ".lua")
			if err != nil {
				panic(err) // a file that was not embedded: caught by any test
			}
			source.Write(withoutComments(text))
		}
	}
	sum := sha1.Sum([]byte(source.String()))
	return &Script{Name: entry, Source: source.String(), SHA1: hex.EncodeToString(sum[:])}
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
