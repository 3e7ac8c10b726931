package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// decode reads what stands at a place into a field of the schema. What is not
// written, or has a fault, keeps its default.
func (d *document) decode(p place, v reflect.Value, tag reflect.StructTag) {
	if d.unreadable[p.value] {
		return
	}
	if v.Type() != reflect.TypeFor[Scalar]() && p.refuseNull() {
		return
	}
	if read, ok := structured[v.Type()]; ok {
		read(d, p, v.Addr().Interface())
		return
	}
	if t, ok := textTypes[v.Type()]; ok {
		d.decodeText(p, v, t, tag)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.decodeStruct(p, v)
	case reflect.Pointer:
		v.Set(newDefault(v.Type().Elem()))
		d.decode(p, v.Elem(), tag)
	case reflect.Map:
		d.decodeMap(p, v)
	case reflect.Slice:
		d.decodeList(p, v, tag)
	case reflect.String:
		d.decodeString(p, v, tag)
	default:
		panic("rules: the schema has a field of type " + v.Type().String() + ", which nothing reads")
	}
}

func (d *document) decodeStruct(p place, v reflect.Value) {
	fields := fieldsOf(v.Type())
	if p.value.Kind != yaml.MappingNode {
		p.unreadablef("takes the fields %s, not %s", strings.Join(names(fields), ", "), describe(p.value))
		return
	}
	d.refuseUnknown(p, names(fields), "")
	for i, f := range fields {
		if at := p.field(f.name); at.written {
			d.decode(at, v.Field(i), f.tag)
		}
	}
}

// refuseUnknown reports the keys of a mapping that are none of those known; hint
// follows where no known key is near.
func (d *document) refuseUnknown(p place, known []string, hint string) {
	for i := 0; i+1 < len(p.value.Content); i += 2 {
		key := p.value.Content[i]
		if d.unreadable[key] || slices.Contains(known, key.Value) {
			continue
		}
		more := didYouMean(key.Value, known)
		if more == "" {
			more = hint
		}
		unknown := place{d, p.path, key, key, true}
		unknown.unreadablef("unknown key %s%s", key.Value, more)
	}
}

func (d *document) decodeMap(p place, v reflect.Value) {
	if p.value.Kind != yaml.MappingNode {
		p.unreadablef("takes a mapping of names to values, not %s", describe(p.value))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(p.value.Content); i += 2 {
		key := p.value.Content[i]
		if d.unreadable[key] {
			continue
		}
		elem := reflect.New(v.Type().Elem()).Elem()
		d.decode(p.field(key.Value), elem, "")
		if elem.Kind() == reflect.Pointer && elem.IsNil() {
			continue
		}
		v.SetMapIndex(reflect.ValueOf(key.Value), elem)
	}
}

// decodeList keeps an entry for each that is written, so that indexes agree.
func (d *document) decodeList(p place, v reflect.Value, tag reflect.StructTag) {
	if p.value.Kind != yaml.SequenceNode {
		how := "begin each entry with -"
		if p.value.Kind == yaml.ScalarNode {
			how = "write [" + p.value.Value + "]"
		}
		p.unreadablef("takes a list, not %s: %s", describe(p.value), how)
		return
	}
	list := reflect.MakeSlice(v.Type(), len(p.value.Content), len(p.value.Content))
	for i := range p.value.Content {
		elem := list.Index(i)
		if elem.Kind() == reflect.Pointer {
			elem.Set(newDefault(elem.Type().Elem()))
		}
		d.decode(p.item(i), elem, tag)
	}
	v.Set(list)
}

func (d *document) decodeString(p place, v reflect.Value, tag reflect.StructTag) {
	s, ok := d.scalar(p.value)
	if !ok {
		p.unreadablef("takes text, not %s: quote it if it is text", describe(p.value))
		return
	}
	if p.allows(s.text, tag) {
		v.SetString(s.text)
	}
}

// allows reports a word that is none of an enum's.
func (p place) allows(word string, tag reflect.StructTag) bool {
	enum, limited := tag.Lookup("enum")
	if words := strings.Split(enum, ","); limited && !slices.Contains(words, word) {
		p.unreadablef("%q is not one of %s%s", word, strings.Join(words, ", "), didYouMean(word, words))
		return false
	}
	return true
}

func (d *document) decodeText(p place, v reflect.Value, t textType, tag reflect.StructTag) {
	s, ok := d.scalar(p.value)
	if !ok {
		p.unreadablef("takes %s, not %s", t.want, describe(p.value))
		return
	}
	if !p.allows(s.text, tag) {
		return
	}
	parsed, err := t.parse(s)
	if err != nil {
		p.unreadablef("%s", err)
		return
	}
	value := reflect.ValueOf(parsed).Convert(v.Type())
	if bound := tag.Get("min"); bound != "" && t.less(value, bound) {
		p.unreadablef("%s is too little: the least is %s", s.text, bound)
		return
	}
	if bound := tag.Get("max"); bound != "" && t.more(value, bound) {
		p.unreadablef("%s is too much: the most is %s", s.text, bound)
		return
	}
	v.Set(value)
}

// less and more compare a value with a bound as it stands in a tag.
func (t textType) less(v reflect.Value, bound string) bool { return t.order(v, bound) < 0 }
func (t textType) more(v reflect.Value, bound string) bool { return t.order(v, bound) > 0 }

func (t textType) order(v reflect.Value, bound string) int {
	limit, err := t.parse(scalar{text: bound, plain: true})
	if err != nil {
		panic(fmt.Sprintf("rules: the bound %q of a field is no value of it: %v", bound, err))
	}
	return compareNumbers(v, reflect.ValueOf(limit))
}

// schemaField is a field of a struct of the schema.
type schemaField struct {
	name string
	tag  reflect.StructTag
	typ  reflect.Type
}

// fieldsOf lists a struct's fields in order; every one of them has a yaml tag.
func fieldsOf(t reflect.Type) []schemaField {
	fields := make([]schemaField, t.NumField())
	for i := range fields {
		f := t.Field(i)
		fields[i] = schemaField{f.Tag.Get("yaml"), f.Tag, f.Type}
	}
	return fields
}

func names(fields []schemaField) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return out
}
