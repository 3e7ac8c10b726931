// Command slotgate is an admission gate in front of a booking API.
package main

import "os"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		relaxTimers()
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
