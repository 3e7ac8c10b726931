package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/slotgate/slotgate/rules"
)

const checkHelp = `Usage: slotgate check -c FILE [--set PATH=VALUE]...
       slotgate check --schema

Loads a configuration as run does and prints every fault as
FILE:LINE:COL: message and every warning as FILE:LINE:COL: warning: message.
Without faults it looks at the configured store for up to a second, and warns of
what endangers bookings there: a pool or prefix that had another name when they
were made, a server that may lose them. Then it prints the effective rules and
pools, and what has to be true for Slotgate's promises to hold.

  -c FILE            the configuration
  --set PATH=VALUE   replaces a value; repeatable. A rule is named by its name:
                     rules.book-lesson.mode=off
  --schema           prints the JSON Schema of the configuration. Editors use it
                     where the first line of the configuration names its file:
                     # yaml-language-server: $schema=slotgate.schema.json

Exit status: 0 the configuration can be used (there may be warnings), 2 it cannot.

Example:
  slotgate check -c slotgate.yaml --set upstream.timeout=2s
  slotgate check --schema > slotgate.schema.json
`

// Exit statuses of check.
const (
	checkUsable   = 0
	checkUnusable = 2
)

func checkCommand(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	var flags configFlags
	set := newFlags("check")
	flags.register(set)
	schema := set.Bool("schema", false, "")
	operands, err := parse(set, args)
	if err == nil && len(operands) > 0 {
		err = fmt.Errorf("unexpected argument %q", operands[0])
	}
	if err != nil {
		return usageFault("check", checkHelp, err, checkUnusable, stdout, stderr)
	}
	if *schema {
		if _, err := stdout.Write(rules.JSONSchema()); err != nil {
			fmt.Fprintf(stderr, "slotgate check: %v\n", err)
			return checkUnusable
		}
		return checkUsable
	}
	config, faults, err := flags.load()
	if err != nil {
		return usageFault("check", checkHelp, err, checkUnusable, stdout, stderr)
	}
	fmt.Fprint(stdout, faults)
	if config == nil {
		return checkUnusable
	}
	fmt.Fprint(stdout, checkStore(config, flags.places()))
	if err := writeEffective(stdout, config); err != nil {
		fmt.Fprintf(stderr, "slotgate check: %v\n", err)
		return checkUnusable
	}
	return checkUsable
}

// lookTime is how long check looks at a store.
const lookTime = time.Second

// checkStore warns of what a store shows. One that is away is no fault of the
// configuration.
func checkStore(config *rules.Config, places rules.Places) rules.Faults {
	if config.Store.Kind != "redis" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	seen, err := inspectStore(ctx, config)
	if err != nil {
		return rules.Faults{places.Warning(fmt.Sprintf("the store was not looked at: %v", err), "store", "addresses")}
	}
	return storeWarnings(config, places, seen)
}
