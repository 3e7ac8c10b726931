package rules

import (
	"reflect"
	"strings"
)

// unavailable lists what the schema has and no engine carries out yet. Each line
// goes when its engine comes. path is as in the file, * being every pool or rule.
var unavailable = []struct {
	path string
	used func(value any) bool
	what string
}{
	{"pools.*.reject_cache", set, "reject_cache"},
}

func set(v any) bool {
	value := reflect.ValueOf(v)
	return !value.IsZero() && (value.Kind() != reflect.Slice || value.Len() > 0)
}

func (v *validator) unavailable(top place) {
	for _, u := range unavailable {
		eachAt(top, reflect.ValueOf(v.cfg).Elem(), u.path, func(p place, value reflect.Value) {
			if u.used(value.Interface()) && !(p.written && p.broken()) {
				p.faultf("%s is not available yet", u.what)
			}
		})
	}
}

// eachAt visits the fields that a path with * stands for.
func eachAt(p place, v reflect.Value, path string, visit func(place, reflect.Value)) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if path == "" {
		visit(p, v)
		return
	}
	name, rest, _ := strings.Cut(path, ".")
	switch v.Kind() {
	case reflect.Map:
		for _, key := range v.MapKeys() {
			eachAt(p.field(key.String()), v.MapIndex(key), rest, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachAt(p.item(i), v.Index(i), rest, visit)
		}
	case reflect.Struct:
		for i, f := range fieldsOf(v.Type()) {
			if f.name == name {
				eachAt(p.field(name), v.Field(i), rest, visit)
			}
		}
	}
}
