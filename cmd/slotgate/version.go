package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version and commit are set by the release build (-ldflags "-X main.version=…");
// otherwise what the Go toolchain recorded is used.
var version, commit string

const versionHelp = `Usage: slotgate version

Prints version, commit and Go version.

Example:
  slotgate version
`

func versionCommand(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	operands, err := parse(newFlags("version"), args)
	if err == nil && len(operands) > 0 {
		err = fmt.Errorf("unexpected argument %q", operands[0])
	}
	if err != nil {
		return usageFault("version", versionHelp, err, 1, stdout, stderr)
	}
	build := readBuild()
	fmt.Fprintf(stdout, "slotgate %s\ncommit %s\n%s %s/%s\n", build.version, build.commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return 0
}

type buildInfo struct{ version, commit string }

func readBuild() buildInfo {
	build := buildInfo{version: version, commit: commit}
	if info, ok := debug.ReadBuildInfo(); ok {
		build.version = cmp.Or(build.version, info.Main.Version)
		revision, modified := "", ""
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				revision = setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				modified = " (modified)"
			}
		}
		if build.commit == "" && revision != "" {
			build.commit = revision + modified
		}
	}
	build.version = cmp.Or(build.version, "(devel)")
	build.commit = cmp.Or(build.commit, "unknown")
	return build
}
