package rules

import "testing"

// route is what a gate does: Match from the head, and again with the body if asked.
func route(s *Set, r *Request) (text string, needsBody bool) {
	head := *r
	head.Body = nil
	m, refusal := s.Match(&head)
	if m.NeedsBody {
		m, refusal = s.Match(r)
		needsBody = true
	}
	return matchText(m, refusal), needsBody
}

func TestMatchBodyMethod(t *testing.T) {
	const multipart = "Content-Type: multipart/form-data; boundary=b"
	put := multipartBody("b", methodField, "", "", "put")
	list := func() []*RuleConfig {
		all := testRule("all", "", "/all")
		all.Match.Methods = nil
		return []*RuleConfig{testRule("post", "POST", "/b/{x}"), testRule("put", "PUT", "/b/{x}"), testRule("delete", "DELETE", "/d/{x}"), all}
	}
	post, del, fromPut := "post POST /b/1 x=1", "delete DELETE /d/1 x=1", "put PUT /b/1 x=1"
	for _, c := range []struct {
		line, body string
		header     []string
		asks       bool // the head alone does not decide, under any
		want       map[string]string
	}{
		{"POST /d/1", "a=1&_method=delete", []string{formType}, true, map[string]string{"": del, "aspnet": "-"}},
		{"POST /d/1", "a=1", []string{formType}, true, map[string]string{"": "-"}},
		{"POST /d/1", "_method=put", []string{formType}, true, map[string]string{"": "-"}},
		{"POST /d/1", "_method=", []string{formType}, true, map[string]string{"": "-"}},
		{"POST /d/1", "", []string{formType}, true, map[string]string{"": "-"}},
		{"POST /d/1", "_method=DELETE", nil, true, map[string]string{"": del, "aspnet": "-"}},
		{"POST /d/1", "_method=DELETE", []string{"Content-Type: text/plain"}, false, map[string]string{"": "-"}},
		{"PUT /d/1", "_method=DELETE", []string{formType}, false, map[string]string{"": "-"}},
		{"POST /other", "_method=DELETE", []string{formType}, false, map[string]string{"": "-"}},
		{"POST /d/1", multipartBody("b", methodField, "", "", "DELETE"), []string{multipart}, true, map[string]string{"": del, "aspnet": "-"}},
		{"POST /d/1", multipartBody("b", "a", "x.png", "", "\x89PNG"), []string{multipart}, true, map[string]string{"": "-"}},
		{"POST /d/1", gzipped("_method=DELETE"), []string{formType, "Content-Encoding: gzip"}, true, map[string]string{"": del, "aspnet": "-"}},
		{"POST /d/1", "a=%C3%FB&_method=DELETE", []string{formType + "; charset=gbk"}, true, map[string]string{"": del, "aspnet": "-"}},
		// Of two rules.
		{"POST /b/1", "_method=put", []string{formType}, true, map[string]string{"": fromPut, "any": "ambiguous", "aspnet": post}},
		{"POST /b/1", put, []string{multipart}, true, map[string]string{"": fromPut, "any": "ambiguous", "express": "ambiguous", "aspnet": post}},
		{"POST /b/1", "_method=put", nil, true, map[string]string{"": "ambiguous", "aspnet": post}},
		{"POST /b/1", gzipped("_method=put"), []string{formType, "Content-Encoding: gzip"}, true, map[string]string{"": "ambiguous", "aspnet": post}},
		{"POST /b/1?_method=", "_method=put", []string{formType}, true, map[string]string{"": "ambiguous", "rack": fromPut, "aspnet": post}},
		{"POST /b/1", "_method=DELETE", []string{formType}, true, map[string]string{"": post, "php": "-", "rack": "-"}},
		{"POST /b/1", "_method=LINK", []string{formType}, true, map[string]string{"": post}},
		{"POST /b/1", "a=1", []string{formType}, true, map[string]string{"": post}},
		{"POST /b/1", "_method=put", []string{formType, "X-HTTP-Method-Override: DELETE"}, true, map[string]string{"": fromPut, "any": "ambiguous", "aspnet": post}},
		// WordPress and Slim follow the head's on every method.
		{"GET /b/1?_method=POST", "", nil, false, map[string]string{"": "-", "any": post, "php": post}},
		{"GET /d/1", "", []string{"X-HTTP-Method-Override: delete"}, false, map[string]string{"": "-", "any": del, "php": del}},
		{"PUT /b/1", "", []string{"X-HTTP-Method-Override: POST"}, false, map[string]string{"": fromPut, "any": "ambiguous", "php": "ambiguous"}},
		{"PUT /b/1?_method=GET", "", nil, false, map[string]string{"": fromPut}},
		{"POST /all", "_method=put", []string{formType}, false, map[string]string{"": "all POST /all"}},
		// No token, several, or a name that some take for it.
		{"POST /d/1", "_method=a+b", []string{formType}, true, map[string]string{"": "ambiguous", "aspnet": "-"}},
		{"POST /d/1", "_method=PUT&_method=DELETE", []string{formType}, true, map[string]string{"": "ambiguous", "aspnet": "-"}},
		{"POST /d/1", "+.method=DELETE", []string{formType}, true, map[string]string{"": "ambiguous", "aspnet": "-"}},
		{"POST /d/1", "_method[]=DELETE", []string{formType}, true, map[string]string{"": "ambiguous", "aspnet": "-"}},
		{"POST /d/1", "a=1;_method=DELETE", []string{formType}, true, map[string]string{"": "ambiguous", "aspnet": "-"}},
		// In JSON it is an override to Laravel, and to Express if the application says so.
		{"POST /d/1", `{"a":1,"_method":"DELETE"}`, []string{jsonType}, true, map[string]string{"": "-", "any": del, "php": del, "express": del}},
		{"POST /d/1", `{"a":1,"\u005fmethod":"delete"}`, []string{"Content-Type: application/vnd.api+json; charset=utf-8"}, true, map[string]string{"": "-", "any": del, "php": del, "express": del}},
		{"POST /d/1", gzipped(`{"_method":"DELETE"}`), []string{jsonType, "Content-Encoding: gzip"}, true, map[string]string{"": "-", "any": del, "php": del, "express": del}},
		{"POST /b/1", `{"_method":"put"}`, []string{jsonType}, true, map[string]string{"": post, "any": "ambiguous", "php": "ambiguous", "express": "ambiguous"}},
		{"POST /b/1", `{"_method":"DELETE"}`, []string{jsonType}, true, map[string]string{"": post}},
		{"POST /b/1", `{"_method":"POST"}`, []string{jsonType}, true, map[string]string{"": post}},
		{"POST /b/1", `{"x":{"_method":"PUT"}}`, []string{jsonType}, true, map[string]string{"": post}},
		{"POST /b/1", `{"_method":null}`, []string{jsonType}, true, map[string]string{"": post}},
		{"POST /b/1", `{"_method":["PUT"]}`, []string{jsonType}, true, map[string]string{"": post}},
		{"POST /b/1", `[{"_method":"PUT"}]`, []string{jsonType}, true, map[string]string{"": post}},
		{"POST /b/1", `{"_method":7}`, []string{jsonType}, true, map[string]string{"": post}},
		{"POST /b/1", `{"_method":""}`, []string{jsonType}, true, map[string]string{"": post}},
		{"POST /b/1", ``, []string{jsonType}, true, map[string]string{"": post}},
		{"PUT /d/1", `{"_method":"DELETE"}`, []string{jsonType}, false, map[string]string{"": "-"}},
		{"POST /other", `{"_method":"DELETE"}`, []string{jsonType}, false, map[string]string{"": "-"}},
		{"POST /d/1", `{"_method":"P T"}`, []string{jsonType}, true, map[string]string{"": "-", "any": "ambiguous", "php": "ambiguous", "express": "ambiguous"}},
		{"POST /d/1", `{"_method":"PUT","_method":"DELETE"}`, []string{jsonType}, true, map[string]string{"": "-", "any": "ambiguous", "php": "ambiguous", "express": "ambiguous"}},
		{"POST /d/1", "\ufeff" + `{"_method":"DELETE"}`, []string{jsonType}, true, map[string]string{"": "-", "any": "ambiguous", "php": "ambiguous", "express": "ambiguous"}},
		{"POST /d/1", `{"_method":"DELETE"}`, []string{"Content-Type: application/jsonrequest"}, true, map[string]string{"": "-", "any": "ambiguous", "php": "ambiguous", "express": "ambiguous"}},
		{"POST /d/1", `{"_method":"DELETE"}`, []string{jsonType, "Content-Encoding: br"}, true, map[string]string{"": "-", "any": "unsupported", "php": "unsupported", "express": "unsupported"}},
		// A form that cannot be read may be anything.
		{"POST /d/1", "--b\nContent-Disposition: form-data; name=_method\n\nDELETE\n--b--", []string{multipart}, true, map[string]string{"": "ambiguous", "aspnet": "-"}},
		{"POST /d/1", "_method=DELETE", []string{formType, "Content-Encoding: br"}, true, map[string]string{"": "unsupported", "aspnet": "-"}},
		{"POST /d/1", "_method=DELETE", []string{formType, "Content-Type: text/plain"}, true, map[string]string{"": "ambiguous", "aspnet": "-"}},
		{"POST /x%2F1", "", []string{formType}, false, map[string]string{"": "-"}},
		{"POST /d/1%2F2", "", []string{formType}, false, map[string]string{"": "ambiguous", "aspnet": "-"}},
	} {
		for name := range dialects {
			want, ok := c.want[name]
			if !ok {
				want = c.want[""]
			}
			got, asked := route(setFor(t, name, list()...), testRequest(c.line, c.body, c.header...))
			if got != want || name == "any" && asked != c.asks {
				t.Errorf("%s: %s %v %q: %s, needs the body %v; want %s", name, c.line, c.header, c.body, got, asked, want)
			}
		}
	}
}

// A request without a form or JSON, or to a path where the method changes nothing, is never
// held up.
func TestMatchLeavesBodiesAlone(t *testing.T) {
	s := testSet(t, testRule("post", "POST", "/b/{x}"))
	for _, line := range []string{"POST /b/1", "POST /upload", "PUT /b/1", "GET /b/1"} {
		for _, label := range []string{formType, jsonType} {
			r := testRequest(line, "", label)
			r.Body = nil
			if m, refusal := s.Match(r); m.NeedsBody || refusal != nil {
				t.Errorf("%s: %+v, %v", line, m, refusal)
			}
		}
	}
}
