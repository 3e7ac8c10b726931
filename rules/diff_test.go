package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestDiffNamesWhatChangedAndShowsNoSecret(t *testing.T) {
	base := `version: 1
admin: { token: TOKEN }
upstream: { url: "http://127.0.0.1:9000", timeout: 4s }
pools:
  lessons: { capacity: 6, hold_ttl: 30s }
  POOL: { capacity: 1 }
  told: { capacity: { sql: { driver: postgres, dsn: "postgres://u:TOKEN@h/d", query: "SELECT 1 WHERE $1 = '1'", means: remaining }, hot: 5s } }
rules:
  - { name: book, match: { methods: [POST], path: "/l/{lesson}" }, pool: lessons, slot: path:lesson, limits: { slot: { rate: 50/s } } }
  - { name: other, match: { path: "/o/{lesson}" }, pool: POOL, slot: path:lesson }
`
	set := func(pairs ...string) *Config {
		return load(t, strings.NewReplacer(append(pairs, "TOKEN", "hunter2", "POOL", "spare")...).Replace(base), LoadOptions{})
	}
	was := set()
	if same := Diff(was, set()); len(same) != 0 {
		t.Errorf("of itself: %v", same)
	}
	is := set("TOKEN", "hunter3", "timeout: 4s", "timeout: 5s", "capacity: 6", "capacity: 8", "hot: 5s", "hot: 3s", "POOL", "rest", "50/s", "5/10s", "name: other", "name: another")
	var got []string
	for _, c := range Diff(was, is) {
		got = append(got, c.String())
	}
	want := []string{
		"admin.token: (secret) → (another)",
		"upstream.timeout: 4s → 5s",
		"pools.lessons.capacity: 6 → 8",
		"pools.told.capacity.sql.dsn: (secret) → (another)",
		"pools.told.capacity.hot: 5s → 3s",
		"pools.rest is new: {…}",
		"pools.spare is gone",
		"rules.another is new: {…}",
		"rules.book.limits.slot.rate: 50/s → 5/10s",
		"rules.other is gone",
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("no %q in\n%s", w, strings.Join(got, "\n"))
		}
	}
	if strings.Contains(strings.Join(got, "\n"), "hunter") {
		t.Errorf("shows a secret: %q", got)
	}
	moved := set()
	slices.Reverse(moved.Rules)
	if got := Diff(was, moved); len(got) != 1 || got[0] != (Change{"rules", "book, other", "other, book"}) {
		t.Errorf("reversed: %+v", got)
	}
}
