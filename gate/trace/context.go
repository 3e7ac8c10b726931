package trace

import (
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/slotgate/slotgate/rules"
)

// parentOf reads the span that a request names as its parent (W3C Trace Context, 3.2):
// version, trace, span and flags in lower-case hexadecimal. What is malformed, or sent
// twice, names none. A later version is read by its first four parts.
func parentOf(fields []rules.Field) (parent trace.SpanContext) {
	text, states := "", []string(nil)
	for _, f := range fields {
		switch {
		case strings.EqualFold(f.Name, "traceparent"):
			if text != "" {
				return parent
			}
			text = f.Value
		case strings.EqualFold(f.Name, "tracestate"):
			states = append(states, f.Value)
		}
	}
	if len(text) < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return parent
	}
	var version, flags [1]byte
	var traceID trace.TraceID
	var spanID trace.SpanID
	if !readHex(version[:], text[:2]) || !readHex(traceID[:], text[3:35]) || !readHex(spanID[:], text[36:52]) ||
		!readHex(flags[:], text[53:55]) || !traceID.IsValid() || !spanID.IsValid() {
		return parent
	}
	if version[0] == 0xff || version[0] == 0 && len(text) != 55 || len(text) > 55 && text[55] != '-' {
		return parent
	}
	// The samplers and spans know it; to the backend it goes as it was sent.
	state, _ := trace.ParseTraceState(strings.Join(states, ","))
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags[0]) & trace.FlagsSampled,
		TraceState: state, Remote: true,
	})
}

func readHex(to []byte, text string) bool {
	if strings.ToLower(text) != text {
		return false
	}
	_, err := hex.Decode(to, []byte(text))
	return err == nil
}

// traceparent is version 00 of a span's context.
func traceparent(c trace.SpanContext) string {
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + (c.TraceFlags() & trace.FlagsSampled).String()
}
