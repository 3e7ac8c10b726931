package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// explanation is what explain prints, also as JSON.
type explanation struct {
	Notes   []string          `json:"notes,omitempty"` // what was changed about the request as it was given
	Verdict string            `json:"verdict"`
	Shadow  string            `json:"shadow,omitempty"` // in shadow: what enforce would answer
	Request *explainedRequest `json:"request"`          // null: the edge refused it
	Rules   []explainedRule   `json:"rules"`
	Rule    string            `json:"rule"` // "" none
	Path    string            `json:"path,omitempty"`
	Params  map[string]string `json:"params,omitempty"`
	Layers  []explainedLayer  `json:"layers"`
	Answer  *explainedAnswer  `json:"answer"` // the gate's own

	*explainedFacts // nil: none were read
}

type explainedRequest struct {
	Method string `json:"method"`
	Target string `json:"target"`
	Host   string `json:"host"`
	Client string `json:"client"`
}

type explainedRule struct {
	Rule string `json:"rule"`
	Fits bool   `json:"fits"`
	Why  string `json:"why"`
}

type explainedFacts struct {
	Action      string `json:"action"`
	Pool        string `json:"pool"`
	Slot        string `json:"slot"`
	Subject     string `json:"subject"`
	Units       int64  `json:"units"`
	Key         string `json:"key"`
	KeySource   string `json:"key_source"` // sent, issued, derived, "" none
	Group       string `json:"group"`
	Partition   string `json:"partition"`
	Scoped      bool   `json:"scoped"`  // the request shows who sends it (idempotency.scope)
	Replays     bool   `json:"replays"` // the stored answer may be given to a repeat of this request
	Fingerprint string `json:"fingerprint"`
}

type explainedLayer struct {
	Layer string `json:"layer"`
	Does  string `json:"does"`
}

type explainedAnswer struct {
	Status   int    `json:"status"`
	Decision string `json:"decision"`
	Body     string `json:"body"`
}

func writeExplanation(w io.Writer, e *explanation) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, note := range e.Notes {
		row(table, "note", note)
	}
	if r := e.Request; r != nil {
		row(table, "request", fmt.Sprintf("%s %s for %s, from %s", r.Method, r.Target, cmp.Or(r.Host, "no host"), r.Client))
	}
	row(table, "verdict", e.Verdict)
	if a := e.Answer; a != nil {
		row(table, "answer", strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, a.Decision)))
		row(table, "", strings.TrimSpace(a.Body))
	}
	if len(e.Rules) > 0 {
		row(table, "\nRULE", "FITS", "WHY")
	}
	decided := false
	for _, r := range e.Rules {
		fits, why := "no", r.Why
		if r.Fits && decided {
			fits, why = "too late", "an earlier rule fits"
		} else if r.Fits {
			fits, decided = "yes", true
		}
		row(table, r.Rule, fits, why)
	}
	if f := e.explainedFacts; f != nil {
		row(table, "\nFACT", "VALUE")
		for _, name := range slices.Sorted(maps.Keys(e.Params)) {
			row(table, "{"+name+"}", quote(e.Params[name]))
		}
		row(table, "action", f.Action)
		if f.Pool != "" {
			row(table, "pool", f.Pool)
			row(table, "slot", quote(f.Slot))
		}
		row(table, "subject", quote(f.Subject))
		if f.Units > 0 {
			row(table, "units", fmt.Sprint(f.Units))
		}
		row(table, "key", quote(f.Key))
		if f.Key != "" {
			row(table, "key source", keySourceWords[f.KeySource])
			row(table, "key group", f.Group)
			row(table, "key partition", quote(f.Partition))
			row(table, "fingerprint", f.Fingerprint)
			row(table, "scope", map[bool]string{true: "the sender shows who it is", false: "nothing shows who sends it"}[f.Scoped])
		}
	}
	if len(e.Layers) > 0 {
		row(table, "\nLAYER", "DOES")
	}
	for _, l := range e.Layers {
		row(table, l.Layer, l.Does)
	}
	return table.Flush()
}

func quote(text string) string {
	if text == "" {
		return "-"
	}
	return fmt.Sprintf("%q", text)
}
