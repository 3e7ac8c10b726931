package redisstore

import (
	"slices"
	"testing"

	"github.com/slotgate/slotgate/luascripts"
)

// What a call is made of may be used again when nothing of it is on its way any more.
func TestACallThatWasSentTwiceIsNotUsedAgain(t *testing.T) {
	for _, resent := range []bool{false, true} {
		c := newCall("decide", luascripts.Decide)
		c.told, c.keys, c.resent = c.told.text("student"), append(c.keys, "slot"), resent
		keys, told := c.keys, slices.Clone(c.told)
		c.free()
		if kept := keys[0] == "slot" && slices.Equal(c.told, told); kept != resent {
			t.Errorf("sent twice %t: kept %t", resent, kept)
		}
	}
}
