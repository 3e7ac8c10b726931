package compare

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/slotgate/slotgate/deploy/bench/conf"
	"github.com/slotgate/slotgate/deploy/bench/rig"
)

// Sample is what one measurement saw.
type Sample struct {
	Round     int      `json:"round"`
	Seen      rig.Seen `json:"seen"`       // by the clients
	PerSecond float64  `json:"per_second"` // requests
	// ProxyMicros, RedisMicros and BackendMicros are CPU time a request, in µs.
	ProxyMicros   float64 `json:"proxy_us"`
	RedisMicros   float64 `json:"redis_us"`
	BackendMicros float64 `json:"backend_us"`
	// ScriptCalls are calls of scripts a request, ScriptMicros what one took in Redis.
	ScriptCalls  float64 `json:"script_calls"`
	ScriptMicros float64 `json:"script_us"`
	RSS          int64   `json:"rss"`     // peak of the proxy, in bytes
	Foreign      float64 `json:"foreign"` // share of one CPU that others took
}

// wrongShare of the answers may be other than the scenario's own before a measurement
// is a failure.
const wrongShare = 0.001

// storeTimeout is what all contenders give Redis, so that a pause of the machine is an
// outage for none of them.
const storeTimeout = "4s"

// measure starts everything for one measurement, loads it and stops it.
func measure(ctx context.Context, r *rig.Rig, s *Scenario, c Contender, connections int, warm, load time.Duration) (Sample, error) {
	st := &stage{rig: r, scenario: s, contender: c}
	defer st.close()
	if err := st.open(ctx); err != nil {
		return Sample{}, err
	}
	if s.SoldOut {
		if err := st.sellOut(ctx); err != nil {
			return Sample{}, err
		}
	}
	if warm > 0 {
		if _, err := st.load(ctx, connections, warm, "w"); err != nil {
			return Sample{}, err
		}
	}
	return st.sample(ctx, connections, load)
}

// stage is what serves one measurement.
type stage struct {
	rig       *rig.Rig
	scenario  *Scenario
	contender Contender
	script    string // path of load.lua
	addr      string // where the load goes

	backend, proxy *rig.Process // proxy is nil where clients go to the backend
	redis          *rig.Redis   // nil without
}

func (st *stage) close() {
	if st.proxy != nil {
		st.proxy.Stop()
	}
	if st.backend != nil {
		st.backend.Stop()
	}
	if st.redis != nil {
		st.redis.Stop()
	}
}

func (st *stage) open(ctx context.Context) (err error) {
	s := conf.Settings{
		Workers: runtime.NumCPU(), Capacity: max(st.scenario.Seats, 1), RejectCache: st.scenario.RejectCache,
		StoreTimeout: storeTimeout,
	}
	if s.Dir, err = st.rig.Folder(); err != nil {
		return err
	}
	if st.script, err = rig.Write(s.Dir, "load.lua", conf.Load, s); err != nil {
		return err
	}
	for _, addr := range []*string{&s.Listen, &s.Admin, &s.Backend} {
		if *addr, err = rig.FreeAddr(); err != nil {
			return err
		}
	}
	if st.contender.Store && st.scenario.Lessons > 0 {
		if err := st.openRedis(ctx, &s); err != nil {
			return err
		}
	}
	if st.backend, err = st.rig.Start(ctx, "backend", "peer", s.Backend,
		"backend", "-listen", s.Backend, "-delay", st.scenario.Delay.String()); err != nil {
		return err
	}
	if st.contender.start == nil {
		st.addr = s.Backend
		return nil
	}
	st.addr = s.Listen
	st.proxy, err = st.contender.start(ctx, st.rig, s)
	return err
}

// openRedis also puts the peers' scripts and counters there; the gate makes its own.
func (st *stage) openRedis(ctx context.Context, s *conf.Settings) (err error) {
	if st.redis, err = st.rig.Redis(ctx); err != nil {
		return err
	}
	s.Redis = st.redis.Addr
	if s.Host, s.Port, err = net.SplitHostPort(s.Redis); err != nil {
		return err
	}
	for _, script := range []struct {
		sha  *string
		text string
	}{{&s.Token, conf.Token}, {&s.Decide, conf.JourneyDecide}, {&s.Settle, conf.JourneySettle}} {
		if *script.sha, err = st.redis.Client.ScriptLoad(ctx, script.text).Result(); err != nil {
			return err
		}
	}
	pipeline := st.redis.Client.Pipeline()
	for lesson := 1; lesson <= st.scenario.Lessons; lesson++ {
		pipeline.Set(ctx, fmt.Sprintf("slot:%d", lesson), st.scenario.Seats, 0)
	}
	_, err = pipeline.Exec(ctx)
	return err
}

// sellOut books every seat of every lesson, and tries one more.
func (st *stage) sellOut(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: st.scenario.Lessons}}
	defer client.CloseIdleConnections()
	faults := make([]error, st.scenario.Lessons)
	var lessons sync.WaitGroup
	for i := range faults {
		lessons.Go(func() { faults[i] = st.sellLesson(ctx, client, i+1) })
	}
	lessons.Wait()
	return errors.Join(faults...)
}

func (st *stage) sellLesson(ctx context.Context, client *http.Client, lesson int) error {
	for seat := range st.scenario.Seats + 1 {
		want := http.StatusCreated
		if seat == st.scenario.Seats {
			want = http.StatusConflict
		}
		got, err := st.book(ctx, client, lesson, fmt.Sprintf("buyer-%d-%d", lesson, seat))
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("booking %d of lesson %d with %d seats is answered with %d, not %d", seat+1, lesson, st.scenario.Seats, got, want)
		}
	}
	return nil
}

func (st *stage) book(ctx context.Context, client *http.Client, lesson int, who string) (status int, err error) {
	url := fmt.Sprintf("http://%s/api/lessons/%d/bookings", st.addr, lesson)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(fmt.Sprintf(`{"student_id":%q}`, who)))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer 0123456789abcdef")
	request.Header.Set("Idempotency-Key", who)
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// load sends the scenario's requests and checks that they got its answers.
func (st *stage) load(ctx context.Context, connections int, d time.Duration, run string) (rig.Seen, error) {
	url, args := st.scenario.load(st.addr, run)
	seen, err := rig.Load{URL: url, Connections: connections, Duration: d, Script: st.script, Args: args}.Run(ctx)
	if err != nil {
		return seen, err
	}
	wrong := seen.Refused + seen.Broken
	if st.scenario.SoldOut {
		wrong = seen.Requests - seen.Refused + seen.Broken
	}
	if float64(wrong) > wrongShare*float64(seen.Requests) {
		return seen, fmt.Errorf("of %d requests %d were refused and %d broken, which is not what this scenario is about",
			seen.Requests, seen.Refused, seen.Broken)
	}
	return seen, nil
}

// sample is the measured run.
func (st *stage) sample(ctx context.Context, connections int, d time.Duration) (Sample, error) {
	if st.redis != nil {
		if err := st.redis.Client.ConfigResetStat(ctx).Err(); err != nil {
			return Sample{}, err
		}
	}
	before, err := rig.TakeSnapshot()
	if err != nil {
		return Sample{}, err
	}
	seen, err := st.load(ctx, connections, d, "m")
	if err != nil {
		return Sample{}, err
	}
	after, err := rig.TakeSnapshot()
	if err != nil {
		return Sample{}, err
	}
	perRequest := func(p *rig.Process) float64 {
		return float64((after.Of(p.PID) - before.Of(p.PID)).Microseconds()) / float64(seen.Requests)
	}
	sample := Sample{
		Seen: seen, PerSecond: float64(seen.Requests) / float64(seen.Micros) * 1e6,
		BackendMicros: perRequest(st.backend), Foreign: after.ForeignSince(before),
	}
	if st.proxy != nil {
		sample.ProxyMicros = perRequest(st.proxy)
		if sample.RSS, err = rig.PeakRSS(st.proxy.PID); err != nil {
			return Sample{}, err
		}
	}
	if st.redis != nil {
		sample.RedisMicros = perRequest(st.redis.Process)
		scripts, err := st.redis.ScriptTime(ctx)
		if err != nil {
			return Sample{}, err
		}
		sample.ScriptCalls = float64(scripts.Calls) / float64(seen.Requests)
		sample.ScriptMicros = scripts.PerCall
	}
	return sample, nil
}
