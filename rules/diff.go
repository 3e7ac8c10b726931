package rules

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Change is one setting that two configurations have otherwise. Path is as in the
// file, a rule standing under its name; "" for Was or Is: it is not there.
type Change struct{ Path, Was, Is string }

func (c Change) String() string {
	switch {
	case c.Was == "":
		return c.Path + " is new: " + c.Is
	case c.Is == "":
		return c.Path + " is gone"
	}
	return c.Path + ": " + c.Was + " → " + c.Is
}

// secretSettings are shown as changed, never as they are.
var secretSettings = []string{"token", "password", "secret", "encrypt_key", "encrypt_old_keys", "dsn", "headers"}

const changeWidth = 80

// Diff lists the settings in which two configurations differ, in the order of the
// file.
func Diff(was, is *Config) []Change {
	var d difference
	d.compare("", reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem())
	order := func(c *Config) (names []string) {
		for _, r := range c.Rules {
			names = append(names, r.Name)
		}
		return names
	}
	before, after := order(was), order(is)
	both := func(names, others []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(others, n) })
	}
	if before, after = both(before, after), both(after, before); !slices.Equal(before, after) {
		d.changes = append(d.changes, Change{"rules", strings.Join(before, ", "), strings.Join(after, ", ")})
	}
	return d.changes
}

type difference struct{ changes []Change }

func (d *difference) compare(path string, was, is reflect.Value) {
	if was.Kind() == reflect.Pointer {
		if was.IsNil() || is.IsNil() {
			if was.IsNil() != is.IsNil() {
				d.add(path, was, is)
			}
			return
		}
		was, is = was.Elem(), is.Elem()
	}
	switch {
	case was.Kind() == reflect.Struct && isSection(was.Type()):
		for i, f := range fieldsOf(was.Type()) {
			d.compare(strings.TrimPrefix(path+"."+f.name, "."), was.Field(i), is.Field(i))
		}
	case was.Type() == reflect.TypeFor[map[string]*PoolConfig]():
		compareNamed(d, path, was.Interface().(map[string]*PoolConfig), is.Interface().(map[string]*PoolConfig))
	case was.Type() == reflect.TypeFor[[]*RuleConfig]():
		compareNamed(d, path, rulesByName(was), rulesByName(is))
	case was.Type() == reflect.TypeFor[Capacity]() && was.Interface().(Capacity).Truth != nil && is.Interface().(Capacity).Truth != nil:
		d.compare(path, reflect.ValueOf(was.Interface().(Capacity).Truth), reflect.ValueOf(is.Interface().(Capacity).Truth))
	case !reflect.DeepEqual(was.Interface(), is.Interface()):
		d.add(path, was, is)
	}
}

func compareNamed[T any](d *difference, path string, was, is map[string]*T) {
	all := maps.Clone(was)
	if all == nil {
		all = map[string]*T{}
	}
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d.compare(path+"."+name, reflect.ValueOf(was[name]), reflect.ValueOf(is[name]))
	}
}

func rulesByName(list reflect.Value) map[string]*RuleConfig {
	byName := map[string]*RuleConfig{}
	for _, r := range list.Interface().([]*RuleConfig) {
		byName[r.Name] = r
	}
	return byName
}

// isSection reports a struct of the schema, all of whose fields have names there.
func isSection(t reflect.Type) bool {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("yaml") == "" {
			return false
		}
	}
	return t.NumField() > 0
}

func (d *difference) add(path string, was, is reflect.Value) {
	c := Change{Path: path, Was: settingText(was), Is: settingText(is)}
	if slices.Contains(secretSettings, path[strings.LastIndexByte(path, '.')+1:]) {
		c.Was, c.Is = "(secret)", "(another)"
	}
	d.changes = append(d.changes, c)
}

// settingText is a value as a person would write it; "" for one that is not there.
func settingText(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		if isSection(v.Elem().Type()) {
			return "{…}"
		}
		v = v.Elem()
	}
	text := ""
	switch value := v.Interface().(type) {
	case time.Duration:
		text = FormatDuration(value)
	case time.Time:
		if text = `""`; !value.IsZero() {
			text = value.Format(time.RFC3339)
		}
	case string:
		text = fmt.Sprintf("%q", value)
	case Capacity:
		switch value.Kind {
		case CapacityNumber:
			text = fmt.Sprint(value.Units)
		case CapacityLearned:
			text = "learned"
		default:
			text = "truth"
		}
	case Extractors:
		var list []string
		for _, e := range value {
			list = append(list, e.String())
		}
		text = "[" + strings.Join(list, ", ") + "]"
	default:
		text = fmt.Sprint(value)
	}
	if len(text) > changeWidth {
		text = strings.ToValidUTF8(text[:changeWidth], "") + "…"
	}
	return text
}
