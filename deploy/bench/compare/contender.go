package compare

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/slotgate/slotgate/deploy/bench/conf"
	"github.com/slotgate/slotgate/deploy/bench/rig"
)

// Contender is something that serves a scenario.
type Contender struct {
	Name string
	// Store: it asks Redis, in scenarios with bookings.
	Store bool
	// needs are the programs of the machine that it takes.
	needs []string
	// start returns when it serves at settings.Listen. nil: there is nothing before
	// the backend.
	start func(ctx context.Context, r *rig.Rig, s conf.Settings) (*rig.Process, error)
}

// The contenders.
var (
	direct = Contender{Name: "direct"}
	gate   = Contender{Name: "slotgate", Store: true, start: startGate}
	bare   = Contender{Name: "bare fasthttp", start: startPeer("proxy")}
	nginx  = Contender{Name: "nginx", needs: []string{"nginx"}, start: startNginx}

	haproxy      = Contender{Name: "HAProxy", needs: []string{"haproxy"}, start: startHAProxy}
	nginxTokens  = Contender{Name: "nginx+Lua+Redis", Store: true, needs: []string{"nginx", luaModule}, start: startNginx}
	nginxSettles = Contender{Name: "nginx+Lua settling", Store: true, needs: []string{"nginx", luaModule}, start: startNginxSettling}
	goTokens     = Contender{Name: "fasthttp+go-redis", Store: true, start: startPeer("tokens")}
)

const (
	// nginxModules is where Debian's packages put modules of nginx.
	nginxModules = "/usr/lib/nginx/modules"
	luaModule    = nginxModules + "/ngx_http_lua_module.so"
)

// Installed tells whether this machine has what the contender takes.
func (c Contender) Installed() bool {
	for _, program := range c.needs {
		_, inPath := exec.LookPath(program)
		_, inSbin := os.Stat(filepath.Join("/usr/sbin", program))
		_, isFile := os.Stat(program)
		if inPath != nil && inSbin != nil && isFile != nil {
			return false
		}
	}
	return true
}

func startGate(ctx context.Context, r *rig.Rig, s conf.Settings) (*rig.Process, error) {
	file, err := rig.Write(s.Dir, "gate.yaml", conf.Gate, s)
	if err != nil {
		return nil, err
	}
	return r.Start(ctx, "slotgate", "slotgate", s.Listen, "run", "-c", file)
}

func startPeer(role string) func(context.Context, *rig.Rig, conf.Settings) (*rig.Process, error) {
	return func(ctx context.Context, r *rig.Rig, s conf.Settings) (*rig.Process, error) {
		args := []string{role, "-listen", s.Listen, "-to", s.Backend}
		if s.Redis != "" {
			args = append(args, "-redis", s.Redis)
		}
		return r.Start(ctx, role, "peer", s.Listen, args...)
	}
}

func startNginx(ctx context.Context, r *rig.Rig, s conf.Settings) (*rig.Process, error) {
	s.Modules = nginxModules
	for name, text := range map[string]string{"nginx_tokens.lua": conf.NginxTokens, "nginx_journey.lua": conf.NginxJourney} {
		if _, err := rig.Write(s.Dir, name, text, s); err != nil {
			return nil, err
		}
	}
	file, err := rig.Write(s.Dir, "nginx.conf", conf.Nginx, s)
	if err != nil {
		return nil, err
	}
	return r.StartInstalled(ctx, "nginx", "nginx", s.Listen, "-c", file)
}

func startNginxSettling(ctx context.Context, r *rig.Rig, s conf.Settings) (*rig.Process, error) {
	s.Settles = true
	return startNginx(ctx, r, s)
}

func startHAProxy(ctx context.Context, r *rig.Rig, s conf.Settings) (*rig.Process, error) {
	file, err := rig.Write(s.Dir, "haproxy.cfg", conf.HAProxy, s)
	if err != nil {
		return nil, err
	}
	return r.StartInstalled(ctx, "haproxy", "haproxy", s.Listen, "-db", "-f", file)
}

// bookings is what load.lua is told to book lessons. run is one letter.
func bookings(lessons int, run string) []string {
	return []string{"book", fmt.Sprint(lessons), run}
}
