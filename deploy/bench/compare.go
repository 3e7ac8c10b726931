package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotgate/slotgate/deploy/bench/compare"
	"github.com/slotgate/slotgate/deploy/bench/rig"
)

func compareCommand(args []string, progress io.Writer) (job, error) {
	o := compare.Options{Progress: progress}
	flags := flag.NewFlagSet("bench compare", flag.ContinueOnError)
	flags.SetOutput(progress)
	out := flags.String("out", resultsFolder, "write compare.json, .md and .svg to this `folder`")
	scenarios := flags.String("scenarios", "", "only these, by `name`: "+strings.Join(names(compare.Scenarios), ","))
	contenders := flags.String("contenders", "", "only these, by `name`")
	connections := flags.String("connections", "", "with so `many` instead of the scenarios' own 64,256")
	flags.IntVar(&o.Rounds, "rounds", 5, "clean measurements of each contender")
	flags.DurationVar(&o.Load, "load", 4*time.Second, "measured `time` of each round, whole seconds")
	flags.DurationVar(&o.Warm, "warm", time.Second, "load before that, whole seconds or 0")
	flags.Float64Var(&o.Foreign, "foreign", 0.08, "most `share` of one CPU that others may take in a round")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if o.Scenarios, err = pick(*scenarios, *contenders); err != nil {
		return nil, err
	}
	for _, n := range split(*connections) {
		value, err := strconv.Atoi(n)
		if err != nil {
			return nil, fmt.Errorf("-connections %s: %w", *connections, err)
		}
		o.Connections = append(o.Connections, value)
	}
	return func(ctx context.Context, r *rig.Rig) error {
		results, err := compare.Run(ctx, r, o)
		if ctx.Err() != nil {
			return err
		}
		// Where one contender failed, the others' figures are still worth having.
		return errors.Join(err, save(*out, "compare", map[string]func(io.Writer) error{
			".md":   results.WriteMarkdown,
			".svg":  results.WriteSVG,
			".json": func(w io.Writer) error { return writeJSON(w, results) },
		}))
	}, nil
}

func names(scenarios []compare.Scenario) []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.Name)
	}
	return names
}

// split reads a list of a flag; "" is none.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// pick returns the scenarios and contenders of two lists; an empty list is all.
func pick(scenarios, contenders string) ([]compare.Scenario, error) {
	wanted, by := split(scenarios), split(contenders)
	var picked []compare.Scenario
	for _, s := range compare.Scenarios {
		if len(wanted) > 0 && !slices.Contains(wanted, s.Name) {
			continue
		}
		if len(by) > 0 {
			s.Contenders = slices.DeleteFunc(slices.Clone(s.Contenders), func(c compare.Contender) bool {
				return !slices.Contains(by, c.Name)
			})
		}
		picked = append(picked, s)
	}
	if len(picked) == 0 {
		return nil, fmt.Errorf("-scenarios %s names none of %s", scenarios, strings.Join(names(compare.Scenarios), ", "))
	}
	return picked, nil
}

func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
