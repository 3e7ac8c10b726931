package decision

import "github.com/slotgate/slotgate/rules"

// Answer is a complete HTTP answer, the backend's or the gate's own.
type Answer struct {
	Status int
	Header []rules.Field // end-to-end fields, in order, Set-Cookie lines apart
	Body   []byte
}
