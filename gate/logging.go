package gate

import (
	"context"
	"log/slog"
	"time"

	"github.com/slotgate/slotgate/gate/lograte"
	"github.com/slotgate/slotgate/rules"
)

// sampledLines is how many decisions of one kind the log has in a second at level
// info. At debug it has all.
const sampledLines = 5

// decisionLog writes a line for decisions. None holds anything that a client sent but
// its request id, and not that where a rule reads it.
type decisionLog struct {
	log     *slog.Logger
	limiter *lograte.Limiter
}

func newDecisionLog(log *slog.Logger) decisionLog {
	return decisionLog{log, lograte.New(sampledLines, time.Second, func(kind string, left int64) {
		log.Info("decisions left out of the log", "decision", kind, "left_out", left)
	})}
}

func (l *decisionLog) note(j *journey, r *Reply, total time.Duration) {
	ctx, level := context.Background(), slog.LevelDebug
	if !l.log.Enabled(ctx, level) {
		level = slog.LevelInfo
		if !l.log.Enabled(ctx, level) || !l.limiter.Take(string(r.Decision)) {
			return
		}
	}
	attrs := make([]slog.Attr, 0, 10)
	attrs = append(attrs,
		slog.String("rule", r.Rule),
		slog.String("decision", string(r.Decision)),
		slog.String("mode", string(r.Mode)),
		slog.Int("status", r.Status))
	if r.Shadow != "" {
		attrs = append(attrs, slog.String("shadow", string(r.Shadow)))
	}
	if r.Outcome != rules.NoOutcome {
		attrs = append(attrs, slog.String("outcome", r.Outcome.String()))
	}
	attrs = append(attrs, milliseconds("ms", total), milliseconds("upstream_ms", j.atBackend), j.requestID())
	if j.trace != nil {
		if id := j.trace.ID(); id != "" {
			attrs = append(attrs, slog.String("trace_id", id))
		}
	}
	l.log.LogAttrs(ctx, level, "decision", attrs...)
}

// milliseconds reads the same in text and in JSON.
func milliseconds(name string, d time.Duration) slog.Attr {
	return slog.Float64(name, float64(d.Round(time.Microsecond))/float64(time.Millisecond))
}

// requestID is what a log shows of it: nothing where a rule reads a key from it.
func (j *journey) requestID() slog.Attr {
	if !j.book.Set.Logs("X-Request-Id") {
		return slog.Attr{}
	}
	return slog.String("request_id", j.req.ID)
}

// LoggedPath is what a log shows of a request's path; see rules.Set.LoggedPath.
func (g *Gate) LoggedPath(path string) string { return g.book.Load().Set.LoggedPath(path) }

// Logs reports whether a log may show a header field of requests.
func (g *Gate) Logs(field string) bool { return g.book.Load().Set.Logs(field) }
