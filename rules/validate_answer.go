package rules

import (
	"mime"
	"slices"
	"strings"
)

// outcomeWords are what `is` may say, by action. A guard may use a booking's words:
// they say what is kept and replayed.
var outcomeWords = map[string][]string{
	"book":    {"booked", "refused", "sold_out", "duplicate", "busy", "unknown"},
	"guard":   {"done", "booked", "refused", "sold_out", "duplicate", "busy", "unknown"},
	"cancel":  {"done", "refused", "unknown"},
	"confirm": {"done", "refused", "unknown"},
}

func (v *validator) outcomes(p place, r *RuleConfig) {
	allowed := outcomeWords[r.Action]
	for i := range r.Outcomes {
		o, at := &r.Outcomes[i], p.item(i)
		is := at.field("is")
		switch {
		case !is.written:
			is.faultf("is required: say what such an answer means, %s", either(allowed))
		case o.Is != NoOutcome && !slices.Contains(allowed, o.Is.String()):
			is.faultf("%s is not an outcome of action %s: write %s", o.Is, r.Action, either(allowed))
		}
		v.when(at.field("when"), &o.When)
	}
}

func (v *validator) when(p place, w *WhenConfig) {
	conditions := []string{"status", "header", "json", "text"}
	if !slices.ContainsFunc(conditions, func(name string) bool { return p.field(name).written }) {
		p.faultf("names no condition, so that every answer would match: write %s", either(conditions))
		return
	}
	if p.field("header").written && len(w.Header) == 0 && !p.field("header").broken() {
		p.field("header").faultf("is empty: name a header field and its value, or remove it")
	}
	checkFields(p.field("header"), w.Header)
	json := p.field("json")
	if json.written && len(w.JSON) == 0 && !json.broken() {
		json.faultf("is empty: name a JSON Pointer and its value, or remove it")
	}
	for _, pointer := range sortedKeys(w.JSON) {
		if err := checkPointer(pointer); err != nil {
			json.field(pointer).faultf("%s", err)
		}
	}
	if text := p.field("text"); text.written && w.Text == "" {
		text.faultf("is empty, which every body holds: write a part of the body, or remove it")
	}
}

// answerNames are the decisions that the gate answers itself, with _ for -.
var answerNames = []string{
	"ambiguous", "busy", "closed", "duplicate", "in_flight", "key_invalid", "key_mismatch", "key_missing",
	"outcome_unknown", "rate_limited", "sold_out", "store_down", "too_large", "unidentified", "unsupported",
	"upstream_failed", "upstream_open", "upstream_timeout",
}

// framing fields are made from the answer itself.
var framing = []string{"content-length", "transfer-encoding", "connection", "trailer", "upgrade", "keep-alive"}

func (v *validator) answers(p place, answers map[string]AnswerConfig) {
	for _, name := range sortedKeys(answers) {
		a, at := answers[name], p.field(name)
		if !slices.Contains(answerNames, name) {
			near := didYouMean(strings.ReplaceAll(name, "-", "_"), answerNames)
			if near == "" {
				near = ": write one of " + strings.Join(answerNames, ", ")
			}
			at.faultf("%s is not a decision that the gate answers itself%s", name, near)
		}
		if (a.Status == 204 || a.Status == 205 || a.Status == 304) && a.Body != "" {
			at.field("body").faultf("an answer with status %d has no body: remove it, or choose another status", a.Status)
		}
		if a.ContentType != "" {
			if _, _, err := mime.ParseMediaType(a.ContentType); err != nil || !strings.Contains(a.ContentType, "/") {
				at.field("content_type").faultf("%q is not a media type, such as application/json", a.ContentType)
			}
		}
		headers := at.field("headers")
		checkFields(headers, a.Headers)
		for _, field := range sortedKeys(a.Headers) {
			switch lower := strings.ToLower(field); {
			case slices.Contains(framing, lower):
				headers.field(field).faultf("is made by the gate: remove it")
			case lower == "content-type":
				headers.field(field).faultf("write it as content_type")
			}
		}
	}
}
