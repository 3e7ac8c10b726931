package rules

import (
	"reflect"

	"gopkg.in/yaml.v3"
)

// readTruth reads a capacity that is a mapping.
func (d *document) readTruth(p place, c *Capacity) {
	truth := defaultTruth()
	d.decodeStruct(p, reflect.ValueOf(truth).Elem())
	if !p.field("hot").written {
		truth.Hot = min(truth.Hot, truth.Refresh)
	}
	sql, http := p.field("sql").written, p.field("http").written
	switch {
	case sql && http:
		p.faultf("has sql and http: keep one of them")
	case truth.SQL != nil:
		*c = Capacity{Kind: CapacitySQL, Truth: truth}
	case truth.HTTP != nil:
		*c = Capacity{Kind: CapacityHTTP, Truth: truth}
	case !d.broken(p.value):
		p.unreadablef(wantCapacity)
	}
}

const wantTotal = "takes a number of units, { query: … } beside sql, or { value: json:/… } beside http"

func (d *document) readTotal(p place, total *TotalConfig) {
	if p.value.Kind == yaml.MappingNode {
		var from struct {
			Query string    `yaml:"query"`
			Value Extractor `yaml:"value"`
		}
		d.decodeStruct(p, reflect.ValueOf(&from).Elem())
		switch query, value := p.field("query").written, p.field("value").written; {
		case d.broken(p.value):
		case query == value, query && from.Query == "":
			p.unreadablef(wantTotal)
		default:
			*total = TotalConfig{Query: from.Query, Value: from.Value}
		}
		return
	}
	s, ok := d.scalar(p.value)
	if !ok {
		p.unreadablef(wantTotal+", not %s", describe(p.value))
		return
	}
	n, err := parseInteger(s)
	switch {
	case err != nil:
		p.unreadablef("%s: it "+wantTotal, err)
	case n.(int64) < 1:
		p.unreadablef("%s is below 1: the total is what a slot has when nothing is booked", s.text)
	default:
		*total = TotalConfig{Units: n.(int64)}
	}
}

// readAnswerValue reads where an answer of the truth source has a value: the short
// form of a JSON Pointer only.
func (d *document) readAnswerValue(p place, e *Extractor) {
	const want = "takes a place in the answer's JSON, such as json:/data/remain"
	s, ok := d.scalar(p.value)
	if !ok {
		p.unreadablef(want+", not %s", describe(p.value))
		return
	}
	read, err := parseExtractor(s.text)
	switch {
	case err != nil:
		p.unreadablef("%s", err)
	case read.Source != FromJSON:
		p.unreadablef("%q: it "+want, s.text)
	default:
		*e = read
	}
}
