package testbed

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// claim is what a node says of a slot: who owns it, since which epoch.
type claim struct {
	owner string // node id
	epoch int
}

// view returns what a node says of every slot. Source: CLUSTER NODES, whose lines
// are "id address flags master ping pong epoch link slot...".
func (r *RedisServer) view() (*[slots]claim, error) {
	text, err := r.do("CLUSTER", "NODES").Text()
	if err != nil {
		return nil, err
	}
	var view [slots]claim
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 {
			return nil, fmt.Errorf("%s lists node %q", r.Addr(), line)
		}
		epoch, err := strconv.Atoi(words[6])
		if err != nil {
			return nil, fmt.Errorf("%s lists node %q: %w", r.Addr(), line, err)
		}
		for _, word := range words[8:] {
			if strings.HasPrefix(word, "[") {
				continue // on its way from or to another node
			}
			first, last, err := slotRange(word)
			if err != nil {
				return nil, fmt.Errorf("%s lists node %q: %w", r.Addr(), line, err)
			}
			for slot := first; slot <= last; slot++ {
				view[slot] = claim{owner: words[0], epoch: epoch}
			}
		}
	}
	return &view, nil
}

// slotRange reads "7" or "0-5460".
func slotRange(word string) (first, last int, err error) {
	from, to, isRange := strings.Cut(word, "-")
	if !isRange {
		to = from
	}
	if first, err = strconv.Atoi(from); err != nil {
		return 0, 0, err
	}
	if last, err = strconv.Atoi(to); err != nil {
		return 0, 0, err
	}
	if first < 0 || last >= slots {
		return 0, 0, fmt.Errorf("there is no slot %q", word)
	}
	return first, last, nil
}

// owners returns the owner of every slot. Of differing claims the one with the
// greatest epoch is right, as for the nodes themselves.
func (c *RedisCluster) owners() *[slots]*RedisServer {
	c.t.Helper()
	var owners *[slots]*RedisServer
	err := await(func() error {
		var best [slots]claim
		for _, node := range c.nodes {
			if !node.Running() {
				continue
			}
			view, err := node.view()
			if err != nil {
				return err
			}
			for slot, claim := range view {
				if best[slot].owner == "" || claim.epoch > best[slot].epoch {
					best[slot] = claim
				}
			}
		}
		var err error
		owners, err = c.resolve(&best)
		return err
	})
	if err != nil {
		c.t.Fatalf("testbed: who owns the slots: %v", err)
	}
	return owners
}

// agreedOwners returns the owner of every slot if all nodes in reach agree on it and
// on its epoch, it is in reach, and they all say that the cluster is ok. With differing
// epochs the nodes would refuse each other their votes.
func (c *RedisCluster) agreedOwners() (*[slots]*RedisServer, error) {
	var agreed *[slots]claim
	var epoch string
	for _, node := range c.nodes {
		if !node.reachable() {
			continue
		}
		info, err := node.clusterInfo()
		if err != nil {
			return nil, err
		}
		if state := info["cluster_state"]; state != "ok" {
			return nil, fmt.Errorf("%s says the cluster is in state %q", node.Addr(), state)
		}
		view, err := node.view()
		if err != nil {
			return nil, err
		}
		if agreed == nil {
			agreed, epoch = view, info["cluster_current_epoch"]
		} else if *agreed != *view || epoch != info["cluster_current_epoch"] {
			return nil, errors.New("the nodes do not agree on the owners of slots, or on epochs")
		}
	}
	if agreed == nil {
		return nil, errors.New("no node is in reach")
	}
	owners, err := c.resolve(agreed)
	if err != nil {
		return nil, err
	}
	for _, owner := range owners {
		if !owner.reachable() {
			return nil, fmt.Errorf("%s owns slots but is not in reach", owner.Addr())
		}
	}
	return owners, nil
}

// resolve turns node ids into nodes.
func (c *RedisCluster) resolve(view *[slots]claim) (*[slots]*RedisServer, error) {
	byID := make(map[string]*RedisServer, len(c.nodes))
	for i, id := range c.ids {
		byID[id] = c.nodes[i]
	}
	var owners [slots]*RedisServer
	for slot, claim := range view {
		if owners[slot] = byID[claim.owner]; owners[slot] == nil {
			return nil, fmt.Errorf("nobody known owns slot %d (%q)", slot, claim.owner)
		}
	}
	return &owners, nil
}

// clusterInfo returns the fields of CLUSTER INFO.
func (r *RedisServer) clusterInfo() (map[string]string, error) {
	return infoFields(r.do("CLUSTER", "INFO").Text())
}
