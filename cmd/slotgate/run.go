package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/rules"
)

const runHelp = `Usage: slotgate run -c FILE [--set PATH=VALUE]...

Serves: the gate on server.listen and the admin API on admin.listen. It starts
although its store or its backend is away, and serves them when they are there.

  -c FILE            the configuration
  --set PATH=VALUE   replaces a value; repeatable. A rule is named by its name:
                     rules.book-lesson.mode=off

SIGTERM or SIGINT: /readyz turns 503, accepting stops, running requests have
server.drain to end. A second signal ends at once. SIGHUP reloads the file, and
opens the access log again. The log goes to stderr.

Exit status: 0 after a clean stop, 1 otherwise.

Example:
  slotgate run -c slotgate.yaml --set log.format=json
`

func runCommand(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	var flags configFlags
	set := newFlags("run")
	flags.register(set)
	operands, err := parse(set, args)
	if err == nil && len(operands) > 0 {
		err = fmt.Errorf("unexpected argument %q", operands[0])
	}
	var config *rules.Config
	var faults rules.Faults
	if err == nil {
		config, faults, err = flags.load()
	}
	if err != nil {
		return usageFault("run", runHelp, err, 1, stdout, stderr)
	}
	if config == nil {
		fmt.Fprint(stderr, faults)
		return 1
	}
	sparing()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	defer signal.Stop(signals)

	// A log whose reader has gone must not end the gate.
	signal.Ignore(syscall.SIGPIPE)

	logs, closeLogs := newLogs(config.Log, stdout, stderr)
	defer closeLogs()
	for _, warning := range faults {
		logs.log.Warn(warning.String())
	}
	redis.SetLogger(redisNotes{logs.log})
	if err := serve(config, &flags, signals, logs); err != nil {
		fmt.Fprintf(stderr, "slotgate run: %v\n", err)
		return 1
	}
	return 0
}
