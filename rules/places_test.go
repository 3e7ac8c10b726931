package rules

import "testing"

func TestPlaces(t *testing.T) {
	const text = `upstream: { url: "http://127.0.0.1:9000" }
store:
  kind: redis
  addresses: ["127.0.0.1:6379"]
pools:
  a.b: { capacity: 1 }
  lessons:
    capacity: 1
`
	places := ReadPlaces("gate.yaml", []byte(text), []string{"store.prefix=shop", "pools.a.b.hold_ttl=10s"})
	for _, c := range []struct {
		path []string
		want string
	}{
		{[]string{"store", "addresses"}, "gate.yaml:4:3: warning: store.addresses: look"},
		{[]string{"store", "kind"}, "gate.yaml:3:9: warning: store.kind: look"},
		{[]string{"store", "prefix"}, "--set store.prefix: warning: store.prefix: look"},
		{[]string{"store", "mode"}, "gate.yaml:2:1: warning: store.mode: look"}, // not written
		{[]string{"pools", "lessons"}, "gate.yaml:7:3: warning: pools.lessons: look"},
		{[]string{"pools", "a.b"}, "gate.yaml:6:3: warning: pools.a.b: look"},
		{[]string{"log", "level"}, "gate.yaml:1:1: warning: log.level: look"},
	} {
		if got := places.Warning("look", c.path...).String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if got, want := (Places{}).Warning("look", "store", "prefix").String(), "configuration: warning: store.prefix: look"; got != want {
		t.Errorf("without a file: got %s, want %s", got, want)
	}
}
