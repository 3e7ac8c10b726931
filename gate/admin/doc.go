// Package admin is the operators' side of a gate: its own listener with health,
// metrics, rules and slots.
//
//	server.go   the server; listener.go  its bound on connections
//	routes.go   every endpoint in one table
//	access.go   who may call: bearer token, or loopback guarded against browsers
//	problem.go  answers; body.go  strict request bodies
//	health.go, status.go, modes.go, slots.go, slotview.go  the endpoints
//	metrics.go  what the journey reports; gauges.go  what is read at a scrape;
//	holds.go    what is counted in the background
//
// Nothing here is on the path of a booking except Metrics, whose counters are
// looked up once for each rule.
package admin
