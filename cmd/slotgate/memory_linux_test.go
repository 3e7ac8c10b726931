package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestWhatOnlyTheStartNeededIsGivenBack: the program's file takes less memory, and the
// program goes on.
func TestWhatOnlyTheStartNeededIsGivenBack(t *testing.T) {
	before := ofFiles(t)
	forgetStart()
	after := ofFiles(t)
	if t.Logf("%d kB after %d", after, before); after >= before {
		t.Error("nothing was given back")
	}
}

// ofFiles is how much memory this process's mapped files take, in kB.
func ofFiles(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no RssFile in %s", status)
	}
	kB, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kB
}
