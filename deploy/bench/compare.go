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
	scenarios := flags.String("scenarios", "", "only these `names`: "+strings.Join(scenarioNames(), ","))
	contenders := flags.String("contenders", "", "only these `names`: "+strings.Join(contenderNames(), ","))
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

// split reads a list of a flag; "" is none.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// pick returns the scenarios and contenders of two lists; an empty list is all.
func pick(scenarios, contenders string) ([]compare.Scenario, error) {
	named, err := choice("-scenarios", scenarios, scenarioNames())
	if err != nil {
		return nil, err
	}
	by, err := choice("-contenders", contenders, contenderNames())
	if err != nil {
		return nil, err
	}
	var picked []compare.Scenario
	for _, s := range compare.Scenarios {
		if named(s.Name) {
			s.Contenders = slices.DeleteFunc(slices.Clone(s.Contenders), func(c compare.Contender) bool { return !by(c.Name) })
			picked = append(picked, s)
		}
	}
	return picked, nil
}

// choice tells which names a flag lists; all of them when it lists none.
func choice(flag, list string, known []string) (func(name string) bool, error) {
	names := split(list)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s: %q is none of %s", flag, name, strings.Join(known, ", "))
		}
	}
	return func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }, nil
}

func scenarioNames() []string {
	var names []string
	for _, s := range compare.Scenarios {
		names = append(names, s.Name)
	}
	return names
}

func contenderNames() []string {
	var names []string
	for _, s := range compare.Scenarios {
		for _, c := range s.Contenders {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
