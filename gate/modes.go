package gate

import (
	"fmt"
	"slices"

	"github.com/slotgate/slotgate/rules"
)

// ruleMode is what becomes of the requests of a rule, the stricter the lower.
type ruleMode uint8

const (
	modeEnforce ruleMode = iota // decided on
	modeShadow                  // passed on, and only counted (see Shadow)
	modeOff                     // passed on untouched
)

var modeWords = [...]string{"enforce", "shadow", "off"}

func (m ruleMode) String() string { return modeWords[m] }

func parseMode(word string) (ruleMode, error) {
	if i := slices.Index(modeWords[:], word); i >= 0 {
		return ruleMode(i), nil
	}
	return 0, fmt.Errorf("no such mode %q; use enforce, shadow or off", word)
}

// fileMode is what the file says of a rule.
func fileMode(rule *rules.Rule) ruleMode {
	m, err := parseMode(rule.Mode)
	if err != nil {
		return modeEnforce // validation knows the three words
	}
	return m
}

// modes are the modes of all rules at one moment, and what follows from them. It is
// immutable: a switch makes another.
type modes struct {
	book *rulebook
	of   []ruleMode // by Rule.Index
	// floor is the last switch of every rule: one that a reload adds is not stricter.
	floor ruleMode
	// enforced are the rules in enforce alone, watched those in shadow too; each is
	// the whole set where no rule is in another mode.
	enforced, watched *rules.Set
	untouched         bool // every rule is off
}

func newModes(book *rulebook, of []ruleMode, floor ruleMode) *modes {
	return &modes{
		book: book, of: of, floor: floor,
		enforced:  book.only(of, modeEnforce),
		watched:   book.only(of, modeShadow),
		untouched: !slices.ContainsFunc(of, func(m ruleMode) bool { return m != modeOff }),
	}
}

// only are the rules that are not in a laxer mode than most.
func (b *rulebook) only(of []ruleMode, most ruleMode) *rules.Set {
	config := *b.Config
	config.Rules = nil
	for i, rule := range b.Config.Rules {
		if of[i] <= most {
			config.Rules = append(config.Rules, rule)
		}
	}
	if len(config.Rules) == len(b.Config.Rules) {
		return b.Set
	}
	set, err := rules.NewSet(&config)
	if err != nil {
		return b.Set // each of them has been compiled before
	}
	return set
}

// firstModes are those a rulebook begins with: what the file says, except where a
// switch is younger than what the file says of that rule.
func firstModes(book, before *rulebook) *modes {
	of := make([]ruleMode, len(book.routes))
	floor := modeEnforce
	if before != nil {
		floor = before.modes.Load().floor
	}
	for i, r := range book.routes {
		of[i] = fileMode(r.rule)
		switch was := before.route(r.rule.Name); {
		case was == nil:
			of[i] = max(of[i], floor)
		case was.rule.Mode == r.rule.Mode: // the file says nothing new
			of[i] = before.mode(was)
		}
	}
	return newModes(book, of, floor)
}

func (b *rulebook) mode(r *route) ruleMode { return b.modes.Load().of[r.rule.Index] }

// find is Set.Match, and how to go on with the request: in modeEnforce as Match says,
// in modeOff untouched. For the sake of rules that do not enforce no request is refused
// and no body is waited for: where they are why Match does not find a rule, the result
// is modeShadow, with what Match says, or modeOff.
func (now *modes) find(r *rules.Request) (m rules.Match, mode ruleMode, refusal *rules.Refusal) {
	if now.untouched {
		return rules.Match{}, modeOff, nil
	}
	m, refusal = now.book.Set.Match(r)
	sure := refusal == nil && !m.NeedsBody
	switch {
	case now.enforced == now.book.Set, sure && m.Rule == nil:
		return m, modeEnforce, refusal
	case sure:
		return m, now.of[m.Rule.Index], nil
	}
	mode, refusal = now.concern(r, &m, refusal)
	return m, mode, refusal
}

// concern is find where the rules disagree, or one of them is off: m and refusal are what
// all of them say together.
func (now *modes) concern(r *rules.Request, m *rules.Match, refusal *rules.Refusal) (ruleMode, *rules.Refusal) {
	concerned := func(m rules.Match, refusal *rules.Refusal) bool {
		return m.Rule != nil || m.NeedsBody || refusal != nil
	}
	if strict, refused := now.enforced.Match(r); concerned(strict, refused) {
		if strict.Rule != nil {
			strict.Rule = now.book.route(strict.Rule.Name).rule
		}
		*m = strict
		return modeEnforce, refused
	}
	if concerned(now.watched.Match(r)) {
		return modeShadow, refusal
	}
	*m = rules.Match{}
	return modeOff, nil
}

// SetMode switches one rule, to the mode that the file gives it where mode is "file".
// Requests under way end as they began. The switch survives reloads until the file says
// something else of that rule than before.
func (g *Gate) SetMode(rule, mode string) error {
	g.switching.Lock()
	defer g.switching.Unlock()
	book := g.book.Load()
	r := book.route(rule)
	if r == nil {
		return fmt.Errorf("no such rule %q", rule)
	}
	m, err := switchTo(r, mode)
	if err != nil {
		return err
	}
	now := book.modes.Load()
	of := slices.Clone(now.of)
	of[r.rule.Index] = m
	book.modes.Store(newModes(book, of, now.floor))
	g.log.Info("mode switched", "rule", rule, "mode", m.String())
	return nil
}

// SetModeAll switches every rule at once. A rule that a reload adds later is not
// stricter than this, until the next such switch.
func (g *Gate) SetModeAll(mode string) error {
	g.switching.Lock()
	defer g.switching.Unlock()
	book := g.book.Load()
	of := make([]ruleMode, len(book.routes))
	for i, r := range book.routes {
		m, err := switchTo(r, mode)
		if err != nil {
			return err
		}
		of[i] = m
	}
	floor := modeEnforce
	if mode != "file" {
		floor, _ = parseMode(mode)
	}
	book.modes.Store(newModes(book, of, floor))
	g.log.Info("mode of every rule switched", "mode", mode)
	return nil
}

func switchTo(r *route, mode string) (ruleMode, error) {
	if mode == "file" {
		return fileMode(r.rule), nil
	}
	return parseMode(mode)
}
