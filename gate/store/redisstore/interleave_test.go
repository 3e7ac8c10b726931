package redisstore

import (
	"testing"

	"github.com/slotgate/slotgate/gate/store/storetest/interleave"
	"github.com/slotgate/slotgate/gate/testbed"
)

func TestInterleavings(t *testing.T) {
	interleave.Run(t, interleaveRigs(testbed.Redis(t, "--databases", "1000")))
}

func TestInterleavingsOfAStoreThatComesBackWithOtherData(t *testing.T) {
	interleave.RunFragile(t, interleaveRigs(testbed.Redis(t, "--databases", "1000")))
}

// The steps that a call takes on a cluster are taken here on one server: what they do
// does not depend on where their keys are.
func TestInterleavingsOfStepsOnACluster(t *testing.T) {
	interleave.RunStepwise(t, shardedRigs(testbed.Redis(t, "--databases", "1000")))
}
