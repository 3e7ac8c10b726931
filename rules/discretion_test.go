package rules

import "testing"

func TestWhatLogsMayShow(t *testing.T) {
	const config = `
upstream: { url: "http://127.0.0.1:9" }
pools: { lessons: { capacity: 1 } }
rules:
  - name: press
    match: { methods: [PUT], path: "/presses/{press}" }
    pool: lessons
    slot: query:lesson
    subject: json:/student
    idempotency: { key: [path:press] }
  - name: book
    match: { methods: [POST], path: "/students/{student}/lessons/{lesson}" }
    pool: lessons
    slot: path:lesson
    subject: path:student
    mode: off
  - name: open
    match: { methods: [POST], path: "/lessons/{lesson}/bookings" }
    pool: lessons
    slot: [path:lesson, header:Referer]
    subject: header:Student
    idempotency: { key: [header:X-Request-Id], scope: [header:User_Agent], partition: [cookie:sid] }
`
	set, err := NewSet(load(t, config, LoadOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	const press, book = "/presses/{press}", "/students/{student}/lessons/{lesson}"
	for path, want := range map[string]string{
		// As sent, but for parameters.
		"/lessons/7/bookings":                  "/lessons/7/bookings",
		"/lessons/7;jsessionid=S/bookings;a=S": "/lessons/7/bookings",
		"/a;S":                                 "/a",
		";S":                                   "",
		"/":                                    "/",
		"*":                                    "*",
		"/pressed/S":                           "/pressed/S",
		"/students/ann":                        "/students/ann",
		"/lessons/%E5%90%8D/bookings":          "/lessons/%E5%90%8D/bookings",
		// What a rule reads a key or a subject from, in each spelling that a backend may
		// take for it, whatever the method, and whether the rule is on or off.
		"/presses/SECRET":               press,
		"/PRESSES/SECRET/":              press,
		"/x/../presses//SECRET":         press,
		"/presses/SECRET.json":          press,
		"/%70resses/SECRET":             press,
		"/presses/SECRET;a=b":           press,
		"/presses/SEC%2FRET":            press,
		"/presses/SEC%zzRET":            press,
		"/presses/SEC%00RET":            press,
		"/students/SECRET/lessons/7":    book,
		"/students/SECRET/lessons/7/":   book,
		"/students/SEC%5CRET/lessons/7": book,
	} {
		if got := set.LoggedPath(path); got != want {
			t.Errorf("%s is logged as %s, want %s", path, got, want)
		}
	}
	for field, want := range map[string]bool{
		"X-Request-Id": false, "x-request-ID": false, "X_Request_Id": false,
		"User-Agent": false, "Student": false,
		"Referer":       true, // a slot
		"Accept":        true,
		"Authorization": false, // the scope where none is named
		"Cookie":        false,
	} {
		if got := set.Logs(field); got != want {
			t.Errorf("%s may be logged: %v, want %v", field, got, want)
		}
	}
	if new(Set).LoggedPath("/a") != "/a" || !new(Set).Logs("X-Request-Id") {
		t.Error("without rules nothing is read")
	}
}
