package edge

import (
	"bytes"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// What the edge and the client of the backend keep of a request is in memory that the
// next one uses again. Where a request has a body, fasthttp makes a reader to look for
// what is left of it.
func TestRequestsMakeNoGarbage(t *testing.T) {
	answer, match := own(decision.DecisionSoldOut), rules.Match{Rule: &rules.Rule{}}
	f := start(t, "http://"+instant(t), &testGate{
		route: func(r *gate.Request) (rules.Match, *gate.Reply) {
			if r.Method == "POST" {
				return match, nil
			}
			return rules.Match{}, nil
		},
		serve: func(r *gate.Request) *gate.Reply {
			if body, err := r.ReadBody(); len(body) != len(`{"seat": 1}`) || err != nil {
				t.Error(body, err)
			}
			return answer
		},
	})
	for _, row := range []struct {
		what, request string
		most          float64
	}{
		{"passed on", benchPage, 0},
		{"the gate's answer", benchRequest, 1},
	} {
		c := dial(t, f.addr)
		raw, buf := []byte(row.request), make([]byte, 4<<10)
		ask := func() {
			if _, err := c.Write(raw); err != nil {
				t.Fatal(err)
			}
			for n := 0; !bytes.HasSuffix(buf[:n], []byte("}")) && !bytes.HasSuffix(buf[:n], []byte("}\n")); {
				got, err := c.Read(buf[n:])
				if err != nil {
					t.Fatal(err)
				}
				n += got
			}
		}
		if n := testing.AllocsPerRun(500, ask); n > row.most+raceGarbage {
			t.Errorf("%s: %v allocations a request; want %v at most", row.what, n, row.most)
		}
	}
}
