package rules

import "strings"

// What logs may show of requests depends on what rules read where: a key, a subject or
// a credential may stand in the path and in any header field. Slots and units are what
// a request is about, and may be seen. It is the same for every request of a
// configuration, whether its rule is in effect or switched off, or another method, mode
// or fault kept the rule from being found.

// discretion is made once for a set.
type discretion struct {
	paths  []*Rule  // that read from the path what no log may show
	fields []string // header fields that some rule reads it from
}

func (s *Set) prepareDiscretion() {
	for _, r := range s.Rules {
		inPath := false
		for _, list := range [...][]source{r.subject, r.key, r.partition, r.scope, r.printed} {
			for i := range list {
				switch list[i].Source {
				case FromPath:
					inPath = true
				case FromHeader:
					s.discretion.fields = append(s.discretion.fields, list[i].Name)
				}
			}
		}
		if inPath {
			s.discretion.paths = append(s.discretion.paths, r)
		}
	}
}

// LoggedPath is what a log shows of a path: the path without its parameters
// (;jsessionid=…), for they carry sessions as queries do. For one that could be that of
// a rule which reads a key, a subject or a credential from it, it is the rule's template.
func (s *Set) LoggedPath(path string) string {
	for _, r := range s.discretion.paths {
		if r.mayMean(path) {
			return r.Match.Path
		}
	}
	if strings.IndexByte(path, ';') < 0 {
		return path
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

// Logs reports whether a log may show a header field.
func (s *Set) Logs(field string) bool {
	for _, name := range s.discretion.fields {
		if sameHeader(name, field) {
			return false
		}
	}
	return true
}

// mayMean reports whether any backend could take a path for one of the rule's.
func (r *Rule) mayMean(path string) bool {
	d := r.set.dialect
	ways := suspectPaths(path, d)
	if paths, err := readPath(path, d, nil); err == nil {
		ways = append(ways, paths)
	}
	for _, paths := range ways {
		for i := range paths.count() {
			p, ok := paths.at(i)
			if !ok {
				continue
			}
			for j := range r.routes {
				if r.routes[j].mayFit(&p, d) {
					return true
				}
			}
		}
	}
	return false
}
