// Peer serves what Slotgate is compared with, as far as it is no program of its own:
//
//	peer backend -listen ADDR [-delay D]            answers every request, after D
//	peer proxy -listen ADDR -to ADDR                forwards every request, and no more
//	peer tokens -listen ADDR -to ADDR -redis ADDR   asks one Redis script first
//
// All are fasthttp at its plainest. The proxy cares for nothing that a proxy has to
// care for (hop-by-hop fields, stale connections, streaming): it is the bar that a
// gate on fasthttp could reach at best.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/valyala/fasthttp"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say backend, proxy or tokens")
	}
	flags := flag.NewFlagSet("peer "+args[0], flag.ContinueOnError)
	listen := flags.String("listen", "", "serve at this `address`")
	to := flags.String("to", "", "forward to this `address`")
	store := flags.String("redis", "", "the `address` of Redis")
	delay := flags.Duration("delay", 0, "what an answer takes")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	var handler fasthttp.RequestHandler
	switch args[0] {
	case "backend":
		handler = backend(*delay)
	case "proxy":
		handler = forward(*to)
	case "tokens":
		var err error
		if handler, err = tokens(*store, forward(*to)); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%q is none of backend, proxy, tokens", args[0])
	}
	server := &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true, DisablePreParseMultipartForm: true}
	return server.ListenAndServe(*listen)
}

// backend answers as the sample booking API does to a booking.
func backend(delay time.Duration) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if delay > 0 {
			time.Sleep(delay)
		}
		ctx.SetStatusCode(fasthttp.StatusCreated)
		ctx.SetContentType("application/json")
		ctx.SetBodyString(`{"data":{"booking_id":1}}`)
	}
}

// forward sends a request on and its answer back.
func forward(to string) fasthttp.RequestHandler {
	backend := &fasthttp.HostClient{
		Addr: to, MaxConns: 1024, MaxIdemponentCallAttempts: 1,
		NoDefaultUserAgentHeader: true, DisablePathNormalizing: true,
	}
	return func(ctx *fasthttp.RequestCtx) {
		if err := backend.Do(&ctx.Request, &ctx.Response); err != nil {
			ctx.Error("no answer", fasthttp.StatusBadGateway)
		}
	}
}
