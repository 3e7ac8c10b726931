package testbed

import (
	"fmt"
	"strconv"
	"strings"
)

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
