package main

import "io"

// writeDemoJSON writes the figures; times are milliseconds.
func writeDemoJSON(w io.Writer, seed uint64, rows []*demoRow) error {
	type outage struct {
		Lasted      float64                    `json:"lasted_ms"`
		NormalAfter float64                    `json:"normal_after_ms"`
		Bookings    [demoPhases]int64          `json:"bookings"` // before, meanwhile, after
		Decisions   [demoPhases]map[string]int `json:"gate_decisions"`
	}
	type act struct {
		Constraints bool     `json:"constraints"`
		Gate        bool     `json:"gate"`
		Seats       int64    `json:"seats"`
		Bookings    int64    `json:"bookings"`
		Oversold    int64    `json:"oversold"`
		Duplicates  int64    `json:"duplicates"`
		Requests    int      `json:"requests"`
		Reached     int64    `json:"reached_backend"`
		Failures    int      `json:"failures"`
		Torn        int      `json:"pairs_answered_differently"`
		P50         float64  `json:"p50_ms"`
		P99         float64  `json:"p99_ms"`
		Outage      *outage  `json:"store_outage,omitempty"`
		Faults      []string `json:"faults"`
	}
	report := struct {
		Seed uint64 `json:"seed"`
		Acts []act  `json:"acts"`
	}{Seed: seed}
	for _, r := range rows {
		a := act{
			Constraints: r.act.constraints, Gate: r.act.gate, Seats: r.Seats, Bookings: r.Bookings,
			Oversold: r.Oversold, Duplicates: r.Duplicates, Requests: r.Requests, Reached: r.Reached,
			Failures: r.Failures, Torn: r.Torn, P50: milliseconds(r.P50), P99: milliseconds(r.P99),
			Faults: append([]string{}, r.faults()...),
		}
		if o := r.Outage; o != nil {
			a.Outage = &outage{milliseconds(o.Lasted), milliseconds(o.NormalAfter), o.Bookings, o.Decisions}
		}
		report.Acts = append(report.Acts, a)
	}
	return writeJSON(w, report)
}
