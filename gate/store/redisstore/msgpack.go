package redisstore

import (
	"encoding/binary"
	"math"
	"time"
)

// packed is a run of values as a script unpacks them all at once: MessagePack, one value
// after the other. A script gets what a call tells it in one of these: Redis would make
// an object of each argument, and the script a number of many a text.
type packed []byte

// text is one value of all parts.
func (p packed) text(parts ...string) packed {
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	switch {
	case n < 32:
		p = append(p, 0xa0|byte(n))
	case n <= math.MaxUint8:
		p = append(p, 0xd9, byte(n))
	case n <= math.MaxUint16:
		p = binary.BigEndian.AppendUint16(append(p, 0xda), uint16(n))
	default:
		p = binary.BigEndian.AppendUint32(append(p, 0xdb), uint32(n))
	}
	for _, part := range parts {
		p = append(p, part...)
	}
	return p
}

// number is exact up to 2^53, as all numbers are in Lua.
func (p packed) number(n int64) packed {
	if 0 <= n && n < 128 {
		return append(p, byte(n))
	}
	return p.float(float64(n))
}

func (p packed) float(f float64) packed {
	return binary.BigEndian.AppendUint64(append(p, 0xcb), math.Float64bits(f))
}

func (p packed) flag(b bool) packed {
	if b {
		return append(p, 0xc3)
	}
	return append(p, 0xc2)
}

// none is nil in Lua.
func (p packed) none() packed { return append(p, 0xc0) }

// list begins a table of n values, fewer than 16, which follow.
func (p packed) list(n int) packed { return append(p, 0x90|byte(n)) }

// millis rounds up, so that what is short does not become nothing.
func (p packed) millis(d time.Duration) packed { return p.number(inMillis(d)) }

// MarshalBinary is called when a command is written to its connection.
func (p *packed) MarshalBinary() ([]byte, error) { return *p, nil }
