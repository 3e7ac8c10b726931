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
	slotParts = []string{"clock", "pool_index", "form", "server", "bounds", "finished", "hold", "truth", "cancel", "slot", "subject", "holders", "hold_moves",
		"pool_looks", "pool_outbox", "slot_save", "full"}
	// The usual case comes before the functions of all others: Redis makes these anew for
	// each call that gets to them.
	decideParts = slices.Insert(slices.Clone(slotParts), 2, "decide_usual", "decide_limited")
	settleParts = slices.Insert(slices.Clone(slotParts), 1, "settle_usual")
	leaderParts = []string{"clock", "form", "bounds", "finished"}
	keyParts    = []string{"clock", "form", "bounds", "finished", "key"}
)

// The scripts. Their contracts stand at the head of the entry files.
var (
	Decide      = assemble("decide", decideParts, "key", "decide_key", "decide_adopt", "limit", "pool_subject", "decide_slot", "decide_cancel")
	Settle      = assemble("settle", settleParts, "key", "settle_slot", "settle_cancel", "settle_key")
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
	Announce    = assemble("announce", []string{"clock", "form"})
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
	Note        = assemble("note", []string{"clock", "form", "bounds"})
	Enlist      = assemble("enlist", []string{"clock", "form", "bounds", "pool_index"})
	Plan        = assemble("plan", []string{"clock", "form", "pool_looks"})
	Ship        = assemble("ship", []string{"clock", "form", "bounds", "hold", "truth", "subject", "slot_save"})
	Shipped     = assemble("shipped", []string{"clock", "bounds"})
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
	source := "#!lua\n" + withoutConstants(withoutUnused(body.String()))
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

// constant is a line that names a number or text in capitals.
var constant = regexp.MustCompile(`^local ([A-Z][A-Z_]+) = (-?\d+(?: \^ \d+)?|'[^'\n]*')(?: +--.*)?\n$`)

// eachToken calls f with the words, the quoted texts and what stands between them.
func eachToken(source string, f func(token string, word bool)) {
	isWord := func(c byte) bool {
		return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	}
	plain := 0 // where what stands between began
	token := func(from, to int, word bool) {
		if from > plain {
			f(source[plain:from], false)
		}
		f(source[from:to], word)
		plain = to
	}
	for i := 0; i < len(source); {
		switch c := source[i]; {
		case c == '\'':
			end := strings.IndexAny(source[i+1:], "'\n")
			if end < 0 || source[i+1+end] == '\n' {
				i++
				continue
			}
			token(i, i+end+2, false)
			i = plain
		case isWord(c) && (c < '0' || c > '9'):
			end := i + 1
			for end < len(source) && isWord(source[end]) {
				end++
			}
			token(i, end, true)
			i = end
		default:
			i++
		}
	}
	if plain < len(source) {
		f(source[plain:], false)
	}
}

// block is a function at the top level, or what stands between two of them.
type block struct {
	name string // "": no function
	text string
	uses map[string]int
}

// blocks takes a script apart. A function at the top level ends with the next line that is
// "end" alone, or with its own line.
func blocks(source string) []*block {
	var list []*block
	inside, from, at := false, 0, 0 // of a function; of the last block and the line in source
	for line := range strings.Lines(source) {
		name, isFunction := strings.CutPrefix(line, "local function ")
		if !inside && (isFunction || len(list) == 0 || list[len(list)-1].name != "") {
			list, from = append(list, &block{uses: map[string]int{}}), at
		}
		at += len(line)
		last := list[len(list)-1]
		last.text = source[from:at]
		switch {
		case inside:
			inside = line != "end\n"
		case isFunction:
			last.name, _, _ = strings.Cut(name, "(")
			inside = !strings.HasSuffix(line, " end\n")
		}
	}
	return list
}

// withoutUnused drops the functions of the parts that an entry does not call: Redis would
// make them anew for each call of the script.
func withoutUnused(source string) string {
	list := blocks(source)
	uses := map[string]int{}
	for _, b := range list {
		eachToken(b.text, func(token string, word bool) {
			if word {
				b.uses[token]++
				uses[token]++
			}
		})
	}
	for before := -1; before != len(list); {
		before = len(list)
		list = slices.DeleteFunc(list, func(b *block) bool {
			if b.name == "" || uses[b.name] > 1 {
				return false
			}
			for word, n := range b.uses {
				uses[word] -= n
			}
			return true
		})
	}
	var kept strings.Builder
	for _, b := range list {
		kept.WriteString(b.text)
	}
	return kept.String()
}

// withoutConstants puts the value of each constant where it is used. Redis runs a script
// from its first line for each call, and makes all its functions anew: in each of them a
// constant would be one more variable to be found.
func withoutConstants(source string) string {
	values := map[string]string{}
	var b, rest strings.Builder
	for line := range strings.Lines(source) {
		name, isLocal := strings.CutPrefix(line, "local ")
		if isLocal && 'A' <= name[0] && name[0] <= 'Z' {
			if found := constant.FindStringSubmatch(line); found != nil {
				values[found[1]] = "(" + found[2] + ")"
				continue
			}
		}
		rest.WriteString(line)
	}
	eachToken(rest.String(), func(token string, word bool) {
		if value, ok := values[token]; ok && word {
			token = value
		}
		b.WriteString(token)
	})
	return b.String()
}
