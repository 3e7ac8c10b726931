package rules

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// wholePolicy has a value in every field that a digest could see.
func wholePolicy(t *testing.T) *Config {
	t.Helper()
	text, err := os.ReadFile("testdata/good/redis-two-pools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, string(text), LoadOptions{Env: func(string) (string, bool) { return "", false }})
	c.Pools["rooms"].Capacity = Capacity{Kind: CapacitySQL, Truth: &TruthConfig{SQL: &SQLSource{Driver: "postgres", DSN: "secret"}, Bookings: &BookingsConfig{}}}
	c.Pools["lessons"].Capacity.Truth = &TruthConfig{HTTP: &HTTPSource{Path: "/", Headers: map[string]string{"Authorization": "secret"}}}
	c.Rules[0].Limits.Rule, c.Rules[0].Limits.Slot = &LimitConfig{}, &LimitConfig{}
	return c
}

// change visits the leaves below v, which is addressable, and changes the n-th; it
// returns its path, or how many are left to go.
func change(v reflect.Value, path string, n int) (changed string, left int) {
	if at, ok := v.Interface().(time.Time); ok {
		if n == 0 {
			v.Set(reflect.ValueOf(at.Add(time.Second)))
			return path, -1
		}
		return "", n - 1
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "", n
		}
		return change(v.Elem(), path, n)
	case reflect.Struct:
		for i := range v.NumField() {
			if changed, n = change(v.Field(i), path+"."+v.Type().Field(i).Name, n); n < 0 {
				return changed, n
			}
		}
		return "", n
	case reflect.Slice:
		for i := range v.Len() {
			if changed, n = change(v.Index(i), fmt.Sprintf("%s.%d", path, i), n); n < 0 {
				return changed, n
			}
		}
		return "", n
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			if changed, n = change(value, path+"."+key.String(), n); n < 0 {
				v.SetMapIndex(key, value)
				return changed, n
			}
		}
		return "", n
	}
	if n > 0 {
		return "", n - 1
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Float64:
		v.SetFloat(v.Float() + 0.5)
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
	default:
		v.SetInt(v.Int() + 1)
	}
	return path, -1
}

func TestDigestSeesEveryRuleAndPool(t *testing.T) {
	before := wholePolicy(t).Digest()
	if before != wholePolicy(t).Digest() {
		t.Fatal("two loads of one file have two digests")
	}
	unseen := map[string]bool{
		".rooms.Capacity.Truth.SQL.DSN": true, ".lessons.Capacity.Truth.HTTP.Headers.Authorization": true,
	}
	for _, pool := range []string{"lessons", "rooms"} {
		for _, field := range []string{"Timeout", "Report", "ReportDir"} {
			unseen["."+pool+".Capacity.Truth."+field] = true
		}
	}
	for i := range 2 {
		unseen[fmt.Sprintf(".%d.Mode", i)], unseen[fmt.Sprintf(".%d.Passthrough.Share", i)] = true, true
	}
	looked := 0
	for _, part := range []func(*Config) any{func(c *Config) any { return &c.Pools }, func(c *Config) any { return &c.Rules }} {
		for n := 0; ; n++ {
			c := wholePolicy(t)
			path, left := change(reflect.ValueOf(part(c)).Elem(), "", n)
			if left >= 0 {
				break
			}
			looked++
			if seen := c.Digest() != before; seen == unseen[path] {
				t.Errorf("a change of %s is seen: %v", path, seen)
			}
			delete(unseen, path)
		}
	}
	if looked < 200 || len(unseen) > 0 {
		t.Errorf("%d fields changed; never came to %v", looked, unseen)
	}
}

func TestDigestIsOfRulesAndPoolsOnly(t *testing.T) {
	c := wholePolicy(t)
	before := c.Digest()
	c.Server.Listen, c.Admin.Token, c.Upstream.URL, c.Upstream.Timeout, c.Store.Password, c.Store.Timeout = "a", "b", "c", 1, "d", 2
	if c.Digest() != before {
		t.Error("what differs from host to host is in the digest")
	}
	c.Upstream.Dialect = "php"
	if c.Digest() == before {
		t.Error("gates that read paths in different dialects have one digest")
	}
}

// Lists and texts of different make-up must not meet.
func TestDigestKeepsPartsApart(t *testing.T) {
	one, other := wholePolicy(t), wholePolicy(t)
	one.Rules[0].Match.Methods, other.Rules[0].Match.Methods = []string{"POST", "PUT"}, []string{"POST\" \"PUT"}
	if one.Digest() == other.Digest() {
		t.Error("two methods and one are alike")
	}
}
