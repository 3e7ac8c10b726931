package e2e

import (
	"time"
)

// refresh of quickLooks.
const refresh = 2 * time.Second

// patience is what a step may take on a busy test machine beyond what is promised.
const patience = 3 * time.Second
