// Package rules is the pure half of Slotgate: the YAML schema and its strict
// loader, matching of requests on the normal form of their path, extraction of
// the facts a decision needs (slot, subject, units, key, fingerprint), and the
// classification of backend answers.
//
// Nothing here does I/O, reads a clock, or knows fasthttp or Redis: callers hand
// over text and bytes and get values, faults (configuration) or refusals
// (requests) back. All compiled values are immutable and safe for concurrent use.
//
// The room for a change, by file: config.go the schema, with its words and bounds,
// truth.go that of a pool's truth; schema*.go its defaults and the JSON Schema;
// load*.go from YAML to a Config; validate*.go its checks and warnings,
// match*.go which rule,
// issue.go which pages hand out one-time ids, extract*.go which facts, classify.go
// what an answer meant, reference.go which booking it made.
package rules
