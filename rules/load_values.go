package rules

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// structured reads the types of the schema that have more than one form. The
// target is a pointer to the type.
var structured map[reflect.Type]func(d *document, p place, target any)

func init() { // its entries decode in turn
	structured = map[reflect.Type]func(*document, place, any){
		reflect.TypeFor[Capacity]():      readInto((*document).readCapacity),
		reflect.TypeFor[TotalConfig]():   readInto((*document).readTotal),
		reflect.TypeFor[Extractor]():     readInto((*document).readAnswerValue),
		reflect.TypeFor[Extractors]():    readInto((*document).readExtractors),
		reflect.TypeFor[Fingerprint]():   readInto((*document).readFingerprint),
		reflect.TypeFor[[]StatusRange](): readInto((*document).readStatuses),
		reflect.TypeFor[Scalar]():        readInto((*document).readScalar),
	}
}

func readInto[T any](read func(*document, place, *T)) func(*document, place, any) {
	return func(d *document, p place, target any) { read(d, p, target.(*T)) }
}

const wantCapacity = "takes a number of units, learned, or a truth source { sql: … } or { http: … }"

func (d *document) readCapacity(p place, c *Capacity) {
	if p.value.Kind == yaml.MappingNode {
		d.readTruth(p, c)
		return
	}
	s, ok := d.scalar(p.value)
	if !ok {
		p.unreadablef(wantCapacity+", not %s", describe(p.value))
		return
	}
	if s.text == "learned" {
		c.Kind = CapacityLearned
		return
	}
	n, err := parseInteger(s)
	switch {
	case err != nil && strings.Trim(s.text, "+-.,_0123456789abcdefxoABCDEFXO") != "": // no kind of number
		p.unreadablef("%q is no capacity%s", s.text, cmp.Or(didYouMean(s.text, []string{"learned"}), ": it "+wantCapacity))
	case err != nil:
		p.unreadablef("%s", err)
	case n.(int64) < 0:
		p.unreadablef("%s is below 0: a slot has 0 units or more", s.text)
	default:
		*c = Capacity{Kind: CapacityNumber, Units: n.(int64)}
	}
}

func (d *document) readExtractors(p place, list *Extractors) {
	if p.value.Kind == yaml.SequenceNode {
		*list = make(Extractors, 0, len(p.value.Content))
		for i := range p.value.Content {
			if e, ok := d.readExtractor(p.item(i)); ok {
				*list = append(*list, e)
			}
		}
		return
	}
	if s, ok := d.scalar(p.value); ok && s.text == "" {
		*list = nil // "" is how a configuration says none
		return
	}
	if e, ok := d.readExtractor(p); ok {
		*list = Extractors{e}
	}
}

const extractorForms = "an extractor is json:/student_id, or { from: json:/student_id, as: integer, case: fold }"

// readExtractor reads the short or the long form.
func (d *document) readExtractor(p place) (e Extractor, ok bool) {
	if d.unreadable[p.value] || p.refuseNull() {
		return e, false
	}
	if p.value.Kind == yaml.MappingNode {
		return d.readLongExtractor(p)
	}
	s, ok := d.scalar(p.value)
	if !ok {
		p.unreadablef("%s, not %s", extractorForms, describe(p.value))
		return e, false
	}
	e, err := parseExtractor(s.text)
	if err != nil {
		p.unreadablef("%s", err)
	}
	return e, err == nil
}

func (d *document) readLongExtractor(p place) (e Extractor, ok bool) {
	var long struct {
		From string `yaml:"from"`
		As   string `yaml:"as" enum:"text,integer"`
		Case string `yaml:"case" enum:"keep,fold"`
	}
	fields := reflect.ValueOf(&long).Elem()
	d.refuseUnknown(p, names(fieldsOf(fields.Type())), ": "+extractorForms)
	if d.broken(p.value) {
		return e, false
	}
	d.decodeStruct(p, fields)
	from := p.field("from")
	switch {
	case d.broken(p.value):
		return e, false
	case !from.written:
		p.unreadablef("from is missing: %s", extractorForms)
		return e, false
	}
	e, err := parseExtractor(long.From)
	if err != nil {
		from.unreadablef("%s", err)
		return e, false
	}
	e.Integer, e.Fold = long.As == "integer", long.Case == "fold"
	return e, true
}

var sourceWords = []string{"path", "query", "header", "cookie", "form", "json", "ip", "const"}

var sourcesByWord = map[string]Source{
	"path": FromPath, "query": FromQuery, "header": FromHeader, "cookie": FromCookie,
	"form": FromForm, "json": FromJSON, "ip": FromIP, "const": FromConst,
}

// String is the extractor's short form.
func (e Extractor) String() string {
	for word, source := range sourcesByWord {
		if source == e.Source {
			return word + ":" + e.Name
		}
	}
	return "invalid"
}

var (
	tokenPattern   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // RFC 9110, 5.6.2
	pointerPattern = regexp.MustCompile(`^(/([^~]|~[01])*)?$`)           // RFC 6901, 3, with the next line
)

// parseExtractor reads SOURCE:NAME.
func parseExtractor(text string) (Extractor, error) {
	word, name, found := strings.Cut(text, ":")
	source, known := sourcesByWord[word]
	e := Extractor{Source: source, Name: name}
	switch {
	case text == "":
		return e, errors.New("is empty: " + extractorForms)
	case !known && !found:
		return e, fmt.Errorf("%q does not say where to look: write path:%s, query:%s, header:%s, cookie:%s, form:%s or json:/%s", text, word, word, word, word, word, word)
	case !known:
		return e, fmt.Errorf("%q is not a source%s", word, cmp.Or(didYouMean(word, sourceWords), ": write one of "+strings.Join(sourceWords, ", ")))
	case source == FromIP && name != "":
		return e, fmt.Errorf("%q: the client address has no name, write \"ip:\"", text)
	case source == FromIP:
		return e, nil
	case name == "":
		return e, fmt.Errorf("%q names nothing: write what to read behind the colon", text)
	case source == FromJSON:
		return e, checkPointer(name)
	case (source == FromHeader || source == FromCookie) && !tokenPattern.MatchString(name):
		return e, fmt.Errorf("%q is not the name of a %s", name, word)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return e, fmt.Errorf("%q holds a control character", text)
	}
	return e, nil
}

// checkPointer checks a JSON Pointer (RFC 6901) to something inside a document.
func checkPointer(pointer string) error {
	switch {
	case !strings.HasPrefix(pointer, "/"):
		return fmt.Errorf("%q is not a JSON Pointer: write /%s", pointer, strings.ReplaceAll(strings.TrimPrefix(pointer, "$."), ".", "/"))
	case !pointerPattern.MatchString(pointer):
		return fmt.Errorf("%q is not a JSON Pointer: a ~ is written ~0, and a / inside a name ~1", pointer)
	}
	return nil
}

func (d *document) readFingerprint(p place, f *Fingerprint) {
	modes := map[string]FingerprintMode{"auto": FingerprintAuto, "body": FingerprintBody, "none": FingerprintNone}
	s, single := d.scalar(p.value)
	if single && !strings.Contains(s.text, ":") {
		mode, ok := modes[s.text]
		if !ok {
			p.unreadablef("%q is not one of auto, body, none or a list of extractors%s", s.text, didYouMean(s.text, []string{"auto", "body", "none"}))
			return
		}
		f.Mode = mode
		return
	}
	f.Mode = FingerprintList
	d.readExtractors(p, &f.Extractors)
	if len(f.Extractors) == 0 {
		p.faultf("the list is empty: write none if the body should not count")
	}
}

var statusPattern = regexp.MustCompile(`^(?:([1-5])xx|([1-5][0-9][0-9])(?:-([1-5][0-9][0-9]))?)$`)

func (d *document) readStatuses(p place, list *[]StatusRange) {
	places := []place{p}
	if p.value.Kind == yaml.SequenceNode {
		places = nil
		for i := range p.value.Content {
			places = append(places, p.item(i))
		}
		if len(places) == 0 {
			p.unreadablef("the list is empty: write a status, or leave the line out for any")
			return
		}
	}
	for _, at := range places {
		if d.unreadable[at.value] || at.refuseNull() {
			continue
		}
		s, ok := d.scalar(at.value)
		if !ok {
			at.unreadablef("takes a status such as 200, 4xx, 500-503, not %s", describe(at.value))
			continue
		}
		r, err := parseStatus(s.text)
		if err != nil {
			at.unreadablef("%s", err)
			continue
		}
		*list = append(*list, r)
	}
}

func parseStatus(text string) (StatusRange, error) {
	m := statusPattern.FindStringSubmatch(text)
	switch {
	case m == nil && statusPattern.MatchString(strings.ToLower(text)):
		return StatusRange{}, fmt.Errorf("%q: write %s", text, strings.ToLower(text))
	case m == nil:
		return StatusRange{}, fmt.Errorf("%q is not a status: write one such as 200, 4xx, 500-503", text)
	case m[1] != "":
		hundreds := int(m[1][0]-'0') * 100
		return StatusRange{hundreds, hundreds + 99}, nil
	}
	first, _ := strconv.Atoi(m[2])
	last, err := strconv.Atoi(m[3])
	if err != nil {
		last = first
	}
	if last < first {
		return StatusRange{}, fmt.Errorf("%q ends before it begins: write %d-%d", text, last, first)
	}
	return StatusRange{first, last}, nil
}

// readScalar keeps a number's text, so that it can be compared exactly.
func (d *document) readScalar(p place, v *Scalar) {
	s, ok := d.scalar(p.value)
	if !ok {
		p.unreadablef("takes text, a number, true, false or null, not %s", describe(p.value))
		return
	}
	plain := s.plain && !(quoted(p.value) && d.expanded[p.value]) // here quotes matter: "0" is not 0
	switch {
	case d.isNull(p.value):
		*v = Scalar{Kind: ScalarNull, Text: "null"}
	case plain && (s.text == "true" || s.text == "false"):
		*v = Scalar{Kind: ScalarBool, Text: s.text}
	case plain && decimalPattern.MatchString(s.text):
		*v = Scalar{Kind: ScalarNumber, Text: s.text}
	case plain && oddNumberPattern.MatchString(s.text):
		p.unreadablef("%s, or quote it if it is text", oddNumberError(s.text))
	case plain && slices.Contains([]string{"yes", "no", "on", "off", "y", "n", "true", "false"}, strings.ToLower(s.text)):
		p.unreadablef("%s is a boolean for some YAML versions and text for others: write true or false, or quote it", s.text)
	default:
		*v = Scalar{Kind: ScalarString, Text: s.text}
	}
}
