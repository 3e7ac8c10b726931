package rig

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Redis is a redis-server that starts empty and writes nothing to disk.
type Redis struct {
	*Process
	Addr   string
	Client *redis.Client // for the rig's own questions
}

// Redis starts one and returns when it answers. Stop ends it.
func (r *Rig) Redis(ctx context.Context) (*Redis, error) {
	path, err := look("redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := r.Folder()
	if err != nil {
		return nil, err
	}
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	process, err := launch(ctx, "redis", path, func() error { return client.Ping(ctx).Err() }, syscall.SIGKILL,
		"--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no")
	if err != nil {
		client.Close()
		return nil, err
	}
	return &Redis{Process: process, Addr: addr, Client: client}, nil
}

// Stop ends the server and the connections to it.
func (r *Redis) Stop() {
	r.Client.Close()
	r.Process.Stop()
}

// ScriptTime is what scripts have taken inside Redis since CONFIG RESETSTAT.
type ScriptTime struct {
	Calls    int64   `json:"calls"`
	Micros   float64 `json:"us"` // of all calls
	PerCall  float64 `json:"us_per_call"`
	Commands float64 `json:"commands_per_call"` // that scripts ran
}

// ScriptTime reads INFO commandstats.
func (r *Redis) ScriptTime(ctx context.Context) (ScriptTime, error) {
	info, err := r.Client.InfoMap(ctx, "commandstats").Result()
	if err != nil {
		return ScriptTime{}, err
	}
	var total ScriptTime
	var commands int64
	for name, stat := range info["Commandstats"] {
		var calls, micros int64
		if _, err := fmt.Sscanf(stat, "calls=%d,usec=%d", &calls, &micros); err != nil {
			return ScriptTime{}, fmt.Errorf("INFO commandstats says %s:%s: %w", name, stat, err)
		}
		switch command := strings.TrimPrefix(name, "cmdstat_"); {
		case command == "evalsha" || command == "eval" || command == "fcall":
			total.Calls += calls
			total.Micros += float64(micros)
		case command != "ping" && command != "info" && command != "hello" && !strings.Contains(command, "|"):
			commands += calls
		}
	}
	if total.Calls > 0 {
		total.PerCall = total.Micros / float64(total.Calls)
		total.Commands = float64(commands) / float64(total.Calls)
	}
	return total, nil
}

// UsedMemory reads used_memory of INFO memory, in bytes.
func (r *Redis) UsedMemory(ctx context.Context) (int64, error) {
	info, err := r.Client.InfoMap(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	var bytes int64
	if _, err := fmt.Sscan(info["Memory"]["used_memory"], &bytes); err != nil {
		return 0, fmt.Errorf("INFO memory says used_memory:%s: %w", info["Memory"]["used_memory"], err)
	}
	return bytes, nil
}
