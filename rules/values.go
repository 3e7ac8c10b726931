package rules

import "time"

// Size is a number of bytes, written as 64KiB, 1MiB, 2GiB.
type Size int64

// Rate is Count events in Per, written as 50/s, 5/10s, 100/1m.
type Rate struct {
	Count int
	Per   time.Duration
}

// CapacityKind tells where the number of units of a slot comes from.
type CapacityKind uint8

const (
	CapacityNumber  CapacityKind = iota // Units
	CapacityLearned                     // the backend's own "sold out" tells
	CapacitySQL                         // truth by a query
	CapacityHTTP                        // truth by a request to the backend
)

// Capacity of a pool's slots.
type Capacity struct {
	Kind  CapacityKind
	Units int64        // CapacityNumber
	Truth *TruthConfig // CapacitySQL and CapacityHTTP, nil for others
}

// Recovers reports whether a look at the pool's truth corrects what the store
// counts. MeansCapacity only sets the total.
func (c Capacity) Recovers() bool {
	return c.Truth != nil && c.Truth.Means() != MeansCapacity
}

// Source is where an extractor reads.
type Source uint8

const (
	FromPath Source = iota + 1
	FromQuery
	FromHeader
	FromCookie
	FromForm
	FromJSON
	FromIP
	FromConst
)

// Extractor reads one value from a request: `json:/student_id`, or the long form
// { from: json:/student_id, as: integer, case: fold }. For FromJSON, Name is the
// JSON Pointer (RFC 6901) as written; for FromConst it is the value.
type Extractor struct {
	Source  Source
	Name    string
	Integer bool // as: integer
	Fold    bool // case: fold
}

// Extractors is one extractor or a list.
type Extractors []Extractor

// FingerprintMode tells what of a request makes it "the same request".
type FingerprintMode uint8

const (
	FingerprintAuto FingerprintMode = iota // canonical JSON, form pairs, multipart parts, else bytes
	FingerprintBody                        // the body's bytes
	FingerprintList                        // Extractors
	FingerprintNone                        // only what is always part of it
)

// Fingerprint is the idempotency.fingerprint setting.
type Fingerprint struct {
	Mode       FingerprintMode
	Extractors Extractors
}

// StatusRange is an inclusive range of HTTP statuses: 200, 4xx, 500-503.
type StatusRange struct{ First, Last int }

// Scalar is a YAML scalar that a JSON value is compared with: a string, bool,
// null, or a number kept as its exact decimal text.
type Scalar struct {
	Kind ScalarKind
	Text string
}

// ScalarKind is the JSON type of a Scalar.
type ScalarKind uint8

const (
	ScalarNull ScalarKind = iota
	ScalarBool
	ScalarNumber
	ScalarString
)
