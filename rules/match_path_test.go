package rules

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNormalizePath(t *testing.T) {
	for raw, want := range map[string]string{
		"/":                             "/",
		"/api/lessons/7":                "/api/lessons/7",
		"/api/lessons/7/":               "/api/lessons/7/",
		"/%61pi/%6Cessons":              "/api/lessons",
		"/a%7Eb%2dc%2Ed%5fe":            "/a~b-c.d_e",
		"/caf%c3%a9":                    "/caf%C3%A9",
		"/café":                         "/caf%C3%A9",
		"/a b":                          "/a%20b",
		`/a"<>{}|^` + "`":               "/a%22%3C%3E%7B%7D%7C%5E%60",
		"/a%2Cb%3bc%25d":                "/a%2Cb%3Bc%25d",
		"/a,b;c":                        "/a,b;c",
		"/a//b///c":                     "/a/b/c",
		"//a":                           "/a",
		"/a/./b":                        "/a/b",
		"/a/../b":                       "/b",
		"/a/%2e%2E/b":                   "/b",
		"/a/.":                          "/a/",
		"/a/b/..":                       "/a/",
		"/../../a":                      "/a",
		"/..":                           "/",
		"/a//../b":                      "/b",
		"/a/.../b":                      "/a/.../b",
		"/a/.hidden":                    "/a/.hidden",
		"/....//":                       "/..../",
		"/%252e%252e/a":                 "/%252e%252e/a",
		"/a%3Fb%23c":                    "/a%3Fb%23c",
		"/" + strings.Repeat("x/", 100): "/" + strings.Repeat("x/", 100),
	} {
		got, err := NormalizePath(raw)
		if err != nil || got != want {
			t.Errorf("NormalizePath(%q) = %q, %v; want %q", raw, got, err, want)
		}
	}
}

func TestNormalizePathRefuses(t *testing.T) {
	for _, raw := range []string{
		"", "a", "*", "http://host/a",
		"/a%2Fb", "/a%2fb", "/a%5Cb", `/a\b`, "/a%00b", "/a\x00b",
		"/a%", "/a%4", "/a%zz", "/a%u0041", "/a%%41",
		"/a%c0%afb", "/a%ff", "/a\xff", "/a%ed%a0%80",
		"/a\tb", "/a%0d%0ab", "/a%7f",
		"/a?b", "/a#b",
	} {
		if got, err := NormalizePath(raw); err == nil {
			t.Errorf("NormalizePath(%q) = %q; want an error", raw, got)
		}
	}
}

func TestNormalizePathIsIdempotent(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"/", "//", ".", "..", "%2e", "%2E%2e", "a", "Z", "%41", "%25", "%7e", ";", ";x=1", "%3b", "é", "%c3%a9", " ", "%20", "+", "{"}),
		rapid.StringN(1, 3, 8),
	)
	rapid.Check(t, func(t *rapid.T) {
		checkNormalForm(t, "/"+strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), ""))
	})
}

// checkNormalForm holds what every normal form must satisfy.
func checkNormalForm(t interface {
	Helper()
	Errorf(string, ...any)
}, raw string) {
	t.Helper()
	normal, err := NormalizePath(raw)
	if err != nil {
		return
	}
	again, err := NormalizePath(normal)
	if err != nil || again != normal {
		t.Errorf("NormalizePath(%q) = %q, but of that %q, %v", raw, normal, again, err)
	}
	if normal[0] != '/' || strings.Contains(normal, "//") {
		t.Errorf("NormalizePath(%q) = %q, with an empty segment", raw, normal)
	}
	for s := range strings.SplitSeq(normal, "/") {
		if s == "." || s == ".." {
			t.Errorf("NormalizePath(%q) = %q, with a dot segment", raw, normal)
		}
	}
	for i := 0; i < len(normal); i++ {
		if c := normal[i]; c != '/' && c != '%' && !isPathChar(c) {
			t.Errorf("NormalizePath(%q) = %q, with %q", raw, normal, c)
		}
	}
}

func FuzzNormalizePath(f *testing.F) {
	for _, raw := range []string{"/", "/a/../b//c;x/%2e%2E/%c3%a9", "/a%2Fb", "/%", "/..;/a", "/a//../b", "/....//", `/\`} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		checkNormalForm(t, raw)
		for name, d := range dialects {
			suspectPaths(raw, d)
			paths, err := readPath(raw, d, nil)
			if err != nil {
				continue
			}
			for i := range paths.count() {
				p, _ := paths.at(i)
				for j := range p.segments {
					s := p.segment(j)
					if s == "" || (s == "." || s == "..") && !d.keepsDots {
						t.Errorf("%s: readPath(%q) has the segment %q", name, raw, s)
					}
				}
			}
			if normal, err := NormalizePath(raw); err != nil || paths.normal.String() != normal {
				t.Errorf("%s: readPath(%q) has %q first; the normal form is %q, %v", name, raw, paths.normal.String(), normal, err)
			}
		}
	})
}
