package rules

import "strings"

// suspect stands, in a suspect reading, for what cannot be read: any text, or none.
const suspect = '\x00'

// mayBe reports whether a suspect segment could be a literal.
func mayBe(segment, literal string) bool {
	known := strings.Split(foldCase(segment), string(suspect))
	last := len(known) - 1
	rest, ok := strings.CutPrefix(foldCase(literal), known[0])
	if !ok || last == 0 {
		return ok && rest == ""
	}
	if rest, ok = strings.CutSuffix(rest, known[last]); !ok {
		return false
	}
	for _, k := range known[1:last] {
		i := strings.Index(rest, k)
		if i < 0 {
			return false
		}
		rest = rest[i+len(k):]
	}
	return true
}

// suspectPaths lists what a path without a normal form might be taken for: with
// encoded slashes, and with backslashes, kept inside their segment or as separators,
// and cut at the first fault as C strings and URL parsers do.
func suspectPaths(raw string, d *dialect) []readings {
	opaque := suspectText(raw, suspect, suspect)
	texts := []string{opaque, suspectText(raw, '/', '/'), suspectText(raw, '/', suspect), suspectText(raw, suspect, '/')}
	if i := strings.IndexByte(opaque, suspect); i >= 0 {
		texts = append(texts, opaque[:i])
	}
	var list []readings
	for _, text := range texts {
		list = append(list, readText(text, d, nil))
	}
	return list
}

// suspectText is normalizeEscapes for a path with faults: each becomes a suspect
// byte, except that encoded slashes become slash and backslashes back.
func suspectText(raw string, slash, back byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c, encoded := raw[i], false
		if c == '%' {
			decoded, ok := unhexPair(raw, i+1)
			if !ok {
				out = append(out, suspect)
				if isUnicodeEscape(raw[i:]) {
					i += len("%uXXXX") - 1
				}
				continue
			}
			c, encoded = decoded, true
			i += 2
		}
		switch {
		case encoded && c == '/':
			out = append(out, slash)
		case c == '\\':
			out = append(out, back)
		case isUnreserved(c) || !encoded && (c == '/' || isPathChar(c)):
			out = append(out, c)
		default:
			out = append(out, suspect)
		}
	}
	return string(out)
}

// isUnicodeEscape reports whether s begins with %uXXXX, which old IIS decodes.
func isUnicodeEscape(s string) bool {
	if len(s) < len("%uXXXX") || s[1] != 'u' && s[1] != 'U' {
		return false
	}
	_, ok1 := unhexPair(s, 2)
	_, ok2 := unhexPair(s, 4)
	return ok1 && ok2
}
