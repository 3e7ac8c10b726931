package redisstore

import (
	"testing"

	"github.com/slotgate/slotgate/gate/store/storetest/interleave"
	"github.com/slotgate/slotgate/gate/testbed"
)

func TestInterleavings(t *testing.T) {
	server := testbed.Redis(t, "--databases", "1000")
	interleave.Run(t, interleaveRigs(server))
}
