// Package dashboard drives the dashboard with a real browser, through Playwright, while a
// storm of bookings runs through the gate that serves it. The scenes are in drive/, one
// file each; what they saw is held against what the storm's clients were told, the
// database and the admin API.
//
//	SLOTGATE_SCREENSHOTS=deploy/screenshots go test ./cmd/slotgate/e2e/dashboard
//
// keeps pictures of it; a path that is not absolute is taken from the top of the
// repository.
package dashboard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// program is the slotgate binary under test.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "slotgate-dashboard-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "slotgate")
	args := []string{"build", "-o", program}
	if stage.Race { // the program is built like its tests
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "github.com/slotgate/slotgate/cmd/slotgate")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "go build:", err)
		return 1
	}
	return testbed.SharedPostgres(m).Run()
}
