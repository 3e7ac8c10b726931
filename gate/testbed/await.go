package testbed

import "time"

// await asks probe again and again until it succeeds. It gives up once stop is
// closed (nil: never) or startTimeout has passed, with what probe said last.
func await(stop <-chan struct{}, probe func() error) error {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		err := probe()
		if err == nil {
			return nil
		}
		select {
		case <-stop:
			return err
		case <-deadline.C:
			return err
		case <-again.C:
		}
	}
}
