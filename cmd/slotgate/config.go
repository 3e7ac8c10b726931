package main

import (
	"errors"
	"flag"
	"os"

	"github.com/slotgate/slotgate/gate/truth/source"
	"github.com/slotgate/slotgate/rules"
)

// configFlags are the flags of every command that loads a configuration.
type configFlags struct {
	file string
	sets []string
	text []byte // once loaded
}

func (f *configFlags) register(set *flag.FlagSet) {
	set.StringVar(&f.file, "c", "", "")
	set.Func("set", "", appendTo(&f.sets))
}

// load reads the file. The configuration is nil when a fault is an error.
func (f *configFlags) load() (*rules.Config, rules.Faults, error) {
	if f.file == "" {
		return nil, nil, errors.New("-c FILE is missing")
	}
	var err error
	if f.text, err = os.ReadFile(f.file); err != nil {
		return nil, nil, err
	}
	config, faults := rules.Load(f.file, f.text, rules.LoadOptions{Env: os.LookupEnv, Set: f.sets, DSN: source.CheckDSN})
	return config, faults, nil
}

// places are those of what was loaded.
func (f *configFlags) places() rules.Places { return rules.ReadPlaces(f.file, f.text, f.sets) }
