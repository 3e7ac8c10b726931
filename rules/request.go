package rules

import "net/netip"

// Field is one header line as it was sent; the value has no surrounding blanks.
type Field struct{ Name, Value string }

// Request is what the rules may look at: an immutable copy made at the edge.
// Body is nil until it has been read; it is complete for a rule that reads it
// (Rule.ReadsBody) and where Match.NeedsBody says so, as received, still in its
// content coding.
type Request struct {
	Method string // as sent
	Path   string // raw, percent-encoded, as sent, without the query
	Query  string // raw, without "?"
	Host   string
	Header []Field // in the order sent, every line
	Body   []byte
	Client netip.Addr
	Issued Issued // nil: the gate has handed out nothing
	Texts  *Texts // make the texts that are found in it; nil: each has memory of its own
}

// Param is a path variable, decoded.
type Param struct{ Name, Value string }

// Params are path variables, in the order of the path. Up to maxInlineParams of them take
// no memory of their own.
type Params struct {
	few   [maxInlineParams]Param
	count int     // of few
	many  []Param // all of them, where they are more
}

const maxInlineParams = 4

// All lists them.
func (p *Params) All() []Param {
	if p.many != nil {
		return p.many
	}
	return p.few[:p.count]
}

func (p *Params) add(param Param) {
	switch {
	case p.many != nil:
		p.many = append(p.many, param)
	case p.count == len(p.few):
		p.many = append(append(make([]Param, 0, 2*len(p.few)), p.few[:]...), param)
	default:
		p.few[p.count] = param
		p.count++
	}
}

// Match is the rule that a request fell under. Rule is nil when none did.
type Match struct {
	Rule   *Rule
	Method string // the effective method
	Path   string // the normal form that matched
	Params Params
	// NeedsBody tells that the body decides which rule it is, see Set.Match.
	NeedsBody bool
}

// Facts is all a decision needs to know of a request. Texts built from several
// parts are length-prefixed, so that no two lists of parts meet.
type Facts struct {
	Slot    string
	Subject string // "": the rule names no subject
	Units   int64
	// HoldRef is the booking's id that a cancel or confirm names, as
	// Rule.ExtractReference reads it from the book answer; "": the rule names
	// slot and subject instead.
	HoldRef string

	// Key is the idempotency key after unquoting, "" without one. Group,
	// Partition and Key together name the key's record. KeySourceOf tells where it
	// comes from.
	Key       string
	Group     string
	Partition string
	// Scope is who sent it: equal scopes may see each other's stored answers.
	// "" when every scope extractor found nothing.
	Scope string
	// Fingerprint is a SHA-256 over method, normal path, pool, slot, subject,
	// units, hold reference and what idempotency.fingerprint adds.
	Fingerprint [32]byte

	Client netip.Addr
}

// Response is a backend's answer as the classification sees it. Body is as
// received, still in its content coding.
type Response struct {
	Status int
	Header []Field
	Body   []byte
}

// RefusalKind says why a request is not understood. The words are those of
// Gate-Decision.
type RefusalKind string

const (
	RefuseAmbiguous    RefusalKind = "ambiguous"
	RefuseUnidentified RefusalKind = "unidentified"
	RefuseKeyMissing   RefusalKind = "key-missing"
	RefuseKeyInvalid   RefusalKind = "key-invalid"
	RefuseTooLarge     RefusalKind = "too-large"
	RefuseUnsupported  RefusalKind = "unsupported"
)

// Refusal is the answer to a request that could be read two ways or lacks a
// fact. Detail is for the client: it names the part, never its value.
type Refusal struct {
	Kind   RefusalKind
	Detail string
}

func (r *Refusal) Error() string { return string(r.Kind) + ": " + r.Detail }
