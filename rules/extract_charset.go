package rules

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// charset reads texts of a body to UTF-8.
type charset struct {
	encoding encoding.Encoding // nil: UTF-8
	// disputed: the label says one charset and the rule another, so that only what
	// is ASCII is the same to everybody.
	disputed bool
}

// newCharset finds a charset by any of its names (WHATWG Encoding). Charsets that
// write other text with the bytes of ASCII are no use here: "&" would not be "&".
func newCharset(name string) (charset, error) {
	if name == "" || isUTF8Name(name) {
		return charset{}, nil
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		return charset{}, fmt.Errorf("%q is not a charset: write one such as utf-8, gbk, shift_jis", name)
	}
	switch canonical, _ := htmlindex.Name(e); canonical {
	case "utf-8":
		return charset{}, nil
	case "utf-16be", "utf-16le", "iso-2022-jp", "replacement", "x-user-defined":
		return charset{}, fmt.Errorf("%q cannot be read here: it is not an extension of ASCII; write one such as utf-8, gbk, shift_jis", name)
	}
	return charset{encoding: e}, nil
}

func isUTF8Name(name string) bool {
	switch strings.ToLower(name) {
	case "utf-8", "utf8", "us-ascii", "ascii":
		return true
	}
	return false
}

// labelled is the charset of a text that has a label of its own, or none. It fails
// for one that is neither UTF-8 nor the rule's.
func (c charset) labelled(label string) (charset, bool) {
	if label == "" {
		return c, true
	}
	if isUTF8Name(label) {
		return charset{disputed: c.disputed || c.encoding != nil}, true
	}
	other, err := newCharset(label)
	return c, err == nil && c.encoding != nil && other.encoding == c.encoding
}

// text is s in UTF-8; it fails for what is no text in the charset.
func (c charset) text(s string) (string, bool) {
	switch {
	case isASCII(s):
		return s, true
	case c.disputed:
		return "", false
	case c.encoding == nil:
		return s, utf8.ValidString(s)
	}
	text, err := c.encoding.NewDecoder().String(s)
	return text, err == nil && !strings.ContainsRune(text, utf8.RuneError)
}

// name is text for a name: what cannot be read gives another name than any in a rule.
func (c charset) name(s string) string {
	switch {
	case isASCII(s) || !c.disputed && c.encoding == nil:
		return s
	case c.disputed:
		return ""
	}
	text, _ := c.encoding.NewDecoder().String(s)
	return text
}

// head is text for the head of a part, of which only some has to be readable.
func (c charset) head(s string) string {
	if text, ok := c.text(s); ok {
		return text
	}
	return s
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
