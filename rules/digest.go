package rules

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Digest is a hash of what all gates of one store must agree on: rules and pools after
// defaults, and how paths are read. Left out is what may differ from host to host:
// addresses, time limits of the server, the store and truth, secrets, reports, a gate's
// share while the store is away. So are the rules' modes, which operators switch while
// the gate runs.
func (c *Config) Digest() [sha256.Size]byte {
	sum := sha256.New()
	digest(sum, reflect.ValueOf(c.Upstream.Dialect))
	digest(sum, reflect.ValueOf(c.Pools))
	digest(sum, reflect.ValueOf(c.Rules))
	return [sha256.Size]byte(sum.Sum(nil))
}

// hostsOwn are the fields that digest leaves out.
var hostsOwn = map[reflect.Type][]string{
	reflect.TypeFor[SQLSource]():         {"DSN"},
	reflect.TypeFor[HTTPSource]():        {"Headers"},
	reflect.TypeFor[TruthConfig]():       {"Timeout", "Report", "ReportDir"},
	reflect.TypeFor[PassthroughConfig](): {"Share"},
	reflect.TypeFor[RuleConfig]():        {"Mode"},
}

// digest writes a value so that no two values meet: each part behind its kind or name,
// and its size.
func digest(sum hash.Hash, v reflect.Value) {
	if at, ok := v.Interface().(time.Time); ok {
		fmt.Fprintf(sum, "time %d\n", at.UnixNano())
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		fmt.Fprintf(sum, "pointer %t\n", v.IsNil())
		if !v.IsNil() {
			digest(sum, v.Elem())
		}
	case reflect.Struct:
		fmt.Fprintf(sum, "struct %d\n", v.NumField())
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if !slices.Contains(hostsOwn[v.Type()], name) {
				fmt.Fprintf(sum, "field %s\n", name)
				digest(sum, v.Field(i))
			}
		}
	case reflect.Map:
		fmt.Fprintf(sum, "map %d\n", v.Len())
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			fmt.Fprintf(sum, "key %q\n", key.String())
			digest(sum, v.MapIndex(key))
		}
	case reflect.Slice, reflect.Array:
		fmt.Fprintf(sum, "list %d\n", v.Len())
		for i := range v.Len() {
			digest(sum, v.Index(i))
		}
	case reflect.String:
		fmt.Fprintf(sum, "text %q\n", v.String())
	default:
		fmt.Fprintf(sum, "%v\n", v.Interface())
	}
}
