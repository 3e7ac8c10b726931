package rules

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
)

// fingerprintVersion changes when equal requests begin to print differently, so that
// gates of two versions never mistake each other's keys.
const fingerprintVersion = "slotgate-1"

// Fingerprint prints what makes two requests the same, of the facts that Read found. What
// the units are held for is part of it in every mode: else a retry could go on under a
// hold of another slot.
func (x *Extraction) Fingerprint(f *Facts) [sha256.Size]byte {
	var stack [512]byte
	b := stack[:0]
	b = appendPart(b, fingerprintVersion)
	b = appendPart(b, x.match.Method)
	b = appendPart(b, x.match.Path)
	if x.rule.Pool != nil {
		b = appendPart(b, x.rule.Pool.Name)
	}
	b = appendPart(b, f.Slot)
	b = appendPart(b, f.Subject)
	b = appendPart(b, strconv.FormatInt(f.Units, 10))
	if f.HoldRef != "" { // a retry of a cancel must mean the same booking
		b = appendPart(b, f.HoldRef)
	}
	switch x.rule.fingerprint {
	case FingerprintAuto:
		b = appendQuery(b, x.req.Query)
		if x.rule.readsBody {
			kind, digest := x.digestBody()
			b = appendPart(b, kind)
			b = append(b, digest[:]...)
		}
	case FingerprintBody:
		digest := sha256.Sum256(x.bodyBytes())
		b = append(b, digest[:]...)
	case FingerprintList:
		b = append(b, x.printed...)
	}
	return sha256.Sum256(b)
}

// readPrinted reads the list of FingerprintList, the one mode in which a request may be
// refused for it.
func (x *Extraction) readPrinted() *Refusal {
	for i := range x.rule.printed {
		s := &x.rule.printed[i]
		value, found, ok, refusal := x.text(s)
		switch {
		case refusal != nil:
			return refusal
		case found && !ok:
			return refuse(RefuseUnidentified, "fingerprint: %s is not a whole number in plain digits", s.label)
		case !found:
			x.printed = append(x.printed, partMark, '-')
		default:
			x.printed = appendPart(x.printed, value)
		}
	}
	return nil
}

// bodyBytes is the body out of its content coding, or as it came where it cannot be
// read: equal bytes are an equal request all the same.
func (x *Extraction) bodyBytes() []byte {
	if x.body.load(x) != nil {
		return x.req.Body
	}
	return x.body.text
}

// digestBody reads the body by what it is, so that spellings of one content print
// alike, and falls back to its bytes.
func (x *Extraction) digestBody() (kind string, digest [sha256.Size]byte) {
	text := x.bodyBytes()
	if x.body.refusal == nil {
		switch x.body.kind {
		case bodyJSON:
			if x.json.check(text) {
				return "json", digestJSON(text)
			}
		case bodyURLEncoded:
			if b, ok := appendPairs(nil, string(text)); ok {
				return "form", sha256.Sum256(b)
			}
		case bodyMultipart:
			if x.form.load(x) == nil {
				return "multipart", digestParts(x.form.parts)
			}
		}
	}
	return "bytes", sha256.Sum256(text)
}

// appendPairs adds the decoded pairs in their order.
func appendPairs(b []byte, raw string) ([]byte, bool) {
	for piece := range splitPairs(raw) {
		name, value, _ := strings.Cut(piece, "=")
		name, ok1 := decodePercent(name, true)
		value, ok2 := decodePercent(value, true)
		if !ok1 || !ok2 {
			return nil, false
		}
		b = appendPart(appendPart(b, name), value)
	}
	return b, true
}

// appendQuery adds the decoded pairs by name: their order is the client's whim, save
// among pairs of one name.
func appendQuery(b []byte, raw string) []byte {
	if raw == "" {
		return b
	}
	type pair struct{ name, value string }
	var few [8]pair
	pairs := few[:0]
	for piece := range splitPairs(raw) {
		name, value, _ := strings.Cut(piece, "=")
		decodedName, ok1 := decodePercent(name, true)
		decodedValue, ok2 := decodePercent(value, true)
		if ok1 && ok2 {
			name, value = decodedName, decodedValue
		}
		pairs = append(pairs, pair{name, value})
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	for _, p := range pairs {
		b = appendPart(appendPart(b, p.name), p.value)
	}
	return b
}

func digestParts(parts []part) [sha256.Size]byte {
	var b []byte
	for i := range parts {
		p := &parts[i]
		b = appendPart(b, p.name)
		b = appendPart(b, strconv.FormatBool(p.file))
		b = appendPart(b, p.filename)
		b = appendPart(b, p.contentType)
		digest := sha256.Sum256(p.content)
		b = append(b, digest[:]...)
	}
	return sha256.Sum256(b)
}
