package compare

import "time"

// Scenario is one kind of traffic.
type Scenario struct {
	Name        string
	Title       string
	Connections []int
	Delay       time.Duration // what an answer of the backend takes
	Path        string        // of a GET that no rule is for; empty: bookings
	Lessons     int           // over which bookings are spread
	Seats       int           // of each lesson
	SoldOut     bool          // all seats are taken before the load comes
	RejectCache string        // of the gate's pool
	Contenders  []Contender
}

// many is a number of seats that no load takes.
const many = 1_000_000_000

var both = []int{64, 256}

// Scenarios are those of the README.
var Scenarios = []Scenario{
	{
		Name: "unmatched", Title: "Traffic that no rule is for",
		Connections: both, Path: "/api/lessons/1/teacher",
		Contenders: []Contender{gate, bare, nginx, haproxy},
	},
	{
		Name: "admit", Title: "Admitted bookings",
		Connections: both, Lessons: 1000, Seats: many,
		Contenders: []Contender{gate, nginxTokens, nginxSettles, goTokens},
	},
	{
		Name: "sold-out", Title: "Sold out, by the store",
		Connections: both, Lessons: 20, Seats: 50, SoldOut: true,
		Contenders: []Contender{gate, nginxTokens, goTokens},
	},
	{
		Name: "sold-out-cached", Title: "Sold out, within reject_cache",
		Connections: both, Lessons: 20, Seats: 50, SoldOut: true, RejectCache: "60s",
		Contenders: []Contender{gate},
	},
	{
		Name: "latency", Title: "Admitted bookings of a backend that takes 5 ms",
		Connections: []int{64}, Delay: 5 * time.Millisecond, Lessons: 1000, Seats: many,
		Contenders: []Contender{gate, direct, bare, nginxTokens, goTokens},
	},
}

// load returns the URL and what load.lua is told. run is one letter.
func (s *Scenario) load(addr, run string) (url string, args []string) {
	if s.Path != "" {
		return "http://" + addr + s.Path, []string{"page"}
	}
	return "http://" + addr, bookings(s.Lessons, run)
}
