package decision

import (
	"encoding/json"
	"testing"
)

func TestProblemReadsAsEncodingJSONWouldWriteIt(t *testing.T) {
	for _, text := range []string{"", "plain", `"quoted" \back`, "<b>&amp;</b>", "tab\tline\n", "名额已满", "\u2028\x7f", "not UTF-8: \xff"} {
		for _, d := range Own() {
			p := NewProblem(d, text, "id "+text)
			want, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(p.Answer().Body); got != string(want)+"\n" {
				t.Errorf("%s with %q: %s, want %s", d, text, got, want)
			}
			if p.Type != "urn:slotgate:"+string(d) || p.Status != d.Status() || p.Title != d.Title() || p.Retryable != d.Retryable() {
				t.Errorf("%s: %+v", d, p)
			}
		}
	}
}

// An answer outlives the call, so that it is memory of its own: one piece, with room for
// the fields of a limit.
func TestProblemAllocatesOnce(t *testing.T) {
	var a Answer
	n := testing.AllocsPerRun(100, func() {
		a = NewProblem(DecisionSoldOut, "Not enough units are left.", "ABCDEFGHIJKLMNOPQRSTUVWXYZ").Answer()
		a.Header = append(a.Header, a.Header[0], a.Header[0], a.Header[0])
	})
	if n != 1 {
		t.Errorf("an answer allocates %v times", n)
	}
}
