package rules

import "reflect"

// LoadOptions is what a configuration takes from outside its file.
type LoadOptions struct {
	// Env looks up ${NAME}; nil knows no variable. os.LookupEnv fits.
	Env func(name string) (string, bool)
	// Set replaces values by path, each as path=value: upstream.timeout=2s,
	// pools.lessons.capacity=7, rules.book-lesson.mode=off. An entry of a list is
	// named by its name or its index. A value that starts with [ or { is YAML.
	Set []string
	// DSN tells what is wrong with the dsn of an sql source, in words that do not show
	// it, as only the driver (postgres, mysql or sqlite) knows; nil believes all.
	DSN func(driver, dsn string) error
}

// Load reads a configuration file's text: YAML to positions, overrides, variables,
// values over defaults, checks. It reports every fault it can see, not the first,
// and warnings beside them. The Config is nil when a fault is more than a warning.
// name is the file's name in faults.
func Load(name string, src []byte, opts LoadOptions) (*Config, Faults) {
	doc := parseDocument(name, src)
	if doc.root == nil {
		doc.faults.sort()
		return nil, doc.faults
	}
	doc.override(opts.Set)
	doc.checkStructure(doc.root)
	doc.expand(doc.root, opts.Env)

	cfg := defaultConfig()
	doc.decode(doc.top(), reflect.ValueOf(cfg).Elem(), "")
	resolve(cfg)
	validate(doc, cfg, opts.DSN)
	warn(doc, cfg)

	doc.faults.sort()
	if len(doc.faults.Errors()) > 0 {
		return nil, doc.faults
	}
	return cfg, doc.faults
}
