package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/deploy/bench/conf"
)

// tokens is a gate as one would write it in an afternoon: one script by go-redis,
// one round trip for each request on a connection of its pool. What it admits, next
// serves. It settles nothing and stores no answers.
func tokens(addr string, next fasthttp.RequestHandler) (fasthttp.RequestHandler, error) {
	client := redis.NewClient(&redis.Options{
		Addr: addr, PoolSize: 256, MaxRetries: -1,
		ReadTimeout: 4 * time.Second, WriteTimeout: 4 * time.Second,
	})
	script := redis.NewScript(conf.Token)
	ctx := context.Background()
	if err := script.Load(ctx, client).Err(); err != nil {
		return nil, fmt.Errorf("load the script: %w", err)
	}
	return func(request *fasthttp.RequestCtx) {
		lesson, ok := lessonOf(request.Path())
		key := request.Request.Header.Peek("Idempotency-Key")
		if !ok || len(key) == 0 {
			next(request)
			return
		}
		verdict, err := script.EvalSha(ctx, client, []string{"key:" + string(key), "slot:" + lesson}).Int()
		switch {
		case err != nil:
			request.Error("no store", fasthttp.StatusServiceUnavailable)
		case verdict == conf.Admitted:
			next(request)
		default:
			request.SetContentType("application/json")
			request.SetStatusCode(fasthttp.StatusConflict)
			request.SetBodyString(`{"error":"sold_out"}`)
		}
	}, nil
}

// lessonOf reads /api/lessons/{lesson}/bookings.
func lessonOf(path []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(path, []byte("/api/lessons/"))
	lesson, ok2 := bytes.CutSuffix(rest, []byte("/bookings"))
	return string(lesson), ok && ok2
}
