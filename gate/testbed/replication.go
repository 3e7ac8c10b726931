package testbed

import (
	"fmt"
	"strconv"
	"strings"
)

// info returns the fields of one section of INFO.
func (r *RedisServer) info(section string) (map[string]string, error) {
	text, err := r.do("INFO", section).Text()
	if err != nil {
		return nil, err
	}
	found := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			found[name] = value
		}
	}
	return found, nil
}

// leads returns nil if the server is a master.
func (r *RedisServer) leads() error {
	info, err := r.info("replication")
	if err != nil {
		return err
	}
	if info["role"] != "master" {
		return fmt.Errorf("%s is a %s", r.Addr(), info["role"])
	}
	return nil
}

// follows returns nil if the server replicates master and has all that the
// master had when it joined.
func (r *RedisServer) follows(master *RedisServer) error {
	info, err := r.info("replication")
	if err != nil {
		return err
	}
	of := info["master_host"] + ":" + info["master_port"]
	if info["role"] != "slave" || of != master.peerAddr() || info["master_link_status"] != "up" {
		return fmt.Errorf("%s is a %s of %q, link %q; want a replica of %s",
			r.Addr(), info["role"], of, info["master_link_status"], master.peerAddr())
	}
	// The master counts a replica only once it has confirmed.
	info, err = master.info("replication")
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		replica, found := info["slave"+strconv.Itoa(i)]
		if !found {
			return fmt.Errorf("%s does not know its replica %s", master.Addr(), r.Addr())
		}
		if strings.Contains(replica, fmt.Sprintf(",port=%d,state=online,", r.port)) {
			return nil
		}
	}
}
