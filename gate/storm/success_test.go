package storm

import (
	"strings"
	"testing"
)

func TestSuccess(t *testing.T) {
	for _, test := range []struct {
		conditions string // parted by blanks
		status     int
		body       string
		want       bool
	}{
		{"", 200, "", true},
		{"", 299, "no json", true},
		{"", 199, "", false},
		{"", 302, "", false},
		{"201", 201, "", true},
		{"201", 200, "", false},
		{"200,302", 302, "", true},
		{"3xx", 307, "", true},
		{"3XX", 307, "", true},
		{"3xx", 400, "", false},
		{"200-204", 204, "", true},
		{"200-204", 205, "", false},
		{"200 409", 409, "", true},

		{"json:/code=0", 200, `{"code":0}`, true},
		{"json:/code=0", 201, `{"code":0}`, true},
		{"json:/code=0", 400, `{"code":0}`, false},
		{"json:/code=0", 200, `{"code":"0"}`, true},
		{"json:/code=0", 200, `{"code":0.0}`, false},
		{"json:/code=0", 200, `{"code":4001}`, false},
		{"json:/code=0", 200, `{"other":0}`, false},
		{"json:/code=0", 200, `{"data":{"code":0}}`, false},
		{"json:/code=0", 200, `{"data":{"code":1},"code":0}`, true},
		{"json:/code=0", 200, ``, false},
		{"json:/code=0", 200, `code=0`, false},
		{"json:/code=0", 200, `[0]`, false},
		{"json:/code=0", 200, `{"code":`, false},
		{"json:/code=0", 200, `{"code":{"0":0}}`, false},
		{"json:/ok=true", 200, `{"ok":true}`, true},
		{"json:/ok=true", 200, `{"ok":false}`, false},
		{"json:/id=null", 200, `{"id":null}`, true},
		{"json:/a/b=x,y=z", 200, `{"a":{"c":[1,{"b":2}],"b":"x,y=z"}}`, true},
		{"json:/a=", 200, `{"a":""}`, true},
		{"json:/a~1b/c~0d=1", 200, `{"a/b":{"c~d":1}}`, true},
		{"json:/a=预约", 200, `{"a":"\u9884\u7ea6"}`, true},
		{"json:/list/1=b", 200, `{"list":["a","b"]}`, true},
		{"json:/list/2=b", 200, `{"list":["a","b"]}`, false},
		{"json:/list/01=b", 200, `{"list":["a","b"]}`, false},
		{"json:/list/-=b", 200, `{"list":["a","b"]}`, false},
		{"json:/1=b", 200, `{"1":"b"}`, true},
		{"json:=7", 200, `7`, true},
		{"200,json:/code=0", 200, `{"code":0}`, true},
		{"200,json:/code=0", 201, `{"code":0}`, false},
		{"json:/a=1 json:/b=2", 200, `{"a":1,"b":2}`, true},
		{"json:/a=1 json:/b=2", 200, `{"a":1,"b":3}`, false},
	} {
		success, err := ParseSuccess(strings.Fields(test.conditions)...)
		if err != nil {
			t.Errorf("%q: %v", test.conditions, err)
			continue
		}
		if got := success.Matches(test.status, []byte(test.body)); got != test.want {
			t.Errorf("%q on %d %s: %v, want %v", test.conditions, test.status, test.body, got, test.want)
		}
	}
}

func TestSuccessErrors(t *testing.T) {
	for condition, want := range map[string]string{
		"":                  "is no status",
		"ok":                "is no status",
		"99":                "is no status",
		"600":               "is no status",
		"0200":              "is no status",
		"6xx":               "is no status",
		"200,":              "is no status",
		"200-":              "is no status",
		"204-200":           "ends before it begins",
		"json:/code":        "has no value",
		"json:code=0":       "must begin with /",
		"json:/a~2b=0":      "~ must be written ~0",
		"json:/a~=0":        "~ must be written ~0",
		"json:/a~0~=0":      "~ must be written ~0",
		"200 ,json:/code=0": "is no status",
	} {
		_, err := ParseSuccess(condition)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", condition, err, want)
		}
	}
}

func TestSuccessSaysWhatItIs(t *testing.T) {
	for want, conditions := range map[string][]string{
		"2xx":                  nil,
		"201,204-206,3xx":      {"201,204-206", "300-399"},
		"2xx and json:/code=0": {"json:/code=0"},
		"200 and json:/a~1b/0/~0=x=y and json:=5": {"200,json:/a~1b/0/~0=x=y", "json:=5"},
	} {
		if got := mustParseSuccess(t, conditions...).String(); got != want {
			t.Errorf("%q is said to be %q, want %q", conditions, got, want)
		}
	}
}
