package dashboard

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// root is the top of the repository.
const root = "../../../.."

// message is a line that the driver writes. One of its members is set.
type message struct {
	Step  string          // a step that has ended
	Error string          // what went wrong in it
	Took  int             // milliseconds
	Ask   string          // a question, to be answered in one line
	Value json.RawMessage // of a question
}

// drive runs drive/main.mjs to its end. Each of its steps becomes a subtest; answer is
// called for each question.
func drive(ctx context.Context, t *testing.T, settings map[string]any, answer func(ask string, value json.RawMessage) any) (steps []string) {
	t.Helper()
	node := find(t, "node", "nodejs")
	settings["chromium"] = find(t, "chromium", "chromium")
	settings["tools"] = tools(t)
	settings["root"] = os.Geteuid() == 0 // Chromium's sandbox does not work for root
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, node, "drive/main.mjs", string(text))
	cmd.Stderr = os.Stderr
	// With its browser, should this process die first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if errIn != nil || errOut != nil {
		t.Fatal(errIn, errOut)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Errorf("the driver wrote %q: %v", lines.Text(), err)
			continue
		}
		if m.Ask != "" {
			reply, err := json.Marshal(answer(m.Ask, m.Value))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(in, string(reply)+"\n"); err != nil {
				t.Errorf("the driver does not listen: %v", err)
			}
			continue
		}
		steps = append(steps, m.Step)
		t.Run(m.Step, func(t *testing.T) {
			t.Logf("took %d ms", m.Took)
			if m.Error != "" {
				t.Error(m.Error)
			}
		})
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the driver ended: %v", err)
	}
	return steps
}

func find(t *testing.T, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is not installed; run: apt-get install -y %s", program, debian)
	}
	return path
}

// tools is where .ci/needs has installed what .ci/tools/package-lock.json pins.
func tools(t *testing.T) string {
	t.Helper()
	pinned, err := os.ReadFile(filepath.Join(root, ".ci/tools/package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "slotgate", fmt.Sprintf("tools-%x", sha256.Sum256(pinned))[:len("tools-")+12])
	if _, err := os.Stat(filepath.Join(folder, "node_modules/playwright-core")); err != nil {
		t.Fatalf("playwright-core is not installed; run: make needs (%v)", err)
	}
	return folder
}

// screenshots is where pictures are kept; "" nowhere.
func screenshots(t *testing.T) string {
	folder := os.Getenv("SLOTGATE_SCREENSHOTS")
	if folder != "" && !strings.HasPrefix(folder, "/") {
		folder = filepath.Join(root, folder)
	}
	if folder != "" {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
