package accesslog

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
)

func entry() Entry {
	return Entry{
		Began:  time.Date(2026, 11, 30, 9, 5, 7, 123456789, time.FixedZone("", 8*3600)),
		Took:   1500 * time.Microsecond,
		Client: netip.MustParseAddr("192.0.2.7"),
		Method: "POST", Path: "/lessons/7/bookings", Protocol: "HTTP/1.1",
		Status: 201, Bytes: 42, Referer: "https://www.example.com/lessons", UserAgent: "Mozilla/5.0 (X11)",
		RequestID: "r-1", Rule: "book", Decision: "admitted", Mode: "normal", Outcome: "booked",
	}
}

func TestFormats(t *testing.T) {
	refused := Entry{Began: entry().Began, Client: netip.MustParseAddr("2001:db8::1"), Status: 400, Bytes: 9, Refusal: "framing"}
	local := Entry{Began: entry().Began, Method: "GET", Path: "/", Protocol: "HTTP/1.0", Status: 200}
	full := entry()
	for _, row := range []struct {
		entry  *Entry
		format Format
		want   string
	}{
		{&full, Combined, `192.0.2.7 - - [30/Nov/2026:09:05:07 +0800] "POST /lessons/7/bookings HTTP/1.1" 201 42 "https://www.example.com/lessons" "Mozilla/5.0 (X11)"`},
		{&refused, Combined, `2001:db8::1 - - [30/Nov/2026:09:05:07 +0800] "-" 400 9 "-" "-"`},
		{&local, Combined, `- - - [30/Nov/2026:09:05:07 +0800] "GET / HTTP/1.0" 200 0 "-" "-"`},
		{&full, JSON, `{"time":"2026-11-30T01:05:07.123Z","client":"192.0.2.7","method":"POST","path":"/lessons/7/bookings","protocol":"HTTP/1.1","status":201,"bytes":42,"seconds":0.001500,"rule":"book","decision":"admitted","mode":"normal","outcome":"booked","request_id":"r-1","referer":"https://www.example.com/lessons","user_agent":"Mozilla/5.0 (X11)"}`},
		{&refused, JSON, `{"time":"2026-11-30T01:05:07.123Z","client":"2001:db8::1","status":400,"bytes":9,"seconds":0.000000,"refusal":"framing"}`},
	} {
		if got := string(row.entry.appendTo(nil, row.format)); got != row.want+"\n" {
			t.Errorf("got  %swant %s", got, row.want)
		}
	}
}

// hostile are texts that would forge lines, end a quoted text, or command a terminal.
var hostile = []string{
	"/a\n127.0.0.1 - - [x] \"GET /forged HTTP/1.1\" 200 0 \"-\" \"-\"",
	"/a\r\n/b", "/\x00", "/\x1b[2J\x1b]0;title\x07", "/\x7f", `/" 200 0 "-" "-`, `/\`, `/\"`, `/\n`,
	"/\u009b31m", "/\u2028\u2029", "/\u202egpj.exe", "/\xff\xfe\x9b", "/名额", "/" + strings.Repeat("x", 1<<20), "/\U000e0041",
}

var combinedLine = regexp.MustCompile(`^\S+ - - \[[^\]]+\] "(?:[^"\\]|\\x[0-9A-F]{2})*" \d{3} \d+ "(?:[^"\\]|\\x[0-9A-F]{2})*" "(?:[^"\\]|\\x[0-9A-F]{2})*"$`)

func TestNothingForgesALine(t *testing.T) {
	for _, text := range hostile {
		e := entry()
		e.Method, e.Path, e.Protocol, e.Referer, e.UserAgent = text, text, text, text, text
		e.RequestID, e.Rule, e.Decision, e.Mode, e.Outcome, e.Shadow, e.Refusal = text, text, text, text, text, text, text

		line := string(e.appendTo(nil, Combined))
		body, ended := strings.CutSuffix(line, "\n")
		if !ended || !combinedLine.MatchString(body) {
			t.Errorf("%.40q: no combined line: %.300q", text, line)
		}
		for i := range len(body) {
			if body[i] < ' ' || body[i] > '~' {
				t.Errorf("%.40q: byte %#x", text, body[i])
				break
			}
		}

		line = string(e.appendTo(nil, JSON))
		body, ended = strings.CutSuffix(line, "\n")
		if !ended || strings.ContainsFunc(body, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%.40q: not printable: %.300q", text, line)
		}
		var read map[string]any
		if err := json.Unmarshal([]byte(body), &read); err != nil {
			t.Errorf("%.40q: no JSON: %v: %.300q", text, err, line)
			continue
		}
		want := strings.ToValidUTF8(text, "\ufffd")
		if got := read["path"].(string); len(text) < maxText && strings.ReplaceAll(got, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") {
			t.Errorf("%.40q reads %.40q", text, got)
		}
	}
	long := entry()
	long.Path, long.UserAgent = strings.Repeat("\x00", 1<<20), strings.Repeat("\"", 1<<20)
	for _, f := range []Format{Combined, JSON} {
		if n := len(long.appendTo(nil, f)); n > 32<<10 {
			t.Errorf("a line of %d bytes", n)
		}
	}
}
