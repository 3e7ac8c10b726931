package lograte

import (
	"context"
	"log/slog"
	"time"
)

// Handler bounds the warnings and errors with one message; what is below passes. A
// message is a fixed text, what differs stands in attributes.
type Handler struct {
	slog.Handler
	limiter *Limiter // shared with the handlers that are made from this one
}

// NewHandler lets lines of each message through to next in per. Close ends it.
func NewHandler(next slog.Handler, lines int, per time.Duration) *Handler {
	return &Handler{Handler: next, limiter: New(lines, per, func(message string, left int64) {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "lines were left out of the log: too many alike", 0)
		r.AddAttrs(slog.String("line", message), slog.Int64("left_out", left))
		_ = next.Handle(context.Background(), r) // as slog itself does
	})}
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && !h.limiter.Take(r.Message) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.Handler.WithAttrs(attrs), h.limiter}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.Handler.WithGroup(name), h.limiter}
}

// Close logs what was left out so far.
func (h *Handler) Close() { h.limiter.Close() }
