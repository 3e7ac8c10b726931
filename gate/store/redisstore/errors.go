package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
)

// isReply reports an error that Redis itself answered.
func isReply(err error) bool {
	var answered redis.Error
	return errors.As(err, &answered)
}

// code is the first word of an error reply, which tells its class.
func code(err error) string {
	if err == nil {
		return ""
	}
	var answered redis.Error
	if !errors.As(err, &answered) {
		return ""
	}
	word, _, _ := strings.Cut(answered.Error(), " ")
	return word
}

func isUnknownScript(err error) bool { return code(err) == "NOSCRIPT" }

// refused are error replies that Redis gives without running a script at all.
var refused = map[string]store.ErrorKind{
	"OOM":         store.KindFull,
	"READONLY":    store.KindServer,
	"LOADING":     store.KindServer,
	"MASTERDOWN":  store.KindServer,
	"NOREPLICAS":  store.KindServer,
	"MISCONF":     store.KindServer,
	"BUSY":        store.KindServer,
	"NOAUTH":      store.KindServer,
	"NOPERM":      store.KindServer,
	"WRONGPASS":   store.KindServer,
	"NOSCRIPT":    store.KindServer,
	"CLUSTERDOWN": store.KindServer,
	"CROSSSLOT":   store.KindServer,
	"MOVED":       store.KindServer,
	"ASK":         store.KindServer,
	"TRYAGAIN":    store.KindServer,
	"UNBLOCKED":   store.KindServer,
}

// elsewhere are refusals by a server that is not the one to ask. A new
// connection may lead to that.
var elsewhere = map[string]bool{"READONLY": true, "MOVED": true, "ASK": true}

const tooManyClients = "ERR max number of clients reached"

// mayHaveRun reports whether a failed attempt may have taken effect.
func mayHaveRun(err error) bool {
	if isReply(err) {
		_, before := refused[code(err)]
		return !before && !strings.HasPrefix(err.Error(), tooManyClients)
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	return !errors.Is(err, redis.ErrPoolTimeout) && !errors.Is(err, redis.ErrPoolExhausted) && !errors.Is(err, redis.ErrClosed)
}

// failure classes what went wrong with a call.
func (s *Store) failure(op string, err error, maybe bool) *store.Error {
	failure := &store.Error{Op: op, Kind: store.KindConnection, Maybe: maybe, Err: err}
	var network net.Error
	switch {
	case isReply(err):
		kind, known := refused[code(err)]
		switch {
		case known:
			failure.Kind = kind
		case strings.HasPrefix(err.Error(), tooManyClients):
			failure.Kind = store.KindServer
		default:
			failure.Kind = store.KindReply
		}
	case s.closed.Load():
		failure.Kind = store.KindClosed
	case errors.Is(err, errUnsent) && !errors.Is(err, context.Canceled):
		failure.Kind = store.KindUnsent
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted),
		errors.As(err, &network) && network.Timeout():
		failure.Kind = store.KindTimeout
	}
	return failure
}

// strange is a reply of a shape that no script of ours gives.
func strange(op string, format string, args ...any) *store.Error {
	return &store.Error{Op: op, Kind: store.KindReply, Maybe: true,
		Err: fmt.Errorf("unexpected reply: "+format, args...)}
}
