// Package e2e holds the tests that run the real slotgate program in front of the
// sample legacy API, with a real Redis and PostgreSQL. Each shows one line of
// what the product promises.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/slotgate/slotgate/gate/testbed"
)

// program is the slotgate binary under test.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "slotgate-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "slotgate")
	args := append([]string{"build"}, buildFlags...)
	build := exec.Command("go", append(args, "-o", program, "github.com/slotgate/slotgate/cmd/slotgate")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: go build:", err)
		return 1
	}
	return testbed.SharedPostgres(m).Run()
}
