package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCurlLinesBecomeTheRequestsThatCurlSends(t *testing.T) {
	for line, want := range map[string]string{
		`curl http://a/b?c=d#e`:                         "GET /b?c=d HTTP/1.1\nHost: a\nUser-Agent: curl\nAccept: */*\n\n",
		`curl -XPUT http://u:p@a:81 -H "Accept:" -A me`: "PUT / HTTP/1.1\nHost: a:81\nUser-Agent: me\n\n",
		`curl a -d x=1 -d y=2 -H 'Host: b'`:             "POST / HTTP/1.1\nUser-Agent: curl\nAccept: */*\nContent-Type: application/x-www-form-urlencoded\nContent-Length: 7\nHost: b\n\nx=1&y=2",
		`curl -G a?q -d x=1 --data-urlencode 'y=a b&'`:  "GET /?q&x=1&y=a+b%26 HTTP/1.1\nHost: a\nUser-Agent: curl\nAccept: */*\n\n",
		`curl -sI a`:                        "HEAD / HTTP/1.1\nHost: a\nUser-Agent: curl\nAccept: */*\n\n",
		`curl a --json '{"a"' --json ':1}'`: "POST / HTTP/1.1\nHost: a\nUser-Agent: curl\nAccept: application/json\nContent-Type: application/json\nContent-Length: 7\n\n{\"a\":1}",
		`curl a -u u:p -b c=1 -H 'X;' -o f`: "GET / HTTP/1.1\nHost: a\nUser-Agent: curl\nAccept: */*\nAuthorization: Basic dTpw\nCookie: c=1\nX:\n\n",
		"curl a \\\n --data-raw '@x'":       "POST / HTTP/1.1\nHost: a\nUser-Agent: curl\nAccept: */*\nContent-Type: application/x-www-form-urlencoded\nContent-Length: 2\n\n@x",
	} {
		words, err := shellWords(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var c curlRequest
		if err := c.parse(words[1:]); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		raw, err := c.bytes()
		if got := strings.ReplaceAll(string(raw), "\r\n", "\n"); err != nil || got != want {
			t.Errorf("%s: %v\n%q, want\n%q", line, err, got, want)
		}
	}
	for line, want := range map[string]string{
		`curl`:            "no URL",
		`curl a b`:        "two URLs",
		`curl a -H`:       "has no value",
		`curl a --nope`:   "not understood",
		`curl a -b jar`:   "cookie file",
		`curl a -d @none`: "none",
		`curl ftp://a`:    "neither http nor https",
		`curl a -F x`:     "name=content",
		`curl a -H Host`:  "'Name: value'",
		`curl a -d @-`:    "write the body in the line",
	} {
		words, _ := shellWords(line)
		var c curlRequest
		err := c.parse(words[1:])
		if err == nil {
			_, err = c.bytes()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestShellWords(t *testing.T) {
	got, err := shellWords("a 'b c' \"d \\\"e\\n\" $'f\\'\\n\\x41\\u00e9' g\\ h '' \\\n i")
	want := []string{"a", "b c", `d "e\n`, "f'\nAé", "g h", "", "i"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	for _, open := range []string{"'a", `"a`, "$'a"} {
		if _, err := shellWords(open); err == nil {
			t.Errorf("%s: no error", open)
		}
	}
}
