package rules

import (
	"slices"
	"testing"
)

func TestParseTemplate(t *testing.T) {
	for text, want := range map[string][]string{
		"/":                                nil,
		"/api/lessons":                     nil,
		"/api/lessons/":                    nil,
		"/api/lessons/{lesson}/bookings":   {"lesson"},
		"/{a}/{b_2}/{c-d}":                 {"a", "b_2", "c-d"},
		"/files/{rest...}":                 {"rest"},
		"/{tenant}/课程/caf%C3%A9/{rest...}": {"tenant", "rest"},
	} {
		got, err := ParseTemplate(text)
		if err != nil || !slices.Equal(got.Variables(), want) || got.String() != text {
			t.Errorf("ParseTemplate(%q) = %q %q, %v; want the variables %q", text, got, got.Variables(), err, want)
		}
	}
}

func TestParseTemplateRefuses(t *testing.T) {
	for _, text := range []string{
		"", "api", "/a//b", "/a/./b", "/a/../b", "/a/%2e%2e/b",
		"/{a}/{a}", "/{a}/{a...}", "/x{a}", "/{a}x", "/{a}{b}", "/{}", "/{...}", "/{1a}", "/{a:[0-9]+}", "/{a", "/a}", "/{a b}",
		"/{rest...}/x", "/{rest...}/",
		"/api/*", "/api/**", "/api/(x|y)", "/^api$", "/api/:lesson", "/api/[0-9]+", "/a?b", "/a#b", `/a\b`, "/a%2Fb", "/a%00", "/a%zz",
	} {
		if got, err := ParseTemplate(text); err == nil {
			t.Errorf("ParseTemplate(%q) = %q; want an error", text, got)
		}
	}
}

func TestTemplateOverlapsAndCovers(t *testing.T) {
	for _, c := range []struct {
		a, b             string
		overlap          bool
		aCovers, bCovers bool
	}{
		{"/a", "/a", true, true, true},
		{"/a", "/A/", true, true, true},
		{"/a", "/b", false, false, false},
		{"/a", "/a/b", false, false, false},
		{"/{x}", "/a", true, true, false},
		{"/{x}/b", "/a/{y}", true, false, false},
		{"/{x}/b", "/{y}/b", true, true, true},
		{"/{x}/b", "/{y}/c", false, false, false},
		{"/a/{r...}", "/a", true, true, false},
		{"/a/{r...}", "/a/b/c", true, true, false},
		{"/a/{r...}", "/b/c", false, false, false},
		{"/a/{r...}", "/{x}", true, false, false},
		{"/a/{r...}", "/{x}/{s...}", true, false, true},
		{"/a/b/{r...}", "/a/{s...}", true, false, true},
		{"/a/b/{r...}", "/a", false, false, false},
		{"/{r...}", "/", true, true, false},
	} {
		a, b := mustTemplate(t, c.a), mustTemplate(t, c.b)
		if a.Overlaps(b) != c.overlap || b.Overlaps(a) != c.overlap {
			t.Errorf("%q and %q overlap: %v, %v; want %v", c.a, c.b, a.Overlaps(b), b.Overlaps(a), c.overlap)
		}
		if a.Covers(b) != c.aCovers || b.Covers(a) != c.bCovers {
			t.Errorf("%q and %q cover each other: %v, %v; want %v, %v", c.a, c.b, a.Covers(b), b.Covers(a), c.aCovers, c.bCovers)
		}
	}
}

func mustTemplate(t *testing.T, text string) Template {
	t.Helper()
	tpl, err := ParseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}
