package testbed

import "testing"

func TestRedisFlushKeepsScriptsAndFlushScriptsKeepsData(t *testing.T) {
	server := Redis(t)
	client := dial(t, server.Addr())
	sha, err := client.ScriptLoad(t.Context(), "return 1").Result()
	if err != nil {
		t.Fatal(err)
	}
	exists := func() bool {
		found, err := client.ScriptExists(t.Context(), sha).Result()
		return err == nil && found[0]
	}
	client.Set(t.Context(), "k", 1, 0)
	server.Flush()
	if n := value(t, client, "k"); n != 0 || !exists() {
		t.Errorf("after Flush k is %d, script there: %v", n, exists())
	}
	client.Set(t.Context(), "k", 1, 0)
	server.FlushScripts()
	if n := value(t, client, "k"); n != 1 || exists() {
		t.Errorf("after FlushScripts k is %d, script there: %v", n, exists())
	}
}
