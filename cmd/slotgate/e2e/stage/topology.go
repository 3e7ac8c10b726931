package stage

import (
	"fmt"
	"strings"
)

// Topology is the Redis that a gate's store lives in.
type Topology struct {
	Mode      string   // standalone, sentinel or cluster
	Addresses []string // of the server, of the sentinels, or of some nodes
	Master    string   // its name, with sentinel
}

// Store is the store's configuration; more are further settings in flow style.
func (p Topology) Store(more ...string) string {
	settings := []string{"kind: redis", "mode: " + p.Mode, fmt.Sprintf(`addresses: ["%s"]`, strings.Join(p.Addresses, `", "`))}
	if p.Master != "" {
		settings = append(settings, "master_name: "+p.Master)
	}
	return strings.Join(append(settings, more...), ", ")
}
