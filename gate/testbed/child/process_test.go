package child

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestAProgramThatEndsEarlyIsReportedWithItsOutput(t *testing.T) {
	child, err := Start("sh", exec.Command("/bin/sh", "-c", "echo cannot bind; exit 3"), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	err = child.Await(t.Context(), func() error { return errors.New("no answer") })
	if err == nil || !strings.Contains(err.Error(), "cannot bind") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error is %v, want the output and the exit status", err)
	}
}

func TestTailKeepsTheLastBytes(t *testing.T) {
	var output tail
	for range 3 * maxTail / 8 {
		fmt.Fprint(&output, "earlier ")
	}
	fmt.Fprint(&output, "last")
	if got := output.String(); len(got) != maxTail || !strings.HasSuffix(got, "earlier last") {
		t.Errorf("kept %d bytes ending in %q, want %d ending in %q", len(got), got[len(got)-12:], maxTail, "earlier last")
	}
}
