package issue

import (
	"net/http"
	"strings"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// Sharing is what shared caches may do with an answer.
type Sharing uint8

const (
	// Private: none may store it.
	Private Sharing = iota
	// Unclaimed: one may store it (RFC 9111, 3), though nothing says that it may be used
	// without asking the backend. With a private directive more it is Private.
	Unclaimed
	// Shared: one may store it and use it for others.
	Shared
)

// SharingOf reads what an answer, of status 200 to a GET, says to caches. What cannot be
// read with certainty is Shared. Vary does not matter: two browsers without cookies are
// one to a cache that goes by Cookie.
func SharingOf(request, answer []rules.Field) Sharing {
	for _, f := range answer {
		if speaksToCaches(f.Name) {
			return Shared
		}
	}
	said := directives(answer)
	_, private := said["private"]
	_, unstored := said["no-store"]
	_, understood := said["must-understand"] // by which no-store is for other caches (RFC 9111, 5.2.2.3)
	_, public := said["public"]
	_, shares := said["s-maxage"]
	_, revalidates := said["must-revalidate"]
	_, stale := said["stale-while-revalidate"]
	_, fallback := said["stale-if-error"]
	switch {
	case private && said["private"] == "", unstored && !understood:
		return Private
	case public, understood, stale, fallback, !zero(said, "s-maxage"):
		return Shared
	case has(request, "Authorization") && !shares && !revalidates: // RFC 9111, 3.5
		return Private
	case !shares && !zero(said, "max-age"):
		return Shared
	}
	if _, aged := said["max-age"]; !aged && !shares && expiresLater(answer) {
		return Shared
	}
	return Unclaimed
}

// SharingOfPost is SharingOf for answers to unsafe methods, which no cache stores unless
// they say how long they are fresh (RFC 9110, 9.3.3).
func SharingOfPost(request, answer []rules.Field) Sharing {
	if s := SharingOf(request, answer); s != Unclaimed {
		return s
	}
	return Private
}

// MakePrivate adds the directive to an Unclaimed answer, in place of a private that is
// for single fields only.
func MakePrivate(answer []rules.Field) []rules.Field {
	for i, f := range answer {
		if strings.EqualFold(f.Name, "Cache-Control") && f.Value != "" {
			made := append([]rules.Field(nil), answer...)
			made[i].Value += ", private"
			return made
		}
	}
	return append(answer[:len(answer):len(answer)], rules.Field{Name: "Cache-Control", Value: "private"})
}

// speaksToCaches reports the names of fields that go before Cache-Control: those of RFC
// 9213 for some caches, and what caches had before it.
func speaksToCaches(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "-cache-control") || name == "surrogate-control" || name == "x-accel-expires"
}

// directives are those of Cache-Control (RFC 9111, 5.2) by name in lower case, with the
// value of the last of a name.
func directives(fields []rules.Field) map[string]string {
	said := map[string]string{}
	for _, f := range fields {
		if !strings.EqualFold(f.Name, "Cache-Control") {
			continue
		}
		rest := f.Value
		for rest != "" {
			var directive string
			directive, rest = nextDirective(rest)
			name, value, _ := strings.Cut(directive, "=")
			if name = strings.ToLower(strings.Trim(name, " \t")); name == "" {
				continue
			}
			value = strings.Trim(strings.Trim(value, " \t"), `"`)
			if before, repeated := said[name]; repeated && before != value {
				value = before + " or " + value // which is no number
			}
			said[name] = value
		}
	}
	return said
}

// nextDirective cuts at the next comma that is in no quotes.
func nextDirective(list string) (directive, rest string) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch {
		case quoted && list[i] == '\\':
			i++
		case list[i] == '"':
			quoted = !quoted
		case list[i] == ',' && !quoted:
			return list[:i], list[i+1:]
		}
	}
	return list, ""
}

// zero reports that a directive is not there, or gives no time at all.
func zero(said map[string]string, name string) bool {
	value, found := said[name]
	return !found || value != "" && strings.Trim(value, "0") == ""
}

// expiresLater reports that Expires gives a time after Date; what is no time is in the
// past (RFC 9111, 5.3).
func expiresLater(answer []rules.Field) bool {
	now := time.Now()
	for _, f := range answer {
		if strings.EqualFold(f.Name, "Date") {
			if at, err := http.ParseTime(f.Value); err == nil && at.Before(now) {
				now = at
			}
		}
	}
	for _, f := range answer {
		if strings.EqualFold(f.Name, "Expires") {
			if at, err := http.ParseTime(f.Value); err == nil && at.After(now) {
				return true
			}
		}
	}
	return false
}

func has(fields []rules.Field, name string) bool {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return true
		}
	}
	return false
}
