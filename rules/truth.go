package rules

import (
	"fmt"
	"time"
)

// Means tells what a truth source's value counts.
const (
	MeansRemaining = "remaining" // units that can still be booked
	MeansBooked    = "booked"    // units that are booked, of Total
	MeansCapacity  = "capacity"  // units in all: sets the total, recovers nothing
)

// TruthConfig is a pool's capacity where the backend's own data tells it: exactly
// one of SQL and HTTP is set.
type TruthConfig struct {
	SQL       *SQLSource      `yaml:"sql" doc:"a query to the backend's database"`
	HTTP      *HTTPSource     `yaml:"http" doc:"a GET to the backend"`
	Refresh   time.Duration   `yaml:"refresh" min:"100ms" doc:"slots touched since the last look are compared with truth this often, with jitter"`
	Hot       time.Duration   `yaml:"hot" min:"100ms" doc:"and this often while they are being booked, no more than refresh; no sold-out rests on an older look"`
	MaxRate   Rate            `yaml:"max_rate" doc:"looks of the pool, all gates together"`
	Lag       time.Duration   `yaml:"lag" doc:"how far truth may trail what the backend has answered"`
	Timeout   time.Duration   `yaml:"timeout" min:"1ms" max:"1m" doc:"one look at the source"`
	Bookings  *BookingsConfig `yaml:"bookings" doc:"lists a slot's bookings: enables audit and unknown: probe"`
	Report    string          `yaml:"report" doc:"time of day, such as 04:30: reconcile and audit on schedule"`
	ReportDir string          `yaml:"report_dir" doc:"where the reports are written as JSON files"`
}

// Means is what the source's value counts: MeansRemaining, MeansBooked or
// MeansCapacity.
func (t *TruthConfig) Means() string {
	if t.SQL != nil {
		return t.SQL.Means
	}
	return t.HTTP.Means
}

// Total is where the units of a slot in all come from; none unless Means is
// MeansBooked.
func (t *TruthConfig) Total() TotalConfig {
	if t.SQL != nil {
		return t.SQL.Total
	}
	return t.HTTP.Total
}

// Probes reports whether the truth can say if one subject has a slot, which
// unknown: probe needs.
func (t *TruthConfig) Probes() bool { return t.Bookings != nil }

// SQLSource is one read-only query whose single parameter is the slot and whose
// first column of its first row is the value.
type SQLSource struct {
	Driver string      `yaml:"driver" enum:"postgres,mysql,sqlite" doc:"mysql: MariaDB too"`
	DSN    string      `yaml:"dsn" doc:"as the driver writes it; keep the password in the environment"`
	Query  string      `yaml:"query" doc:"the slot is its one parameter: $1 for postgres, ? for others"`
	Means  string      `yaml:"means" enum:"remaining,booked,capacity" doc:"what the value counts"`
	Total  TotalConfig `yaml:"total" doc:"means: booked needs it: a number, or { query: … }"`
}

// String names the driver. The dsn, which may hold a password, is never shown.
func (s SQLSource) String() string { return "sql " + s.Driver }

// MarshalText is String, for loggers and encoders.
func (s SQLSource) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// HTTPSource is one GET to the backend; 404 means that there is no such slot.
type HTTPSource struct {
	Path    string            `yaml:"path" doc:"with {slot} where the slot goes, such as /api/lessons/{slot}"`
	Value   Extractor         `yaml:"value" doc:"where the answer has the value, such as json:/data/remain"`
	Means   string            `yaml:"means" enum:"remaining,booked,capacity" doc:"what the value counts"`
	Total   TotalConfig       `yaml:"total" doc:"means: booked needs it: a number, or { value: json:/… }"`
	Headers map[string]string `yaml:"headers" doc:"sent along, such as a service's credentials"`
}

// String is the request that is made. Its headers, which may hold credentials, are
// never shown.
func (s HTTPSource) String() string { return "http GET " + s.Path }

// MarshalText is String, for loggers and encoders.
func (s HTTPSource) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// TotalConfig is the units of a slot in all: a number, or where the source of the
// booked ones has it. The zero TotalConfig is none.
type TotalConfig struct {
	Units int64     // 0: none
	Query string    // sql: one parameter, one value
	Value Extractor // http: read from the same answer
}

// IsNone reports whether no total was configured.
func (t TotalConfig) IsNone() bool { return t == TotalConfig{} }

// String is the total as a table shows it.
func (t TotalConfig) String() string {
	switch {
	case t.Query != "":
		return "query"
	case t.Value != Extractor{}:
		return t.Value.String()
	case t.Units > 0:
		return fmt.Sprint(t.Units)
	}
	return "none"
}

// BookingsConfig lists the bookings of a slot: Query for an SQL source, whose
// columns are id, subject and, if there is a third, when it was made. Path for an
// HTTP source, with {slot} and {subject}: 2xx says that the subject has the slot,
// 404 that it has not; it serves unknown: probe, not audit.
type BookingsConfig struct {
	Query string `yaml:"query" doc:"such as SELECT id, student_id, created_at FROM booking WHERE slot_id = $1"`
	Path  string `yaml:"path" doc:"http: such as /api/lessons/{slot}/students/{subject}"`
}
