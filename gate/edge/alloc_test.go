package edge

import (
	"bytes"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
)

// What the edge and the client of the backend keep of a request is a few pieces of
// memory: the texts of both heads, the request's id, and for a gated request what the
// gate may go on looking at. The bound leaves room for the race detector, under which
// pools forget a part of what they are given, to find faults.
func TestRequestsMakeLittleGarbage(t *testing.T) {
	const most = 8
	answer := own(decision.DecisionSoldOut)
	f := start(t, "http://"+instant(t), &testGate{serve: func(*gate.Request) *gate.Reply { return answer }})
	for what, request := range map[string]string{
		"passed on":         benchPage,
		"the gate's answer": "POST /book HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	} {
		c := dial(t, f.addr)
		raw, buf := []byte(request), make([]byte, 4<<10)
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
		if n := testing.AllocsPerRun(200, ask); n > most {
			t.Errorf("%s: %v allocations a request; want %d at most", what, n, most)
		} else {
			t.Logf("%s: %v allocations", what, n)
		}
	}
}
