package storm

import (
	"encoding/json"
	"io"
	"time"
)

// Report is what a storm did and saw. It is complete when Run returns it.
type Report struct {
	Method   string   `json:"method"`
	Targets  []string `json:"urls"`
	Clients  int      `json:"clients"`
	Requests int      `json:"requests"` // distinct requests planned
	Repeats  int      `json:"repeats"`  // twins planned
	Subjects int      `json:"subjects"`
	Seed     uint64   `json:"seed"`

	Rate     float64       `json:"rate,omitempty"`     // most requests a second
	Capacity int           `json:"capacity,omitempty"` // seats that each slot has
	Success  string        `json:"success"`            // which answers count as one, as ParseSuccess reads it
	Timeout  time.Duration `json:"-"`
	MaxTime  time.Duration `json:"-"`

	Started     time.Time     `json:"started"`              // when the first request went
	StoppedBy   StopReason    `json:"stopped_by,omitempty"` // empty when all was sent
	Elapsed     time.Duration `json:"-"`                    // from the first request to the last answer
	Connections int           `json:"connections"`          // opened
	Sent        int           `json:"sent"`                 // answers and transport errors
	Answered    int           `json:"answered"`

	Statuses  map[int]int       `json:"statuses"`
	Decisions map[string]int    `json:"gate_decisions"` // by Gate-Decision, where answers had it
	Modes     map[string]int    `json:"gate_modes"`     // by Gate-Mode
	Errors    map[ErrorKind]int `json:"transport_errors"`
	Latency   Histogram         `json:"latency"` // of answers, without connecting
	Timeline  Timeline          `json:"timeline"`

	SuccessfulAnswers int        `json:"successful_answers"`
	Successes         []Booking  `json:"successes"` // without repeats of an answer to a twin
	Twins             TwinCounts `json:"twins"`
}

// StopReason says why a storm ended before all was sent.
type StopReason string

const (
	Interrupted StopReason = "interrupted" // the caller's context ended
	OutOfTime   StopReason = "max-time"    // Options.MaxTime was reached
)

// Booking is one distinct success.
type Booking struct {
	N       int   `json:"n"`
	Repeat  bool  `json:"repeat,omitempty"` // it was the twin of request N that succeeded
	Subject int   `json:"subject"`
	Slot    int64 `json:"slot"`   // -1 when the templates name none
	Target  int   `json:"url"`    // index in Report.Targets
	Status  int   `json:"status"` // of the answer
}

// Status5xx is the number of answers with status 500 to 599.
func (r *Report) Status5xx() int {
	n := 0
	for status, count := range r.Statuses {
		if status >= 500 && status <= 599 {
			n += count
		}
	}
	return n
}

// TransportErrors is the number of requests without an answer.
func (r *Report) TransportErrors() int {
	n := 0
	for _, count := range r.Errors {
		n += count
	}
	return n
}

// WriteJSON writes the report and the verdicts on it as one JSON object.
func (r *Report) WriteJSON(w io.Writer, verdicts []Verdict) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		*Report
		ElapsedMS  float64   `json:"elapsed_ms"`
		Duplicates int       `json:"duplicates"`
		Assertions []Verdict `json:"assertions"`
	}{r, milliseconds(r.Elapsed), len(r.Duplicates()), append([]Verdict{}, verdicts...)})
}

// MarshalJSON writes the quantiles in milliseconds and the rows of Rows.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	type row struct {
		BelowMS float64 `json:"below_ms"`
		Count   int     `json:"count"`
	}
	rows := []row{}
	for _, r := range h.Rows() {
		rows = append(rows, row{milliseconds(r.Limit), r.Count})
	}
	return json.Marshal(struct {
		Count int     `json:"count"`
		P50   float64 `json:"p50_ms"`
		P90   float64 `json:"p90_ms"`
		P99   float64 `json:"p99_ms"`
		Max   float64 `json:"max_ms"`
		Rows  []row   `json:"rows"`
	}{h.total, milliseconds(h.Quantile(0.5)), milliseconds(h.Quantile(0.9)), milliseconds(h.Quantile(0.99)), milliseconds(h.max), rows})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
