package stage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/slotgate/slotgate/gate/testbed"
)

// program is the slotgate binary under test.
var program string

// Main builds the program, runs the tests with a shared PostgreSQL server and
// returns the exit status:
//
//	func TestMain(m *testing.M) { os.Exit(stage.Main(m)) }
func Main(m testbed.M) int {
	dir, err := os.MkdirTemp("", "slotgate-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "slotgate")
	args := []string{"build"}
	if Race { // the program is built like its tests
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "-o", program, "github.com/slotgate/slotgate/cmd/slotgate")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "stage: go build:", err)
		return 1
	}
	return testbed.SharedPostgres(m).Run()
}
