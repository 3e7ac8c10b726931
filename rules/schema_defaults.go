package rules

import (
	"reflect"
	"slices"
	"time"
)

// defaultConfig is what a file that says nothing means. Pools, rules and
// idempotency blocks have defaults of their own, below.
func defaultConfig() *Config {
	return &Config{
		Version: 1,
		Server: ServerConfig{
			Listen:         ":8080",
			MaxBody:        1 << 20,
			MaxHeader:      16 << 10,
			MaxBuffered:    256 << 20,
			ReadTimeout:    10 * time.Second,
			IdleTimeout:    60 * time.Second,
			MaxConnections: 16384,
			Drain:          15 * time.Second,
			GateHeaders:    true,
			Unmatched:      "pass",
			ForwardPath:    "as_sent",
		},
		Admin: AdminConfig{Listen: "127.0.0.1:9901"},
		Upstream: UpstreamConfig{
			Dialect:        "any",
			ConnectTimeout: time.Second,
			Timeout:        5 * time.Second,
			MaxConnections: 512,
			KeepAlive:      4 * time.Second,
			Breaker: BackendBreaker{
				FailureRatio: 0.5,
				MinRequests:  20,
				Window:       10 * time.Second,
				OpenFor:      2 * time.Second,
				Probes:       3,
			},
		},
		Store: StoreConfig{
			Kind:      "memory",
			Addresses: []string{"127.0.0.1:6379"},
			Mode:      "standalone",
			Prefix:    "slotgate",
			Timeout:   250 * time.Millisecond,
			Breaker:   StoreBreaker{Failures: 5, OpenFor: time.Second, Probes: 1},
			MaxMemory: 512 << 20,
		},
		Log:     LogConfig{Level: "info", Format: "text"},
		Tracing: TracingConfig{Sample: 0.01},
	}
}

func defaultPool() *PoolConfig {
	return &PoolConfig{
		RejectCache: 250 * time.Millisecond,
		HoldTTL:     30 * time.Second,
		Retain:      30 * day,
		Queue:       QueueConfig{Size: 256, Wait: 2 * time.Second},
	}
}

func defaultTruth() *TruthConfig {
	return &TruthConfig{
		Refresh: 60 * time.Second,
		Hot:     5 * time.Second,
		MaxRate: Rate{50, time.Second},
		Lag:     2 * time.Second,
		Timeout: 2 * time.Second,
	}
}

func defaultRule() *RuleConfig {
	return &RuleConfig{
		Action:         "book",
		BodyAs:         "auto",
		Charset:        "utf-8",
		Retry:          RetryConfig{Attempts: 3, Backoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond},
		OnStoreFailure: "pass",
		Passthrough: PassthroughConfig{
			Slot:        LimitConfig{Rate: Rate{5, time.Second}, Burst: 10},
			Rule:        LimitConfig{Rate: Rate{200, time.Second}, Burst: 200},
			MaxInflight: 64,
			Share:       1,
		},
		Mode: "enforce",
	}
}

// defaultIdempotency is for a rule with an idempotency block; without the block
// there is no dedupe by key. The defaults of group and store follow from the rule.
func defaultIdempotency() *IdempotencyConfig {
	return &IdempotencyConfig{
		Key:         slices.Clone(defaultKey),
		Scope:       slices.Clone(defaultScope),
		TTL:         24 * time.Hour,
		InFlight:    "wait",
		Wait:        5 * time.Second,
		Unknown:     "auto",
		MaxResponse: 256 << 10,
	}
}

// newDefault is a pointer to a value of a struct of the schema with its defaults.
func newDefault(t reflect.Type) reflect.Value {
	switch t {
	case reflect.TypeFor[PoolConfig]():
		return reflect.ValueOf(defaultPool())
	case reflect.TypeFor[SQLSource]():
		return reflect.ValueOf(&SQLSource{Means: MeansRemaining})
	case reflect.TypeFor[HTTPSource]():
		return reflect.ValueOf(&HTTPSource{Means: MeansRemaining})
	case reflect.TypeFor[RuleConfig]():
		return reflect.ValueOf(defaultRule())
	case reflect.TypeFor[IdempotencyConfig]():
		return reflect.ValueOf(defaultIdempotency())
	}
	return reflect.New(t)
}

// resolve fills in the defaults that follow from other fields.
func resolve(cfg *Config) {
	for _, r := range cfg.Rules {
		if idem := r.Idempotency; idem != nil {
			if idem.Group == "" {
				idem.Group = r.Name
			}
			if cookie := idem.Issue.Cookie; cookie != "" && !idem.takes(cookie) {
				idem.Key = append(slices.Clone(idem.Key), Extractor{Source: FromCookie, Name: cookie})
			}
			if idem.Store == nil {
				idem.Store = r.defaultStore()
			}
			if idem.Unknown == "auto" {
				idem.Unknown = "reject"
				if slices.ContainsFunc(r.Outcomes, func(o OutcomeConfig) bool { return o.Is == Duplicate }) {
					idem.Unknown = "retry"
				}
			}
		}
		for _, limit := range []*LimitConfig{r.Limits.Slot, r.Limits.Subject, r.Limits.Client, r.Limits.Rule} {
			if limit != nil && limit.Burst == 0 {
				limit.Burst = limit.Rate.Count
			}
		}
	}
}
