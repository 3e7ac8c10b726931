package storm

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"
)

// A timeline of any length loses nothing, leaves no gap and stays within its bound.
func TestTimelineKeepsAllWithinItsBound(t *testing.T) {
	for _, elapsed := range []time.Duration{0, time.Millisecond, 130 * time.Millisecond, 20 * time.Second, time.Minute, 7 * time.Hour} {
		random := rand.New(rand.NewPCG(1, uint64(elapsed)))
		var line Timeline
		var whole Histogram
		errors, decisions := 0, 0
		for range 2000 {
			now := line.at(time.Duration(random.Int64N(int64(elapsed) + 1)))
			if random.IntN(10) == 0 {
				now.Errors++
				errors++
				continue
			}
			latency := time.Duration(random.Int64N(int64(time.Second)))
			now.Latency.Record(latency)
			whole.Record(latency)
			now.Statuses[200+random.IntN(2)]++
			if random.IntN(2) == 0 {
				now.Decisions["admitted"]++
				decisions++
			}
		}
		line.close(elapsed)

		var sum Interval
		sum.Statuses, sum.Decisions = map[int]int{}, map[string]int{}
		end := time.Duration(0)
		for _, i := range line.Intervals() {
			if i.From != end || i.To < i.From {
				t.Fatalf("%v: an interval from %v to %v follows %v", elapsed, i.From, i.To, end)
			}
			end = i.To
			sum.add(i)
		}
		if end != elapsed || len(line.Intervals()) > maxIntervals || elapsed >= time.Minute && len(line.Intervals()) < maxIntervals/2 {
			t.Errorf("%v: %d intervals end at %v", elapsed, len(line.Intervals()), end)
		}
		if sum.Latency != whole || sum.Errors != errors || sum.Statuses[200]+sum.Statuses[201] != whole.Count() || sum.Decisions["admitted"] != decisions {
			t.Errorf("%v: the intervals sum up to %d latencies, %d errors, %v, %v", elapsed, sum.Latency.Count(), sum.Errors, sum.Statuses, sum.Decisions)
		}
	}
}

func TestAShortRestJoinsTheIntervalBefore(t *testing.T) {
	for elapsed, want := range map[time.Duration]int{
		firstInterval * 3:                     3,
		firstInterval*3 + firstInterval/2 - 1: 3,
		firstInterval*3 + firstInterval/2:     4,
		firstInterval / 10:                    1,
	} {
		var line Timeline
		line.at(elapsed).Statuses[200]++
		line.close(elapsed)
		all := line.Intervals()
		if last := all[len(all)-1]; len(all) != want || last.To != elapsed || last.Statuses[200] != 1 {
			t.Errorf("%v: %d intervals, want %d; the last is %v to %v with %v", elapsed, len(all), want, last.From, last.To, last.Statuses)
		}
	}
}

func TestTimelineJSON(t *testing.T) {
	var line Timeline
	text, err := json.Marshal(&line)
	if err != nil || string(text) != "[]" {
		t.Fatalf("an empty timeline is %s, %v", text, err)
	}
	now := line.at(0)
	now.Statuses[201]++
	now.Decisions["admitted"]++
	now.Latency.Record(1500 * time.Microsecond)
	line.at(firstInterval).Errors++
	line.close(2 * firstInterval)
	text, err = json.Marshal(&line)
	want := `[{"from_ms":0,"to_ms":25,"p50_ms":1.5,"p99_ms":1.5,"statuses":{"201":1},"gate_decisions":{"admitted":1},"transport_errors":0},` +
		`{"from_ms":25,"to_ms":50,"p50_ms":0,"p99_ms":0,"statuses":{},"gate_decisions":{},"transport_errors":1}]`
	if err != nil || string(text) != want {
		t.Errorf("got  %s, %v\nwant %s", text, err, want)
	}
}
