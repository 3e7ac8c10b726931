package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Pool is a family of slots that share settings.
type Pool struct {
	Name string
	PoolConfig
}

// Rule is one entry of rules, made ready for requests. It is immutable and safe
// for concurrent use.
type Rule struct {
	RuleConfig
	Index int   // its place in the file, from 0
	Pool  *Pool // nil for a guard without one

	set *Set

	// What Match looks at.
	template  Template
	loose     bool       // book and guard rules match what backends route alike
	routes    []Template // the template, and what else backends run the same script for
	params    map[string]*regexp.Regexp
	except    []Template
	pathNames []string // the variables that extractors read
	hosts     []string
	condition []fieldCondition

	// What Extract looks at.
	slot, subject, units  []source
	hold                  []source
	key, partition, scope []source
	printed               []source // fingerprint: a list of extractors
	fingerprint           FingerprintMode
	pointers              *jsonNode // every JSON Pointer of the sources, nil without one
	pointerCount          int
	readsBody             bool
	charset               charset
	anyCharset            bool // of no rule: names and values are ASCII anyway
	maxUnits              int64

	// What Classify and ExtractReference look at.
	outcomes       []outcomeLine
	reference      *answerSource // nil without one
	answerPointers *jsonNode
	answerCount    int

	page *Rule // fits the page that hands out one-time ids; nil without one
}

// Set is the compiled rules of one configuration, in the order of the file. It is
// immutable and safe for concurrent use; a reload makes a new one.
type Set struct {
	Rules []*Rule
	Pools map[string]*Pool

	discretion discretion // see LoggedPath

	dialect *dialect
	maxBody int64    // server.max_body
	issued  []string // names of the cookies with one-time ids
	issuing []*Rule  // rules that hand them out
}

// defaultKey and defaultScope apply where the configuration names none.
var (
	defaultKey   = Extractors{{Source: FromHeader, Name: "Idempotency-Key"}}
	defaultScope = Extractors{{Source: FromHeader, Name: "Authorization"}, {Source: FromHeader, Name: "Cookie"}}
)

// defaultStore lists the outcomes whose answers are kept where the configuration
// names none.
func (r *RuleConfig) defaultStore() []Outcome {
	if r.settles() {
		return []Outcome{Done}
	}
	return []Outcome{Booked, Duplicate}
}

// maxUnitsPerRequest bounds units where no numeric capacity does: sums of millions
// of such holds stay exact in a double, which is what Lua counts with.
const maxUnitsPerRequest = 1_000_000_000

// NewSet compiles a configuration. It fails only on what validation of the file
// has already refused.
func NewSet(cfg *Config) (*Set, error) {
	s := &Set{
		Pools:   make(map[string]*Pool, len(cfg.Pools)),
		dialect: dialectNamed(cfg.Upstream.Dialect),
		maxBody: int64(cfg.Server.MaxBody),
		issued:  issuedCookies(cfg.Rules),
	}
	for name, p := range cfg.Pools {
		s.Pools[name] = &Pool{Name: name, PoolConfig: *p}
	}
	for i, rc := range cfg.Rules {
		r, err := newRule(s, i, rc)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", rc.Name, err)
		}
		s.Rules = append(s.Rules, r)
	}
	keepApart(s.Rules)
	s.prepareDiscretion()
	return s, nil
}

func newRule(s *Set, index int, rc *RuleConfig) (*Rule, error) {
	r := &Rule{RuleConfig: *rc, Index: index, set: s}
	if rc.Pool != "" {
		if r.Pool = s.Pools[rc.Pool]; r.Pool == nil {
			return nil, fmt.Errorf("pool %q is not in pools", rc.Pool)
		}
	}
	if err := r.prepareMatch(); err != nil {
		return nil, err
	}
	if err := r.prepareExtract(); err != nil {
		return nil, err
	}
	if err := r.preparePage(); err != nil {
		return nil, err
	}
	return r, r.prepareAnswer()
}

// prepareMatch: cancel and confirm rules are always exact, an over-matched one
// would free seats.
func (r *Rule) prepareMatch() (err error) {
	if r.template, err = ParseTemplate(r.Match.Path); err != nil {
		return err
	}
	r.loose = !r.Match.Exact && (r.Action == "book" || r.Action == "guard")
	r.routes = []Template{r.template}
	if r.loose {
		r.routes = r.set.dialect.routesOf(r.template)
	}
	for name, pattern := range r.Match.Params {
		re, err := regexp.Compile(`^(?:` + pattern + `)$`)
		if err != nil {
			return fmt.Errorf("match.params.%s: %w", name, err)
		}
		if r.params == nil {
			r.params = map[string]*regexp.Regexp{}
		}
		r.params[name] = re
	}
	for _, text := range r.Match.Except {
		t, err := ParseTemplate(text)
		if err != nil {
			return fmt.Errorf("match.except: %w", err)
		}
		r.except = append(r.except, t)
	}
	for _, h := range r.Match.Hosts {
		r.hosts = append(r.hosts, canonicalHost(h))
	}
	r.condition = newFieldConditions(r.Match.Headers)
	return nil
}

func (r *Rule) prepareExtract() (err error) {
	if r.charset, err = newCharset(r.Charset); err != nil {
		return err
	}
	c := sourceCompiler{}
	r.slot = c.sources(r.Slot, true)
	r.subject = c.sources(r.Subject, true)
	r.units = c.sources(r.Units, true)
	r.hold = c.sources(r.Hold, true)
	for i := range r.units {
		r.units[i].count = true
	}
	scope := defaultScope
	if idem := r.Idempotency; idem != nil {
		keys := idem.Key
		if len(keys) == 0 {
			keys = defaultKey
		}
		if idem.Scope != nil {
			scope = idem.Scope
		}
		r.key = c.sources(keys, false)
		for i := range r.key {
			s := &r.key[i]
			s.issued = s.Source == FromCookie && slices.Contains(r.set.issued, s.Name)
		}
		r.partition = c.sources(idem.Partition, false)
		r.fingerprint = idem.Fingerprint.Mode
		r.printed = c.sources(idem.Fingerprint.Extractors, false)
		r.readsBody = r.fingerprint == FingerprintAuto || r.fingerprint == FingerprintBody
	}
	r.scope = c.sources(scope, false)
	r.readsBody = r.readsBody || c.body
	r.pointers, r.pointerCount, r.pathNames = c.root, c.pointers, c.pathNames
	r.maxUnits = maxUnitsPerRequest
	if r.Pool != nil && r.Pool.Capacity.Kind == CapacityNumber {
		r.maxUnits = min(r.maxUnits, r.Pool.Capacity.Units)
	}
	return c.err
}

// ReadsBody reports whether Extract needs the body: an extractor of the rule reads
// it, or its idempotency does for the fingerprint. A query extractor counts, for
// many backends let a form field of the same name win.
func (r *Rule) ReadsBody() bool { return r.readsBody }

// RetryUnknown reports whether a retry of a request whose outcome is not known may
// go on under its hold: idempotency.unknown, where auto means that the backend
// tells a duplicate apart.
func (r *Rule) RetryUnknown() bool {
	if r.Idempotency != nil && r.Idempotency.Unknown != "" && r.Idempotency.Unknown != "auto" {
		return r.Idempotency.Unknown == "retry"
	}
	return slices.ContainsFunc(r.Outcomes, func(o OutcomeConfig) bool { return o.Is == Duplicate })
}

// ProbesUnknown reports whether truth is asked about a request whose outcome is not
// known: idempotency.unknown: probe.
func (r *Rule) ProbesUnknown() bool {
	return r.Idempotency != nil && r.Idempotency.Unknown == "probe"
}

// Keeps reports whether an answer of that outcome is kept and replayed
// (idempotency.store). Done is the word of rules without units for Booked.
func (r *Rule) Keeps(o Outcome) bool {
	if r.Idempotency == nil {
		return false
	}
	kept := r.Idempotency.Store
	if kept == nil {
		kept = r.defaultStore()
	}
	return slices.Contains(kept, o) || o == Done && slices.Contains(kept, Booked)
}

// fieldCondition is a header line that must be there: a value, or a prefix when
// the configured text ends in "*".
type fieldCondition struct {
	name, value string
	prefix      bool
}

func newFieldConditions(m map[string]string) []fieldCondition {
	var list []fieldCondition
	for name, text := range m {
		value, prefix := strings.CutSuffix(text, "*")
		list = append(list, fieldCondition{name: name, value: value, prefix: prefix})
	}
	slices.SortFunc(list, func(a, b fieldCondition) int { return strings.Compare(a.name, b.name) })
	return list
}

func (c *fieldCondition) holds(value string) bool {
	if c.prefix {
		return strings.HasPrefix(value, c.value)
	}
	return value == c.value
}
