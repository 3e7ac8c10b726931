package rules

import (
	"encoding/json"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
)

// object is a JSON object of the schema.
type object = map[string]any

// JSONSchema is the configuration file as a JSON Schema (draft 2020-12), for
// editors. It knows shapes, words and bounds; what depends on another field only
// Load can tell. The repository keeps it in schema.json, where the first line of
// config.example.yaml leads editors.
func JSONSchema() []byte {
	schema := structSchema(reflect.ValueOf(defaultConfig()).Elem())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "Slotgate configuration"
	schema["description"] = "What slotgate check --schema prints. It knows shapes, words and bounds; slotgate check -c FILE knows the rest."
	schema["$defs"] = schemaDefinitions
	out, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic("rules: the schema holds what JSON cannot: " + err.Error())
	}
	return append(out, '\n')
}

// required lists the fields without which a block says nothing.
var required = map[reflect.Type][]string{
	reflect.TypeFor[Config]():         {"upstream", "rules"},
	reflect.TypeFor[UpstreamConfig](): {"url"},
	reflect.TypeFor[PoolConfig]():     {"capacity"},
	reflect.TypeFor[RuleConfig]():     {"name", "match"},
	reflect.TypeFor[MatchConfig]():    {"path"},
	reflect.TypeFor[OutcomeConfig]():  {"when", "is"},
	reflect.TypeFor[SQLSource]():      {"driver", "dsn", "query"},
	reflect.TypeFor[HTTPSource]():     {"path", "value"},
}

// schemaDefinitions are the forms that values take. A variable can stand for any
// single value.
var schemaDefinitions = object{
	"variable":  object{"type": "string", "pattern": `\$\{`, "description": "${NAME} or ${NAME:-default}"},
	"duration":  object{"type": "string", "minLength": 1, "pattern": `^([0-9]+d)?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))*$`, "examples": []string{"250ms", "30s", "24h", "30d"}},
	"size":      object{"type": "string", "pattern": sizePattern.String(), "examples": []string{"64KiB", "1MiB"}},
	"rate":      object{"type": "string", "pattern": `^[1-9][0-9]*/[0-9]*(ms|s|m|h|d)$`, "examples": []string{"50/s", "5/10s"}},
	"time":      object{"anyOf": []object{{"const": ""}, {"type": "string", "format": "date-time"}}},
	"addresses": object{"type": "string", "pattern": `^[0-9a-fA-F.:]+/[0-9]{1,3}$`, "examples": []string{"10.0.0.0/8"}},
	"text":      object{"type": []string{"string", "number", "boolean"}},
	"value":     object{"type": []string{"string", "number", "boolean", "null"}},
	"capacity": anyOf(
		object{"type": "integer", "minimum": 0},
		object{"const": "learned"},
		truthSchema(),
		ref("variable"),
	),
	"total": anyOf(
		object{"type": "integer", "minimum": 1},
		object{
			"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
			"properties": object{
				"query": described("sql: one value; the slot is its one parameter", ref("text")),
				"value": described("http: where the answer has it", ref("answerValue")),
			},
		},
		ref("variable"),
	),
	"answerValue": anyOf(object{"type": "string", "pattern": "^json:/", "examples": []string{"json:/data/remain"}}, ref("variable")),
	"extractor": anyOf(
		object{"type": "string", "pattern": `^(ip$|(` + strings.Join(sourceWords, "|") + `):)`, "examples": []string{"path:lesson", "json:/student_id"}},
		object{
			"type": "object", "additionalProperties": false, "required": []string{"from"},
			"properties": object{
				"from": described("such as json:/student_id", object{"type": "string"}),
				"as":   described("integer: plain digits without leading zero, where the backend parses numbers", object{"enum": []string{"text", "integer"}}),
				"case": described("fold: values that differ only by letter case are one", object{"enum": []string{"keep", "fold"}}),
			},
		},
		ref("variable"),
	),
	"extractors":  anyOf(object{"const": ""}, ref("extractor"), object{"type": "array", "items": ref("extractor")}),
	"fingerprint": anyOf(object{"enum": []string{"auto", "body", "none"}}, ref("extractor"), object{"type": "array", "items": ref("extractor"), "minItems": 1}),
	"status":      anyOf(object{"type": "integer", "minimum": 100, "maximum": 599}, object{"type": "string", "pattern": statusPattern.String()}, ref("variable")),
	"statuses":    anyOf(ref("status"), object{"type": "array", "items": ref("status"), "minItems": 1}),
}

// schemaTypes are the types that are not described by their kind.
var schemaTypes = map[reflect.Type]object{
	reflect.TypeFor[time.Duration](): anyOf(ref("duration"), ref("variable")),
	reflect.TypeFor[Size]():          anyOf(ref("size"), ref("variable")),
	reflect.TypeFor[Rate]():          anyOf(ref("rate"), ref("variable")),
	reflect.TypeFor[netip.Prefix]():  anyOf(ref("addresses"), ref("variable")),
	reflect.TypeFor[time.Time]():     anyOf(ref("time"), ref("variable")),
	reflect.TypeFor[Capacity]():      ref("capacity"),
	reflect.TypeFor[TotalConfig]():   ref("total"),
	reflect.TypeFor[Extractor]():     ref("answerValue"),
	reflect.TypeFor[Extractors]():    ref("extractors"),
	reflect.TypeFor[Fingerprint]():   ref("fingerprint"),
	reflect.TypeFor[[]StatusRange](): ref("statuses"),
	reflect.TypeFor[Scalar]():        ref("value"),
}

// truthSchema is a capacity that a truth source tells.
func truthSchema() object {
	schema := structSchema(reflect.ValueOf(defaultTruth()).Elem())
	schema["oneOf"] = []object{{"required": []string{"sql"}}, {"required": []string{"http"}}}
	return schema
}

func ref(name string) object              { return object{"$ref": "#/$defs/" + name} }
func anyOf(alternatives ...object) object { return object{"anyOf": alternatives} }

func described(text string, schema object) object {
	schema["description"] = text
	return schema
}

// structSchema describes a block; v holds its defaults.
func structSchema(v reflect.Value) object {
	properties := object{}
	for i, f := range fieldsOf(v.Type()) {
		property := typeSchema(v.Field(i), f.tag)
		if doc := f.tag.Get("doc"); doc != "" {
			property["description"] = doc
		}
		if value, ok := writtenDefault(v.Field(i)); ok && !slices.Contains(required[v.Type()], f.name) {
			property["default"] = value
		}
		properties[f.name] = property
	}
	schema := object{"type": "object", "additionalProperties": false, "properties": properties}
	if fields := required[v.Type()]; fields != nil {
		schema["required"] = fields
	}
	return schema
}

// typeSchema describes a field; it makes a new object at each call.
func typeSchema(v reflect.Value, tag reflect.StructTag) object {
	t := v.Type()
	if schema, ok := schemaTypes[t]; ok {
		return maps.Clone(schema)
	}
	if words := tag.Get("enum"); words != "" && t.Kind() != reflect.Slice {
		return anyOf(object{"enum": strings.Split(words, ",")}, ref("variable"))
	}
	switch t.Kind() {
	case reflect.Struct:
		return structSchema(v)
	case reflect.Pointer:
		return typeSchema(newDefault(t.Elem()).Elem(), tag)
	case reflect.Slice:
		schema := object{"type": "array", "items": typeSchema(reflect.Zero(t.Elem()), tag)}
		if t == reflect.TypeFor[[]*RuleConfig]() {
			schema["minItems"] = 1
		}
		return schema
	case reflect.Map:
		schema := object{"type": "object", "additionalProperties": typeSchema(reflect.Zero(t.Elem()), "")}
		if t == reflect.TypeFor[map[string]AnswerConfig]() {
			schema["propertyNames"] = object{"enum": answerNames}
		}
		return schema
	case reflect.String:
		return ref("text")
	case reflect.Bool:
		return anyOf(object{"type": "boolean"}, ref("variable"))
	case reflect.Float64:
		return anyOf(bounded("number", tag), ref("variable"))
	}
	return anyOf(bounded("integer", tag), ref("variable"))
}

func bounded(kind string, tag reflect.StructTag) object {
	schema := object{"type": kind}
	if bound := tag.Get("min"); bound != "" {
		schema["minimum"] = json.Number(bound)
	}
	if bound := tag.Get("max"); bound != "" {
		schema["maximum"] = json.Number(bound)
	}
	return schema
}

// writtenDefault is a single value, or a list of them, as it stands in a file.
func writtenDefault(v reflect.Value) (any, bool) {
	switch value := v.Interface().(type) {
	case time.Duration:
		return FormatDuration(value), true
	case []Outcome:
		words := make([]string, len(value))
		for i, o := range value {
			words[i] = o.String()
		}
		return words, len(words) > 0
	case Extractors:
		texts := make([]string, len(value))
		for i, e := range value {
			texts[i] = e.String()
		}
		return texts, len(texts) > 0
	case Rate:
		return value.String(), value.Count > 0
	case Size:
		return value.String(), true
	case Outcome:
		return nil, false
	case string, bool, int, int64, float64, []string:
		return value, v.Kind() != reflect.Slice || v.Len() > 0
	}
	return nil, false
}
