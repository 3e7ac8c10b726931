package rules

import "strings"

func (w *warner) outcomes(p place, r *RuleConfig) {
	var taken statusSet // statuses that lines above take whatever else the answer holds
	redirects := false
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		at := p.item(i)
		statuses := newStatusSet(o.When.Status)
		above, covered := coveredBy(r.Outcomes[:i], &o.When)
		switch {
		case covered:
			at.warnf("this line can never be reached: line %d of outcomes takes all of it", above+1)
		case statuses.within(&taken):
			at.warnf("this line can never be reached: lines above take every status of it")
		}
		if o.When.statusOnly() {
			taken.add(&statuses)
			redirects = redirects || statuses.meets(300, 399)
		}
	}
	if r.Action == "book" && !redirects {
		p.warnf("no line names 3xx answers by status alone: such an answer counts as unknown and keeps its units for hold_ttl; if a redirect means a result here, say which, for example { when: { status: 3xx }, is: refused }")
	}
}

// coveredBy finds the line above that takes every answer that when describes.
func coveredBy(above []OutcomeConfig, when *WhenConfig) (int, bool) {
	for i := range above {
		if above[i].When.covers(when) {
			return i, true
		}
	}
	return 0, false
}

func (w *WhenConfig) statusOnly() bool {
	return len(w.Header) == 0 && len(w.JSON) == 0 && w.Text == ""
}

// covers reports whether every answer that fits other fits w.
func (w *WhenConfig) covers(other *WhenConfig) bool {
	mine, theirs := newStatusSet(w.Status), newStatusSet(other.Status)
	if !theirs.within(&mine) || !headersCover(w.Header, other.Header) || !strings.Contains(other.Text, w.Text) {
		return false
	}
	for pointer, value := range w.JSON {
		if theirs, ok := other.JSON[pointer]; !ok || theirs != value {
			return false
		}
	}
	return true
}

// statusSet has a mark for each status from 100 to 599.
type statusSet [600]bool

// newStatusSet is every status when no range is given.
func newStatusSet(ranges []StatusRange) (s statusSet) {
	if len(ranges) == 0 {
		ranges = []StatusRange{{100, 599}}
	}
	for _, r := range ranges {
		for status := r.First; status <= r.Last; status++ {
			s[status] = true
		}
	}
	return s
}

func (s *statusSet) add(other *statusSet) {
	for status := range s {
		s[status] = s[status] || other[status]
	}
}

func (s *statusSet) within(other *statusSet) bool {
	for status := range s {
		if s[status] && !other[status] {
			return false
		}
	}
	return true
}

func (s *statusSet) meets(first, last int) bool {
	for status := first; status <= last; status++ {
		if s[status] {
			return true
		}
	}
	return false
}
