package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/store"
)

// TestCheckKnowsTheRoomOfALearnedSlot as the stores have it.
func TestCheckKnowsTheRoomOfALearnedSlot(t *testing.T) {
	for inflight, warns := range map[int]bool{store.LearnedInflight: false, store.LearnedInflight + 1: true} {
		file := filepath.Join(t.TempDir(), "gate.yaml")
		text := fmt.Sprintf(`
upstream: { url: "http://127.0.0.1:9" }
store: { kind: memory }
pools: { lessons: { capacity: learned, max_inflight: %d } }
rules: [{ name: book, match: { path: "/lessons/{lesson}" }, pool: lessons, slot: path:lesson }]
`, inflight)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		status := checkCommand([]string{"-c", file}, nil, &out, &errs)
		if got := strings.Contains(out.String(), "pools.lessons.max_inflight: has no effect: "); status != checkUsable || got != warns {
			t.Errorf("max_inflight %d: exit %d\n%s%s", inflight, status, &out, &errs)
		}
	}
}
