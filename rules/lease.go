package rules

import "time"

// leaseSlack is the least that a lease adds to the longest stay at the backend,
// for the decide before it and the settlement after it.
const leaseSlack = time.Second

// Attempts is how often one request may be sent to the backend, the first time
// included.
func (r *RuleConfig) Attempts() int {
	if len(r.Retry.On) == 0 {
		return 1
	}
	return r.Retry.Attempts
}

// UpstreamTimeout is how long one attempt may be at the backend.
func (r *RuleConfig) UpstreamTimeout(cfg *Config) time.Duration {
	if r.Timeout > 0 {
		return r.Timeout
	}
	return cfg.Upstream.Timeout
}

// Lease is how long a request may be awaited, from its decide on: its attempts at
// the backend with the pauses between them, and two store calls around them. A
// hold must outlive it (assumption A1).
func (r *RuleConfig) Lease(cfg *Config) time.Duration {
	attempts := time.Duration(r.Attempts())
	return attempts*(r.UpstreamTimeout(cfg)+r.Retry.MaxBackoff) + max(leaseSlack, 2*cfg.Store.Timeout)
}
