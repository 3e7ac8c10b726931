package edge

import "golang.org/x/sys/unix"

// pollGone is the event of a peer that has closed its sending half.
const pollGone = unix.POLLRDHUP
