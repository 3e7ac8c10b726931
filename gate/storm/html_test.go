package storm

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func htmlOf(t *testing.T, r *Report, verdicts ...Verdict) (*element, string) {
	t.Helper()
	var b strings.Builder
	if err := r.WriteHTML(&b, verdicts, "slotgate 1.2.3"); err != nil {
		t.Fatal(err)
	}
	return readPage(t, b.String()), b.String()
}

// sums adds up the columns of a figure's table, and returns its head and foot.
func sums(t *testing.T, rows [][]string) (head []string, sum []int, foot []string) {
	t.Helper()
	head, foot = rows[0], rows[len(rows)-1]
	sum = make([]int, len(head))
	for _, row := range rows[1 : len(rows)-1] {
		for i, cell := range row[1:] {
			n, err := strconv.Atoi(cell)
			if err != nil {
				t.Fatal(err)
			}
			sum[i+1] += n
		}
	}
	return head, sum, foot
}

// The page's figures are those of the report, in its tables and in all their sums.
func TestHTMLSaysWhatTheReportSays(t *testing.T) {
	r := sample()
	page, _ := htmlOf(t, r, r.ExpectSuccesses(3), r.ExpectCapacity(), r.ExpectNo5xx())
	if got := page.named("h1")[0].text; got != "Broken: 2 of 3 assertions" {
		t.Errorf("the verdict is %q", got)
	}
	for _, row := range []struct {
		id   string
		want map[string]int
	}{
		{"status-values", map[string]int{"201": 4, "409": 6, "503": 1, "no answer": 2}},
		{"decision-values", r.Decisions},
	} {
		head, sum, foot := sums(t, page.table(row.id))
		got := map[string]int{}
		for i, name := range head[1:] {
			got[name] = sum[i+1]
			if foot[i+1] != strconv.Itoa(sum[i+1]) {
				t.Errorf("%s: the foot says %v, the rows sum up to %v", row.id, foot, sum)
			}
		}
		if !maps.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.id, got, row.want)
		}
	}
	latency := page.table("latency-values")
	if want := []string{"all", "11", "10.1ms", "40ms", "40ms"}; !slices.Equal(latency[len(latency)-1], want) || len(latency) != len(r.Timeline.Intervals())+2 {
		t.Errorf("latency %v, want the foot %v", latency, want)
	}
	for id, want := range map[string][][]string{
		"distribution-values": {
			{"share", "no longer than", "answers beyond"}, {"50 %", "10.1ms", "5"}, {"75 %", "25.7ms", "2"}, {"90 %", "32.5ms", "1"}, {"100 %", "40ms", "0"},
		},
		"assertions": {
			{"assertion", "state", "found", "note"},
			{"expect 3 successes", "held", "3", ""},
			{"expect at most 1 successes in a slot", "broken", "1", "in 1 slot"},
			{"expect no 5xx", "broken", "1", "2 transport errors are not counted"},
		},
		"slots": {{"slot", "capacity", "sold", "oversold", "twice"}, {"3", "1", "2", "1", "1"}, {"4", "1", "1", "0", "0"}},
	} {
		if got := page.table(id); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", id, got, want)
		}
	}
	var wrong []string
	for _, line := range page.id("violations").named("li") {
		wrong = append(wrong, line.text)
	}
	if want := []string{
		"expect at most 1 successes in a slot: broken, 1 (in 1 slot)",
		"expect no 5xx: broken, 1 (2 transport errors are not counted)",
		"Slot 3 sold 2 of 1 seat: 1 too many",
		"Slot 3: subject 1 has more than one success, also request 5 (status 201)",
		"1 pair of twins, sent at once with the same key, got different answers",
	}; !slices.Equal(wrong, want) {
		t.Errorf("violations\n%s\nwant\n%s", strings.Join(wrong, "\n"), strings.Join(want, "\n"))
	}
	for _, want := range []string{"2026-11-30 09:00:00 UTC, 1.23s long; sent by slotgate 1.2.3", "10, 3 of them sent twice", "10s for one answer, 5m0s for the storm", "seed42"} {
		if !strings.Contains(strings.ReplaceAll(page.text, "\n", ""), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// What a plot draws is the same as its table: each area's height at each interval is its
// count a second.
func TestPlotsShowTheirTables(t *testing.T) {
	r := sample()
	page, _ := htmlOf(t, r)
	plots := map[string]*element{}
	for _, figure := range page.named("figure") {
		for _, svg := range figure.named("svg") {
			if svg.attr["class"] == "plot" {
				plots[figure.attr["aria-labelledby"]] = svg
			}
		}
	}
	if len(plots) != 4 {
		t.Fatalf("%d plots, want 4", len(plots))
	}
	for _, id := range []string{"status", "decision"} {
		rows := page.table(id + "-values")
		names := rows[0][1:]
		intervals := len(rows) - 2
		var paths []string
		for _, path := range plots[id].named("path") {
			if name := path.text; name != names[len(paths)] {
				t.Errorf("%s: area %d is %q, the table's column is %q", id, len(paths), name, names[len(paths)])
			}
			paths = append(paths, path.attr["d"])
		}
		if len(paths) != len(names) {
			t.Fatalf("%s: %d areas and %d columns", id, len(paths), len(names))
		}
		top := lineTops(t, paths[len(paths)-1], intervals)
		highest := 0.0
		for _, tick := range plots[id].named("text") {
			if v, err := strconv.ParseFloat(tick.text, 64); err == nil {
				highest = max(highest, v)
			}
		}
		for i, interval := range r.Timeline.Intervals() {
			sum := 0
			for _, cell := range rows[i+1][1:] {
				n, _ := strconv.Atoi(cell)
				sum += n
			}
			want := 1000 - 1000*float64(sum)/(interval.To-interval.From).Seconds()/highest
			if diff := top[i] - want; diff < -0.06 || diff > 0.06 {
				t.Errorf("%s: the areas of interval %d end at %v, want %v", id, i, top[i], want)
			}
		}
	}
}

var steps = regexp.MustCompile(`[ML][0-9.]+ ([0-9.]+)H[0-9.]+`)

// lineTops are the heights of the first n steps of a path.
func lineTops(t *testing.T, path string, n int) []float64 {
	t.Helper()
	var tops []float64
	for _, m := range steps.FindAllStringSubmatch(path, n) {
		y, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		tops = append(tops, y)
	}
	if len(tops) != n {
		t.Fatalf("%d steps in %s, want %d", len(tops), path, n)
	}
	return tops
}

// A page asks for nothing, runs nothing, and can be read aloud.
func TestHTMLStandsAlone(t *testing.T) {
	page, text := htmlOf(t, sample())
	ids := map[string]bool{}
	for _, e := range page.all {
		switch e.name {
		case "script", "link", "img", "iframe", "object", "embed", "base", "form":
			t.Errorf("there is a <%s>", e.name)
		}
		for name, value := range e.attr {
			if strings.HasPrefix(name, "on") || name == "src" || name == "href" || strings.Contains(value, "://") {
				t.Errorf("<%s %s=%q>", e.name, name, value)
			}
		}
		if id := e.attr["id"]; id != "" {
			if ids[id] {
				t.Errorf("id %s stands there twice", id)
			}
			ids[id] = true
		}
	}
	for _, word := range []string{"url(", "@import", "ZgotmplZ"} {
		if strings.Contains(text, word) {
			t.Errorf("the page holds %s", word)
		}
	}
	for _, e := range page.all {
		for _, id := range strings.Fields(e.attr["aria-labelledby"]) {
			if strings.TrimSpace(page.id(id).text) == "" {
				t.Errorf("<%s> is labelled by %s, which is empty", e.name, id)
			}
		}
		if e.name == "svg" && e.attr["class"] == "plot" && (e.attr["role"] != "img" || len(strings.Fields(e.attr["aria-labelledby"])) != 2) {
			t.Errorf("a plot has no title and description: %v", e.attr)
		}
		if e.name == "th" && e.attr["scope"] != "col" {
			t.Errorf("the head %q has no scope", e.text)
		}
	}
	if policy := page.named("meta")[3].attr["content"]; policy != "default-src 'none'; style-src 'unsafe-inline'" {
		t.Errorf("the content security policy is %q", policy)
	}
	if page.named("html")[0].attr["lang"] != "en" || len(page.named("h1")) != 1 || len(page.named("main")) != 1 {
		t.Error("the page lacks a language, one main heading, or a main part")
	}
}

func TestHTMLEscapesWhatServersSend(t *testing.T) {
	bad := `"></title></svg><script>alert('1')</script>&amp;`
	r := sample()
	r.Targets = []string{"http://h/" + bad}
	r.Success = bad
	r.Decisions = map[string]int{bad: 11}
	r.Timeline.at(0).Decisions[bad] = 11
	page, _ := htmlOf(t, r, Verdict{Assertion: bad, State: Broken, Note: bad})
	if len(page.named("script")) > 0 {
		t.Error("a script came in")
	}
	if found := strings.Count(page.text, bad); found < 8 {
		t.Errorf("the text stands there %d times", found)
	}
}

func TestHTMLVerdict(t *testing.T) {
	held, broken := Verdict{State: Held}, Verdict{State: Broken}
	for _, row := range []struct {
		stopped  StopReason
		verdicts []Verdict
		want     string
		class    string
	}{
		{"", nil, "Nothing was asserted", "warn"},
		{"", []Verdict{held}, "Held: 1 assertion", "good"},
		{"", []Verdict{held, broken, held}, "Broken: 1 of 3 assertions", "bad"},
		{OutOfTime, []Verdict{held, broken}, "Broken: 1 of 2 assertions", "bad"},
		{OutOfTime, []Verdict{held}, "Undecided: stopped early (max-time)", "warn"},
		{Interrupted, nil, "Undecided: stopped early (interrupted)", "warn"},
	} {
		r := sample()
		r.StoppedBy = row.stopped
		page, _ := htmlOf(t, r, row.verdicts...)
		h1, title := page.named("h1")[0], page.named("title")[0].text
		if h1.text != row.want || h1.attr["class"] != row.class || !strings.HasPrefix(title, row.want+" – storm of ") {
			t.Errorf("%q (%s), titled %q; want %q (%s)", h1.text, h1.attr["class"], title, row.want, row.class)
		}
	}
}

func TestHTMLOfAStormWithoutAnswers(t *testing.T) {
	r := &Report{Method: "POST", Targets: []string{"http://h/"}, Requests: 4, Clients: 1, Subjects: 4, StoppedBy: Interrupted}
	r.Timeline.close(0)
	page, text := htmlOf(t, r)
	if len(page.named("figure")) > 0 || !strings.Contains(page.text, "No request was a success.") || strings.Contains(text, "NaN") {
		t.Errorf("the page of nothing is\n%s", text)
	}
	r.Sent, r.Errors = 4, map[ErrorKind]int{Timeout: 4}
	r.Timeline.at(0).Errors = 4
	page, text = htmlOf(t, r)
	if got := page.table("status-values"); len(page.named("figure")) != 1 || !reflect.DeepEqual(got[len(got)-1], []string{"all", "4"}) || strings.Contains(text, "NaN") {
		t.Errorf("the page of four time-outs is\n%s", text)
	}
}

// A page has a bound, whatever happened; what it leaves out is counted.
func TestHTMLIsBounded(t *testing.T) {
	r := &Report{Method: "POST", Targets: []string{"http://h/"}, Capacity: 1, Statuses: map[int]int{}, Decisions: map[string]int{}, Elapsed: 10 * time.Hour}
	for n := range 200_000 {
		r.Successes = append(r.Successes, Booking{N: n, Subject: 1, Slot: int64(n % 50_000), Status: 201})
		status := 100 + n%900
		now := r.Timeline.at(time.Duration(n) * r.Elapsed / 200_000)
		now.Latency.Record(time.Duration(n) * time.Microsecond)
		r.Latency.Record(time.Duration(n) * time.Microsecond)
		r.Statuses[status]++
		now.Statuses[status]++
		r.Decisions[fmt.Sprint(n%60)]++
		now.Decisions[fmt.Sprint(n%60)]++
	}
	r.Sent, r.Answered = 200_000, 200_000
	r.Timeline.close(r.Elapsed)
	page, text := htmlOf(t, r)
	if len(text) > 500_000 {
		t.Errorf("the page has %d bytes", len(text))
	}
	if rows := page.table("slots"); len(rows) != maxSlotRows+1 || !strings.Contains(page.text, "49500 more are not listed") {
		t.Errorf("%d rows of slots", len(rows))
	}
	if lines := page.id("violations").named("li"); len(lines) != 2*(maxListed+1) ||
		lines[maxListed].text != "and 49990 more slots oversold" || lines[2*maxListed+1].text != "and 149990 more successes of a subject that already had one in that slot" {
		t.Errorf("%d violations", len(lines))
	}
	for _, id := range []string{"status-values", "decision-values"} {
		head, sum, _ := sums(t, page.table(id))
		total := 0
		for _, n := range sum {
			total += n
		}
		if total != 200_000 || len(head) > 12 {
			t.Errorf("%s: %d answers under %v", id, total, head)
		}
	}
}

func TestHTMLPassesWriteErrorsOn(t *testing.T) {
	if err := sample().WriteHTML(fullDisk{}, nil, ""); err == nil {
		t.Error("no error")
	}
}
