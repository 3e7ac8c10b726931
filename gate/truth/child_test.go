package truth

// childRole is what this test binary does when a test has started it as another
// process, nil in the tests' own.
func childRole() func() { return nil }
