package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
)

// Redis reads what is packed as what it was.
func TestPackedIsReadByScripts(t *testing.T) {
	const source = `local list = {}
for i = 1, select('#', cmsgpack.unpack(ARGV[1])) do
  local value = select(i, cmsgpack.unpack(ARGV[1]))
  local text = type(value) == 'number' and string.format('%.17g', value) or type(value) == 'table' and table.concat(value, ',')
  list[i] = type(value) .. ' ' .. (text or tostring(value))
end
return list`
	var all packed
	var want []string
	for _, n := range []int{0, 1, 31, 32, 255, 256, 65535, 65536} {
		text := strings.Repeat("é\x00|", n)[:n]
		all, want = all.text(text), append(want, "string "+text)
	}
	for _, n := range []int64{0, 1, 127, 128, 255, 256, -1, -2, maxUnits, time.Now().UnixMilli(), 1<<53 - 1} {
		all, want = all.number(n), append(want, fmt.Sprint("number ", n))
	}
	all, want = all.float(0.125), append(want, "number 0.125")
	all, want = all.millis(1500*time.Microsecond), append(want, "number 2")
	all, want = all.flag(true).flag(false), append(want, "boolean true", "boolean false")
	all, want = all.list(2).number(7).text("é").none().list(0), append(want, "table 7,é", "nil nil", "table ")
	got, err := rawClient(t, testbed.Redis(t).Addr()).Eval(t.Context(), source, nil, []byte(all)).StringSlice()
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%.300q\nwant\n%.300q", err, got, want)
	}
}
