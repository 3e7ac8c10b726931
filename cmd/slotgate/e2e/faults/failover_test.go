package faults

import (
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
)

// failoverCells: another server takes the place of one that led.
func failoverCells(topology string) []cell {
	return []cell{
		{
			fault: "failover by kill", topology: topology, lasts: 6 * time.Second,
			strike: func(s *scene) {
				s.midst()
				old, began := s.place.masters()[0], time.Now()
				old.Kill()
				s.place.failover(old)
				s.detected = time.Since(began)
				old.RestartWithData()
			},
			outage:  afterDetection,
			mustSee: away,
		},
		{
			fault: "failover by pause", topology: topology, lasts: 6 * time.Second,
			strike:  failoverByPause,
			outage:  afterDetection,
			mustSee: away,
		},
		{
			fault: "failover by pause, min-replicas-to-write 1", topology: topology, lasts: 6 * time.Second,
			// Replicas confirm once a second: the usual lag of 10 s (max-lag) leaves a busy
			// test machine room, and a master that was replaced has no replica at all.
			options: []testbed.Option{testbed.ServerArgs("--min-replicas-to-write", "1")},
			strike:  failoverByPause,
			outage:  afterDetection,
			mustSee: away,
		},
		{
			fault: "planned failover", topology: topology, lasts: 4 * time.Second,
			strike: func(s *scene) {
				s.midst()
				began := time.Now()
				if s.place.sentinels != nil {
					s.place.sentinels.Failover()
				} else {
					s.place.cluster.Failover(s.place.masters()[0])
				}
				s.detected = time.Since(began)
			},
			outage:  afterDetection,
			mustSee: logged("the store is another one than before"),
		},
	}
}

func failoverByPause(s *scene) {
	s.midst()
	old, began := s.place.masters()[0], time.Now()
	old.Freeze()
	s.place.failover(old)
	s.detected = time.Since(began)
	s.pause(500 * time.Millisecond)
	old.Resume() // it still thinks that it leads
}

// afterDetection is what clients may see of a failover: the time until the servers
// themselves had noticed and agreed, and what a gate may take to follow. What a busy
// test machine keeps a student waiting who is due, it keeps a gate waiting several
// times: for its connection, its answer, its next try.
func afterDetection(s *scene) time.Duration {
	return s.detected + 1500*time.Millisecond + 8*s.sale.late
}
