package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// storeWarnings says what of a store's servers, and of the slots that they hold,
// endangers bookings under this configuration, each at the setting it is about.
func storeWarnings(config *rules.Config, places rules.Places, seen store.Inspection) rules.Faults {
	var found rules.Faults
	warn := func(path []string, format string, args ...any) {
		found = append(found, places.Warning(fmt.Sprintf(format, args...), path...))
	}
	addresses := []string{"store", "addresses"}

	if those := servers(seen, func(s *store.Server) bool { return s.Role == "slave" }); those != "" {
		warn(addresses, "%s is a replica, which takes no writes: name the master, or use mode sentinel", those)
	}
	if those := servers(seen, (*store.Server).Evicts); those != "" {
		warn(addresses, "%s drops keys when its memory is full, and with a slot's key its bookings: their units are sold again; set maxmemory-policy noeviction", those)
	}
	if those := servers(seen, func(s *store.Server) bool { return seen.Mode != "standalone" && s.MinReplicas == 0 }); those != "" {
		warn(addresses, "%s has no min-replicas-to-write: a master cut off from its replicas acknowledges %s of settlements that are lost when another takes over (measured: 60 of 60 lost without, 0 with); set min-replicas-to-write 1 and min-replicas-max-lag 1",
			those, cutOff(seen.Servers))
	}
	forgets := func(s *store.Server) bool {
		return seen.Mode == "standalone" && s.Persistence == "none" && s.Replicas == 0
	}
	if those := servers(seen, func(s *store.Server) bool { return forgets(s) && !s.Hidden }); those != "" {
		warn(addresses, "%s keeps nothing on disk and has no replica: after a restart of it the bookings until then are known to the backend alone; set appendonly yes", those)
	}
	if those := servers(seen, func(s *store.Server) bool { return forgets(s) && s.Hidden }); those != "" {
		warn(addresses, "%s does not show its configuration (CONFIG GET): whether it keeps anything on disk could not be looked at", those)
	}
	warnOfNames(config, seen, warn)
	return found
}

// servers lists the addresses of those that are meant.
func servers(seen store.Inspection, meant func(*store.Server) bool) string {
	var list []string
	for i := range seen.Servers {
		if meant(&seen.Servers[i]) {
			list = append(list, seen.Servers[i].Address)
		}
	}
	return strings.Join(list, ", ")
}

// cutOff is for how long a master goes on alone: in a cluster until it notices.
func cutOff(list []store.Server) string {
	longest := time.Duration(0)
	for _, s := range list {
		longest = max(longest, s.CutOff)
	}
	if longest == 0 {
		return "any number of seconds"
	}
	return fmt.Sprintf("%g seconds", longest.Seconds())
}

// warnOfNames looks for a pool, or a prefix, that had another name when the slots of
// the store came to be.
func warnOfNames(config *rules.Config, seen store.Inspection, warn func(path []string, format string, args ...any)) {
	const anew = "every slot starts anew, and its whole stock is sold again: keep the old name"
	under := map[string][]string{} // the pools that are under another prefix, and not under this
	starts := false
	for _, pool := range slices.Sorted(maps.Keys(config.Pools)) {
		switch {
		case slices.Contains(seen.Started, pool):
			continue
		case len(seen.Elsewhere[pool]) > 0:
			for _, prefix := range seen.Elsewhere[pool] {
				under[prefix] = append(under[prefix], pool)
			}
		case len(seen.Others) > 0:
			warn([]string{"pools", pool}, "no slot of this pool is in the store, which has slots of %s that no configured pool is called. If this is a pool renamed, %s",
				strings.Join(seen.Others, ", "), anew)
		}
		starts = true
	}
	for _, prefix := range slices.Sorted(maps.Keys(under)) {
		warn([]string{"store", "prefix"}, "no slot of %s is in the store under this prefix, but under %s. If the prefix was changed, %s",
			strings.Join(under[prefix], ", "), prefix, anew)
	}
	switch {
	case starts && seen.Partly:
		warn([]string{"store", "prefix"}, "not all keys of the store could be looked at: whether a pool or the prefix had another name was seen in part only")
	case !starts && len(seen.Others) > 0:
		warn([]string{"pools"}, "the store has slots of %s, and no pool is called so: they count for nothing", strings.Join(seen.Others, ", "))
	}
}
