package faults

import (
	"fmt"
	"time"
)

// clusterCells are a cluster's own.
var clusterCells = []cell{
	{
		fault: "a shard lost, master and replica, back after 2 s", topology: cluster, lasts: 6 * time.Second,
		strike: func(s *scene) {
			s.midst()
			master := s.place.masters()[0]
			replica := s.place.cluster.Partner(master)
			master.Kill()
			replica.Kill()
			s.pause(2 * time.Second)
			master.RestartWithData()
			replica.RestartWithData()
			s.place.ready()
		},
		mustSee: away,
	},
	{
		fault: "resharding of every lesson", topology: cluster, lasts: 4 * time.Second,
		strike: func(s *scene) {
			s.midst()
			for _, pool := range pools {
				for lesson := 1; lesson <= lessons; lesson++ {
					s.reshard(fmt.Sprintf("{%s:%d}", pool, lesson))
				}
			}
		},
		mustSee: struck,
	},
}

// reshard moves what has a tag to another shard, key by key.
func (s *scene) reshard(tag string) {
	c := s.place.cluster
	masters := c.Masters()
	for i, m := range masters {
		if m == c.MasterOf(tag) {
			c.StartMove(masters[(i+1)%len(masters)], c.Slot(tag)).Finish()
			s.count++
			return
		}
	}
}
