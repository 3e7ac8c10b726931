package rig

import "testing"

func TestParseSeen(t *testing.T) {
	out := "Running 1s test @ http://127.0.0.1:1\n  2 threads and 4 connections\n" +
		`{"requests":10,"micros":1000000,"bytes":2500,"refused":1,"broken":0,"p50":70,"p90":90,"p99":120,"p999":130,"max":140}` + "\nRequests/sec: 10\n"
	seen, err := parseSeen([]byte(out))
	if err != nil || seen.Requests != 10 || seen.Refused != 1 || seen.P99 != 120 {
		t.Errorf("%+v, %v", seen, err)
	}
	for _, out := range []string{"", "unable to connect\n", `{"requests":0}` + "\n", "{torn\n"} {
		if seen, err := parseSeen([]byte(out)); err == nil {
			t.Errorf("%q is read as %+v", out, seen)
		}
	}
}
