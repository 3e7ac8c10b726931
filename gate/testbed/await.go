package testbed

import (
	"context"
	"os/exec"
	"syscall"
	"time"

	"github.com/slotgate/slotgate/gate/testbed/child"
)

// startTimeout is how long a program may take until it answers. Generous: it
// only decides how long a broken test waits, never whether a good one passes.
const startTimeout = 60 * time.Second

// await asks probe until it succeeds, for startTimeout.
func await(probe func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return child.Until(ctx, probe)
}

// awaitReady does so until p answers, or ends.
func awaitReady(p *child.Process, probe func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return p.Await(ctx, probe)
}

// startChild starts cmd under the name of its program.
func startChild(cmd *exec.Cmd, death syscall.Signal) (*child.Process, error) {
	return child.Start(cmd.Path, cmd, death)
}
