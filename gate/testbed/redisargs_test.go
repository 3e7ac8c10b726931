package testbed

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestRedisWithAnACLUser(t *testing.T) {
	server := Redis(t, append(ACLUser("gate on >secret ~sg:* -@all +get +set"), ACLUser("default off")...)...)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "gate", Password: "secret", DisableIdentity: true})
	defer client.Close()
	if err := client.Set(t.Context(), "sg:a", "1", 0).Err(); err != nil {
		t.Errorf("what the user may do gives %v", err)
	}
	for name, err := range map[string]error{
		"another key":     client.Get(t.Context(), "other").Err(),
		"another command": client.Del(t.Context(), "sg:a").Err(),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%s gives %v, want NOPERM", name, err)
		}
	}
	if err := dial(t, server.Addr()).Ping(t.Context()).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Errorf("the default user gets %v, want NOAUTH", err)
	}
}

func TestRedisTakesRightsFromAUser(t *testing.T) {
	server := Redis(t, ACLUser("gate on >secret ~* +@all")...)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "gate", Password: "secret"})
	defer client.Close()
	if err := client.Set(t.Context(), "k", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.SetUser("gate -set")
	if err := client.Set(t.Context(), "k", "2", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
		t.Errorf("a write gives %v, want NOPERM", err)
	}
	server.SetUser("gate +set")
	if err := client.Set(t.Context(), "k", "2", 0).Err(); err != nil {
		t.Errorf("with its right again a write gives %v", err)
	}
}

func TestRedisOutOfMemory(t *testing.T) {
	server := Redis(t, MaxMemory("64mb", "noeviction")...)
	client := dial(t, server.Addr())
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.Set("maxmemory", "1")
	if err := client.Set(t.Context(), "k", "w", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Errorf("a write gives %v, want OOM", err)
	}
	if got := client.Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("k is %q, want v", got)
	}
	server.Set("maxmemory", "0")
	if err := client.Set(t.Context(), "k", "w", 0).Err(); err != nil {
		t.Errorf("with memory again a write gives %v", err)
	}
}
