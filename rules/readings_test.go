package rules

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"mime"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// This file holds small models of how five kinds of backends read a request to the
// routes of referenceSet. They are deliberately not made of the package's own parts:
// the oracle in oracle_test.go compares the two. What they do was measured on PHP
// 8.2, Rack 2.2 and Express 4 and 5; Spring and ASP.NET follow their documentation.

// backend is one kind of backend.
type backend struct {
	name       string
	path       func(string) string
	pathFold   bool
	decodeSlot bool // path variables are decoded, after routing
	pairs      func(string) fields
	parts      func(string, string) fields
	override   func(*Request, fields, fields) string
	json       jsonReader
	formFirst  bool // a form field is taken before a query parameter
	user       func([]Field) string
	book       string // the pattern of the paths that run the script /book.php
	format     string // the pattern of a suffix that is dropped
	inflates   bool   // bodies in gzip are read
	hosts      bool   // a path with two slashes before it is a URL
	rewritten  bool   // the path is taken from X-Original-URL
}

func headerOf(list []Field, name string) (values []string) {
	for _, f := range list {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return values
}

func firstHeader(list []Field, names ...string) string {
	for _, name := range names {
		if v := headerOf(list, name); len(v) > 0 && v[0] != "" {
			return v[0]
		}
	}
	return ""
}

// removeDots resolves dot segments with empty segments counting.
func removeDots(path string) string {
	out := []string{}
	for _, s := range strings.Split(path, "/") {
		switch s {
		case ".":
		case "..":
			out = out[:max(len(out)-1, min(len(out), 1))]
		default:
			out = append(out, s)
		}
	}
	if path = strings.Join(out, "/"); path == "" {
		return "/"
	}
	return path
}

var slashes = regexp.MustCompile(`/+`)

func squeeze(path string) string { return slashes.ReplaceAllString(path, "/") }

func eachSegment(path string, change func(string) string) string {
	list := strings.Split(path, "/")
	for i := range list {
		list[i] = change(list[i])
	}
	return strings.Join(list, "/")
}

// joinedUser: equal lines say one thing to whoever reads them at all (contract 2.1).
func joinedUser(list []Field) string {
	return strings.Join(slices.Compact(headerOf(list, "X-User-Id")), ", ")
}

var mark = regexp.MustCompile(`[^a-z0-9]`)

// phpUser: the last spelling wins, lines of one spelling are joined; behind lighttpd
// all marks are one.
func phpUser(list []Field) (user string) {
	previous := ""
	for _, f := range list {
		name := strings.ToLower(f.Name)
		if mark.ReplaceAllString(name, "_") != "x_user_id" {
			continue
		}
		if name == previous && user != f.Value {
			user += ", " + f.Value
		} else {
			user = f.Value
		}
		previous = name
	}
	return user
}

const scriptAlone = `/book\.php`

var backends = withVariants([]backend{
	{
		name: "php", formFirst: true, book: `/book(?:\.php)?(?:/.*)?`, user: phpUser, pairs: pairsWith("&", phpField), parts: laxParts(`"'`, phpField),
		path: func(p string) string {
			p = squeeze(removeDots(decodeLax(p, false)))
			return compiled(`^/index(?:\.php)?/`).ReplaceAllString(p, "/")
		},
		override: func(r *Request, query, form fields) string {
			return firstText(firstHeader(r.Header, "X-HTTP-Method-Override"), form["_method"], query["_method"])
		},
	},
	{
		name: "rack", book: scriptAlone, formFirst: true, format: `\.[^./?]+`, user: joinedUser, pairs: pairsWith("&;", rackField), parts: laxParts(`"`, rackField),
		path: func(p string) string {
			return eachSegment(squeeze(p), func(s string) string { return decodeLax(s, false) })
		},
		override: func(r *Request, _, form fields) string {
			return firstText(form["_method"], firstHeader(r.Header, "X-HTTP-Method-Override"))
		},
		json: jsonReader{comments: true},
	},
	{
		name: "express", book: scriptAlone, inflates: true, formFirst: true, pathFold: true, decodeSlot: true, user: joinedUser, pairs: arrayPairs, parts: noParts,
		path: func(p string) string { return p },
		override: func(r *Request, query, form fields) string {
			return firstText(firstHeader(r.Header, "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"), query["_method"], form["_method"])
		},
		json: jsonReader{needsLabel: true, bom: true, wide: labelledWide},
	},
	{
		name: "spring", book: scriptAlone, format: `\.[^./]*`, user: joinedUser, pairs: pairsWith("&", firstField), parts: laxParts(`"`, firstField),
		path: func(p string) string {
			return removeDots(squeeze(eachSegment(p, func(s string) string {
				s, _, _ = strings.Cut(s, ";")
				return decodeLax(s, false)
			})))
		},
		override: func(_ *Request, query, form fields) string {
			m := strings.ToUpper(firstText(query["_method"], form["_method"]))
			if m == "PUT" || m == "DELETE" || m == "PATCH" {
				return m
			}
			return ""
		},
		json: jsonReader{needsLabel: true, bom: true, wide: looksWide},
	},
	{
		name: "aspnet", book: scriptAlone, pathFold: true, user: joinedUser, pairs: foldNames(pairsWith("&", firstField)),
		parts: func(label, body string) fields {
			return foldNames(func(body string) fields { return laxParts(`"`, firstField)(label, body) })(body)
		},
		path: func(p string) string {
			p = compiled(`/\((?:[A-Z]\([^()/]*\))+\)`).ReplaceAllString(p, "")
			return removeDots(strings.ReplaceAll(eachSegment(p, func(s string) string { return decodeLax(s, false) }), `\`, "/"))
		},
		override: func(r *Request, _, _ fields) string {
			return firstHeader(r.Header, "X-HTTP-Method-Override")
		},
		json: jsonReader{needsLabel: true, bom: true, folds: true},
	},
})

// withVariants adds what applications make of the same kinds: Laravel, which reads
// _method in JSON, an Express application with a function that does, those that parse
// the target as a URL, old Symfony, and those without the module that overrides methods.
func withVariants(list []backend) []backend {
	for _, b := range list {
		override := b.override
		switch b.name {
		case "php", "express":
			b.override = func(r *Request, query, form fields) string {
				label := strings.ToLower(firstHeader(r.Header, "Content-Type"))
				if member, _ := decodeMember(r.Body, "_method"); strings.Contains(label, "json") && override(r, nil, nil) == "" {
					if method, ok := member.(string); ok && method != "" {
						return method
					}
				}
				return override(r, query, form)
			}
			list = append(list, b)
		}
		if b.name == "php" || b.name == "express" {
			b.hosts, b.rewritten = true, b.name == "php"
			list = append(list, b)
		}
		switch b.name {
		case "express", "spring", "aspnet":
			b.override = func(*Request, fields, fields) string { return "" }
			list = append(list, b)
		}
	}
	return list
}

// gunzip reads all members, and what there is of a broken one.
func gunzip(body []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(z, 1<<20))
	return text
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

var patterns sync.Map // of *regexp.Regexp by text

func compiled(pattern string) *regexp.Regexp {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(pattern)
	patterns.Store(pattern, re)
	return re
}

var word = regexp.MustCompile(`^[A-Za-z]+$`)

// handled is what a backend does with a request.
type handled struct {
	rule       string // "": no handler of a rule
	slot, user string
}

// handle routes a request as the backend does.
func (b *backend) handle(r *Request) (h handled) {
	label := firstHeader(r.Header, "Content-Type")
	media := strings.ToLower(label)
	if m, _, err := mime.ParseMediaType(label); err == nil {
		media = m
	}
	if b.inflates && strings.EqualFold(firstHeader(r.Header, "Content-Encoding"), "gzip") {
		inflated := *r
		inflated.Body = gunzip(r.Body)
		r = &inflated
	}
	query, form := b.pairs(r.Query), fields{}
	switch {
	case strings.Contains(media, "multipart/form-data"):
		form = b.parts(label, string(r.Body))
	case strings.Contains(media, "x-www-form-urlencoded"), b.name == "rack" && label == "":
		form = b.pairs(string(r.Body))
	}
	method := r.Method
	if o := b.override(r, query, form); method == "POST" && word.MatchString(o) {
		method = strings.ToUpper(o)
	}
	path := r.Path
	if told := firstHeader(r.Header, "X-Original-URL", "X-Rewrite-URL"); b.rewritten && told != "" {
		path = told
	}
	if b.hosts {
		path = compiled(`^//[^/]+/`).ReplaceAllString(path, "/")
	}
	path = b.path(path)
	if path = strings.TrimRight(path, "/"); path == "" {
		path = "/"
	}
	route := func(pattern string) []string {
		flags := "(?s)"
		if b.pathFold {
			flags = "(?si)"
		}
		if b.format != "" {
			pattern += "(?:" + b.format + ")?"
		}
		return compiled(flags + "^" + pattern + "$").FindStringSubmatch(path)
	}
	value := func(m []string) string {
		if b.decodeSlot {
			if text, err := url.PathUnescape(m[1]); err == nil {
				return text
			}
		}
		return m[1]
	}
	both := maps.Clone(query)
	maps.Copy(both, form)
	if !b.formFirst {
		both = maps.Clone(form)
		maps.Copy(both, query)
	}
	h.user = b.user(r.Header)
	if m := route(`/api/slots/([^/]+)/reservations`); m != nil && method == "POST" {
		h.rule, h.slot = "R1", value(m)
	} else if route(`/api/bookings`) != nil && method == "POST" {
		h.rule = "R2"
		if slot, ok := b.json.slot(r.Body, label); ok && slot != nil {
			h.slot = jsonText(slot)
		} else {
			h.slot = form["slot_id"]
		}
	} else if route(b.book) != nil && method == "POST" {
		h.rule, h.slot = "R3", both["slot_id"]
	} else if route(`/reserve`) != nil && (method == "GET" || method == "POST") {
		h.rule, h.slot = "R4", both["slot_id"]
	} else if m := route(`/api/bookings/([^/]+?)`); m != nil && (method == "PUT" || method == "DELETE") {
		if h.rule = "R5"; method == "DELETE" {
			h.rule = "R6"
		}
		h.slot = value(m)
	}
	return h
}
