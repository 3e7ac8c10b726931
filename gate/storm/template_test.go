package storm

import (
	"strings"
	"testing"
)

func TestTemplateRenders(t *testing.T) {
	v := values{n: 47, subject: 12, key: "k1"}
	for text, want := range map[string]string{
		"":                          "",
		"plain":                     "plain",
		"/l/{n}/book":               "/l/47/book",
		"{n%20}":                    "7",
		"{n%20+1}":                  "8",
		"{n+1000}":                  "1047",
		"{subject%5}-{subject}":     "2-12",
		"{key}{key}":                "k1k1",
		`{"n":{n},"s":"{subject}"}`: `{"n":47,"s":"12"}`,
		`{}`:                        `{}`,
		`{"a":{"b":{}}}`:            `{"a":{"b":{}}}`,
		`{ n }`:                     `{ n }`,
		`{7}`:                       `{7}`,
		`{{n}`:                      `{n}`,
		`{{{n}}`:                    `{47}`,
		`{`:                         `{`,
		`{n`:                        `{n`,
		"{n%4294967295}":            "47",
	} {
		compiled, err := parseTemplate(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := string(compiled.append(nil, v)); got != want {
			t.Errorf("%q renders %q, want %q", text, got, want)
		}
	}
}

func TestTemplateErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a{lesson}":       "{lesson} at byte 1: unknown placeholder",
		"{N}":             "unknown placeholder",
		"{n%}":            "unknown placeholder",
		"{n%x}":           "unknown placeholder",
		"{n-1}":           "unknown placeholder",
		"{n%20+}":         "unknown placeholder",
		"{n+1%20}":        "unknown placeholder",
		"{key%2}":         "unknown placeholder",
		"{n%0}":           "number after % must be 1 to",
		"{n%4294967296}":  "number after % must be 1 to",
		"{n+99999999999}": "number after + must be 0 to",
	} {
		_, err := parseTemplate(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{`{"n":{n%20+1}}`, "{{{key}", "{subject", "{n%18446744073709551616}", "\x00{"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		compiled, err := parseTemplate(text)
		if err != nil {
			return
		}
		rendered := string(compiled.append(nil, values{n: 1, subject: 2, key: "3"}))
		if !strings.Contains(text, "{") && rendered != text {
			t.Errorf("%q without a placeholder became %q", text, rendered)
		}
	})
}
