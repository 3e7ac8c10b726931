package rules

import (
	"strings"
	"testing"
)

func testEnv(name string) (string, bool) {
	value, ok := map[string]string{
		"URL": "http://10.0.0.1:81", "SEVEN": "7", "EMPTY": "", "PASSWORD": "0123", "NULL": "null",
		"MODE": "off", "YAML": "x\npools: {}", "LIST": "[a, b]", "YES": "yes", "OCTAL": "010",
	}[name]
	return value, ok
}

func TestLoadExpandsVariables(t *testing.T) {
	src := strings.Join([]string{
		`upstream: { url: "${URL}", timeout: "${SECONDS:-3}s" }`,
		`store: { password: "${PASSWORD}", username: "a$${b}", secret: '$HOME $1 ${NULL}sixteen characters' }`,
		`admin: { token: "${EMPTY}" }`,
		`pools: { lessons: { capacity: "${SEVEN}", max_inflight: "${ROOM:-4}", hold_ttl: 30s } }`,
		`rules:`,
		`- name: ${EMPTY:-book}`,
		`  match: { path: /a, headers: { X-A: "${LIST}" } }`,
		`  pool: lessons # ${NOT_SET}`,
		`  slot: const:${SEVEN}`,
		`  mode: ${MODE}`,
		`  outcomes: [{ when: { json: { /a: "${SEVEN}" } }, is: refused }]`,
	}, "\n")
	cfg := load(t, src, LoadOptions{Env: testEnv})
	r := cfg.Rules[0]
	for _, row := range []struct{ got, want any }{
		{cfg.Upstream.URL, "http://10.0.0.1:81"},
		{cfg.Upstream.Timeout.String(), "3s"},
		{cfg.Store.Password, "0123"},
		{cfg.Store.Username, "a${b}"},
		{cfg.Store.Secret, "$HOME $1 nullsixteen characters"},
		{cfg.Admin.Token, ""},
		{cfg.Pools["lessons"].Capacity, Capacity{Kind: CapacityNumber, Units: 7}},
		{cfg.Pools["lessons"].MaxInflight, 4},
		{r.Name, "book"},
		{r.Match.Headers["X-A"], "[a, b]"},
		{r.Slot[0].Name, "7"},
		{r.Mode, "off"},
		{r.Outcomes[0].When.JSON["/a"], Scalar{ScalarString, "7"}}, // quoted, so text
	} {
		if row.got != row.want {
			t.Errorf("got %v, want %v", row.got, row.want)
		}
	}
}

func TestLoadRefusesVariables(t *testing.T) {
	for _, row := range []struct{ name, src, want string }{
		{"not set", edit(t, "upstream:", "url: «${NOPE}"), "the environment variable NOPE is not set"},
		{"not set, inside text", edit(t, "upstream:", "url: «http://${URL}${NOPE}"), "NOPE is not set"},
		{"not closed", edit(t, "upstream:", `url: «"${URL"`), "a ${ that is no variable"},
		{"no name", edit(t, "upstream:", `url: «"${}"`), "a ${ that is no variable"},
		{"another shell form", edit(t, "upstream:", `url: «"${URL-x}"`), "a ${ that is no variable"},
		{"a variable as default", edit(t, "upstream:", `url: «"${NOPE:-${URL}}"`), "a ${ that is no variable"},
		{"in a key", edit(t, "pools:", "lessons: { capacity: 6 }\n«${SEVEN}: { capacity: 6 }"), "variables are expanded in values only"},
		{"holds YAML", edit(t, "upstream:", "url: «${YAML}"), "is not a URL"},
		{"holds a list", edit(t, "name:", "retry: { on: «\"${LIST}\" }"), "takes a list, not a single value"},
		{"holds text for a number", edit(t, "lessons:", "max_inflight: «${MODE}"), `"off" is not a whole number`},
		{"holds an octal number", edit(t, "lessons:", "max_inflight: «${OCTAL}"), "010 is a number that YAML versions read differently: write 10"},
		{"holds no boolean", edit(t, "lessons:", "keep_unknown: «${YES}"), "yes is not a boolean here: write true"},
		{"holds nothing for a number", edit(t, "lessons:", "max_inflight: «${EMPTY}"), `"" is not a whole number`},
		{"unit is missing", edit(t, "lessons:", "hold_ttl: «${SEVEN}"), "7 has no unit"},
	} {
		t.Run(row.name, func(t *testing.T) { expectFault(t, row.src, row.want, LoadOptions{Env: testEnv}) })
	}
}

func TestLoadWithoutEnvironment(t *testing.T) {
	expectFault(t, edit(t, "upstream:", "url: «${URL}"), "URL is not set", LoadOptions{})
}
