package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/admin"
	"github.com/slotgate/slotgate/gate/truth"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// fileCheck is how often the configuration file is looked at. A file that has changed
// is read when it has stayed the same for as long: it may still be written.
const fileCheck = time.Second

// untilRestart are the settings that listeners, the store and the logs were opened with:
// a reload says that they have changed, and goes on with what they were.
var untilRestart = []string{"version", "server", "admin", "store", "log.format", "tracing.otlp_endpoint"}

// reloader puts a changed configuration into effect, for requests that arrive
// afterwards. Whatever is wrong with it, the one in effect stays.
type reloader struct {
	service *service
	flags   *configFlags // nil: the configuration is in no file
	logs    logs

	mu     sync.Mutex
	config *rules.Config // in effect
	loaded os.FileInfo   // of the file when it was last read
}

// reload reads the file and puts it into effect. Whatever comes of that, the access log
// is opened again, for whoever rotates it. why is for the log.
func (r *reloader) reload(why string) (admin.Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.service.log
	if err := r.service.access.Reopen(); err != nil {
		log.Error("log.access: not opened again, it goes on in the file it has", "error", err)
	}
	done, err := r.apply()
	r.service.metrics.Reloaded(done, err)
	if err != nil {
		log.Error("configuration not reloaded, the last good one stays in effect", "why", why, "error", err)
		return done, err
	}
	for _, change := range done.Changes {
		log.Info("configuration changed", "change", change)
	}
	for _, change := range done.NeedRestart {
		log.Warn("configuration changed where only a restart helps", "change", change)
	}
	log.Info("configuration reloaded", "why", why, "revision", done.Revision,
		"changes", len(done.Changes), "need_restart", len(done.NeedRestart))
	return done, nil
}

// errNoFile: the demo's gate, for one, has its configuration built in.
var errNoFile = errors.New("this gate's configuration did not come from a file")

func (r *reloader) apply() (done admin.Reloaded, err error) {
	if r.flags == nil {
		return done, errNoFile
	}
	r.loaded, _ = os.Stat(r.flags.file) // before it is read: what changes meanwhile is read again
	config, faults, err := r.flags.load()
	if err != nil {
		return done, err
	}
	if config == nil {
		return done, errors.New(strings.TrimSpace(faults.String()))
	}
	live := false
	for _, c := range rules.Diff(r.config, config) {
		if slices.ContainsFunc(untilRestart, func(p string) bool { return c.Path == p || strings.HasPrefix(c.Path, p+".") }) {
			done.NeedRestart = append(done.NeedRestart, c.String())
			continue
		}
		live = true
		done.Changes = append(done.Changes, c.String())
	}
	config.Server, config.Admin, config.Store = r.config.Server, r.config.Admin, r.config.Store
	config.Log.Format, config.Tracing.OTLPEndpoint = r.config.Log.Format, r.config.Tracing.OTLPEndpoint
	if live {
		access, err := r.service.openAccess(config)
		if err != nil {
			return admin.Reloaded{}, err
		}
		if err := r.service.put(config); err != nil {
			access.Close()
			return admin.Reloaded{}, err
		}
		r.service.access.Use(access)
		r.logs.setLevel(config.Log.Level)
		if t := r.service.tracer; t != nil {
			t.SetSample(config.Tracing.Sample)
		}
		r.config = config
		if r.service.servers != nil {
			r.service.servers.follow(config, r.flags.places())
		}
	}
	done.Revision = r.service.gate.Status().Revision
	return done, nil
}

// put makes what a configuration's rules need anew and puts it in effect. What the
// rules before were made with is closed when the last request under them has ended.
func (s *service) put(config *rules.Config) error {
	set, err := rules.NewSet(config)
	if err != nil {
		return err
	}
	before := s.parts.Load()
	after := &parts{backend: before.backend}
	if config.Upstream != before.upstream {
		if after.backend, err = s.openBackend(config); err != nil {
			return err
		}
	}
	after.upstream = config.Upstream
	if after.truth, err = s.openTruth(config); err != nil {
		if after.backend != before.backend {
			after.backend.Close()
		}
		return err
	}
	s.parts.Store(after)
	s.gate.Reload(gate.Rules{Config: config, Set: set, Backend: after.backend, Truth: after.truth}, func() {
		before.truth.Close()
		if after.backend != before.backend {
			before.backend.Close()
		}
	})
	after.truth.Start()
	return nil
}

// parts are what a reload replaces beside the rules. The edge and the admin API reach
// them through it.
type parts struct {
	upstream rules.UpstreamConfig // that backend was made with
	backend  *upstream.Client
	truth    *truth.Engine
}

// current is a service's parts at any time.
type current struct{ atomic.Pointer[parts] }

// Pass and Upgrade implement edge.Backend.
func (c *current) Pass(r *gate.Request, body io.Reader, length int64) (*upstream.Stream, error) {
	return c.Load().backend.Pass(r, body, length)
}

func (c *current) Upgrade(r *gate.Request, protocol string) (*upstream.Tunnel, *upstream.Stream, error) {
	return c.Load().backend.Upgrade(r, protocol)
}

// Resync implements admin.Truth.
func (c *current) Resync(ctx context.Context, pool, slot string) error {
	return c.Load().truth.Resync(ctx, pool, slot)
}

// watch reloads when the file has changed, also by a link that leads elsewhere now, as
// Kubernetes changes what it mounts.
func (r *reloader) watch(ctx context.Context) {
	if r.flags == nil {
		return
	}
	tick := time.NewTicker(fileCheck)
	defer tick.Stop()
	r.mu.Lock()
	if r.loaded == nil {
		r.loaded, _ = os.Stat(r.flags.file)
	}
	last, gone := r.loaded, false
	r.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := os.Stat(r.flags.file)
		if err != nil && last == nil && !gone { // and not only between two of them
			r.service.log.Warn("the configuration file is gone, what it said stays in effect", "error", err)
			gone = true
		}
		if err == nil {
			gone = false
			if sameFile(now, last) && !r.hasRead(now) {
				_, _ = r.reload(fmt.Sprintf("%s has changed", r.flags.file))
			}
		}
		last = now
	}
}

// hasRead reports that the file was like this when it was last read, whoever asked for
// that.
func (r *reloader) hasRead(now os.FileInfo) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sameFile(now, r.loaded)
}

func sameFile(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
