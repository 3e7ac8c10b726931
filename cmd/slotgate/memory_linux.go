package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// forgetStart gives back the pages of the program's own file that only its start has needed:
// package initialisation, the configuration, the kernel's reading around each of them, half
// of what the file takes in memory. What is used again comes back by itself, from the page
// cache. Only mappings that nobody can write to, or has written to, are given back: of these
// the file holds all there is. Where that cannot be told, nothing is done.
func forgetStart() {
	program, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	var from, to uintptr // of the mapping, if it is the program's, and cannot be written to
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Text()
		var start, end uintptr
		var access string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &start, &end, &access); n == 3 {
			from, to = start, end
			if strings.Contains(access, "w") || !strings.HasSuffix(line, " "+program) {
				from, to = 0, 0
			}
		}
		if from < to && strings.HasPrefix(line, "Anonymous:") && strings.HasSuffix(line, " 0 kB") {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}
