package rules

import (
	"net/netip"
	"time"
)

// Config is the whole configuration file after defaults and cross-field checks.
// Field order follows the documentation; yaml tags are the names users write.
type Config struct {
	Version  int                    `yaml:"version"`
	Server   ServerConfig           `yaml:"server"`
	Admin    AdminConfig            `yaml:"admin"`
	Upstream UpstreamConfig         `yaml:"upstream"`
	Store    StoreConfig            `yaml:"store"`
	Log      LogConfig              `yaml:"log"`
	Tracing  TracingConfig          `yaml:"tracing"`
	Pools    map[string]*PoolConfig `yaml:"pools"`
	Rules    []*RuleConfig          `yaml:"rules"`
}

// ServerConfig is the listener that clients reach.
type ServerConfig struct {
	Listen         string         `yaml:"listen"`
	TLS            TLSConfig      `yaml:"tls"`
	MaxBody        Size           `yaml:"max_body"`
	MaxHeader      Size           `yaml:"max_header"`
	MaxBuffered    Size           `yaml:"max_buffered"`
	ReadTimeout    time.Duration  `yaml:"read_timeout"`
	IdleTimeout    time.Duration  `yaml:"idle_timeout"`
	MaxConnections int            `yaml:"max_connections"`
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	Drain          time.Duration  `yaml:"drain"`
	GateHeaders    bool           `yaml:"gate_headers"`
	Unmatched      string         `yaml:"unmatched"`    // pass | reject
	ForwardPath    string         `yaml:"forward_path"` // as_sent | normalized
	CORS           CORSConfig     `yaml:"cors"`
}

// TLSConfig names a certificate and its key, both PEM files.
type TLSConfig struct {
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// CORSConfig lists the origins that may read the gate's own answers.
type CORSConfig struct {
	Origins []string `yaml:"origins"`
}

// AdminConfig is the operators' listener.
type AdminConfig struct {
	Listen string `yaml:"listen"`
	Token  string `yaml:"token"`
}

// UpstreamConfig is the backend behind the gate.
type UpstreamConfig struct {
	URL            string         `yaml:"url"`
	Dialect        string         `yaml:"dialect"` // any | php | rack | express | spring | aspnet
	ConnectTimeout time.Duration  `yaml:"connect_timeout"`
	Timeout        time.Duration  `yaml:"timeout"`
	MaxConnections int            `yaml:"max_connections"`
	KeepAlive      time.Duration  `yaml:"keep_alive"`
	Breaker        BackendBreaker `yaml:"breaker"`
}

// BackendBreaker opens on the ratio of connect failures and time-outs.
type BackendBreaker struct {
	FailureRatio float64       `yaml:"failure_ratio"`
	MinRequests  int           `yaml:"min_requests"`
	Window       time.Duration `yaml:"window"`
	OpenFor      time.Duration `yaml:"open_for"`
	Probes       int           `yaml:"probes"`
}

// StoreConfig says where counters, holds and keys live.
type StoreConfig struct {
	Kind           string        `yaml:"kind"` // memory | redis
	Addresses      []string      `yaml:"addresses"`
	Mode           string        `yaml:"mode"` // standalone | sentinel | cluster
	MasterName     string        `yaml:"master_name"`
	Username       string        `yaml:"username"`
	Password       string        `yaml:"password"`
	DB             int           `yaml:"db"`
	TLS            bool          `yaml:"tls"`
	Prefix         string        `yaml:"prefix"`
	Secret         string        `yaml:"secret"`
	EncryptKey     string        `yaml:"encrypt_key"`
	EncryptOldKeys []string      `yaml:"encrypt_old_keys"`
	Timeout        time.Duration `yaml:"timeout"`
	Breaker        StoreBreaker  `yaml:"breaker"`
	MaxMemory      Size          `yaml:"max_memory"`
	Journal        string        `yaml:"journal"`
}

// StoreBreaker opens after so many store failures in a row.
type StoreBreaker struct {
	Failures int           `yaml:"failures"`
	OpenFor  time.Duration `yaml:"open_for"`
	Probes   int           `yaml:"probes"`
}

// LogConfig is the process log; Access is a file, "-" or empty.
type LogConfig struct {
	Level  string `yaml:"level"`  // debug | info | warn | error
	Format string `yaml:"format"` // text | json
	Access string `yaml:"access"`
}

// TracingConfig is off while OTLPEndpoint is empty.
type TracingConfig struct {
	OTLPEndpoint string  `yaml:"otlp_endpoint"`
	Sample       float64 `yaml:"sample"`
}

// PoolConfig is what the slots of one family share.
type PoolConfig struct {
	Capacity      Capacity      `yaml:"capacity"`
	HoldTTL       time.Duration `yaml:"hold_ttl"`
	PendingTTL    time.Duration `yaml:"pending_ttl"`
	Retain        time.Duration `yaml:"retain"`
	OnePerSubject bool          `yaml:"one_per_subject"`
	MaxPerSubject int64         `yaml:"max_per_subject"`
	MaxInflight   int           `yaml:"max_inflight"`
	Queue         QueueConfig   `yaml:"queue"`
	KeepUnknown   bool          `yaml:"keep_unknown"`
	RejectCache   time.Duration `yaml:"reject_cache"`
	OpensAt       time.Time     `yaml:"opens_at"` // zero: open
}

// QueueConfig bounds the waiting room of a pool in this process.
type QueueConfig struct {
	Size int           `yaml:"size"`
	Wait time.Duration `yaml:"wait"`
}

// RuleConfig is one entry of rules, first match wins.
type RuleConfig struct {
	Name           string                  `yaml:"name"`
	Match          MatchConfig             `yaml:"match"`
	Action         string                  `yaml:"action"` // book | cancel | confirm | guard
	Pool           string                  `yaml:"pool"`
	Slot           Extractors              `yaml:"slot"`
	Subject        Extractors              `yaml:"subject"`
	Units          Extractors              `yaml:"units"` // at most one
	Reference      Extractors              `yaml:"reference"`
	Hold           Extractors              `yaml:"hold"`
	BodyAs         string                  `yaml:"body_as"` // auto | json | form
	Charset        string                  `yaml:"charset"`
	Timeout        time.Duration           `yaml:"timeout"` // 0: upstream.timeout
	Idempotency    *IdempotencyConfig      `yaml:"idempotency"`
	Limits         LimitsConfig            `yaml:"limits"`
	Outcomes       []OutcomeConfig         `yaml:"outcomes"`
	Retry          RetryConfig             `yaml:"retry"`
	OnStoreFailure string                  `yaml:"on_store_failure"` // pass | local | reject
	Passthrough    PassthroughConfig       `yaml:"passthrough"`
	Answers        map[string]AnswerConfig `yaml:"answers"`
	Mode           string                  `yaml:"mode"` // enforce | shadow | off
}

// MatchConfig says which requests a rule is for; all conditions must hold.
type MatchConfig struct {
	Methods []string          `yaml:"methods"`
	Path    string            `yaml:"path"`
	Params  map[string]string `yaml:"params"` // anchored RE2 by path variable
	Except  []string          `yaml:"except"`
	Hosts   []string          `yaml:"hosts"`
	Headers map[string]string `yaml:"headers"`
	Exact   bool              `yaml:"exact"`
}

// IdempotencyConfig is dedupe by key; a rule without it does none.
type IdempotencyConfig struct {
	Key         Extractors    `yaml:"key"`
	Group       string        `yaml:"group"`
	Required    bool          `yaml:"required"`
	Derive      time.Duration `yaml:"derive"`
	Partition   Extractors    `yaml:"partition"`
	Scope       Extractors    `yaml:"scope"`
	Fingerprint Fingerprint   `yaml:"fingerprint"`
	TTL         time.Duration `yaml:"ttl"`
	InFlight    string        `yaml:"in_flight"` // wait | reject
	Wait        time.Duration `yaml:"wait"`
	Unknown     string        `yaml:"unknown"` // auto | retry | reject | probe
	Issue       IssueConfig   `yaml:"issue"`
	Store       []Outcome     `yaml:"store"`
	MaxResponse Size          `yaml:"max_response"`
}

// IssueConfig hands out one-time request ids with the booking page.
type IssueConfig struct {
	On     string `yaml:"on"`
	Cookie string `yaml:"cookie"`
}

// LimitsConfig holds the rate limits of a rule; nil is no limit.
type LimitsConfig struct {
	Slot    *LimitConfig `yaml:"slot"`
	Subject *LimitConfig `yaml:"subject"`
	Client  *LimitConfig `yaml:"client"`
	Rule    *LimitConfig `yaml:"rule"`
}

// LimitConfig is a token bucket: Rate refills it, Burst is its size.
type LimitConfig struct {
	Rate  Rate `yaml:"rate"`
	Burst int  `yaml:"burst"`
}

// OutcomeConfig is one line of outcomes: answers that fit When mean Is.
type OutcomeConfig struct {
	When WhenConfig `yaml:"when"`
	Is   Outcome    `yaml:"is"`
}

// WhenConfig lists conditions on an answer; all that are present must hold.
type WhenConfig struct {
	Status []StatusRange     `yaml:"status"` // one item or a list
	Header map[string]string `yaml:"header"` // value, or prefix*
	JSON   map[string]Scalar `yaml:"json"`   // by JSON Pointer
	Text   string            `yaml:"text"`   // substring of the body
}

// RetryConfig repeats a request inside the gate when the backend said it did not
// execute it. Attempts counts the first one too.
type RetryConfig struct {
	On         []Outcome     `yaml:"on"`
	Attempts   int           `yaml:"attempts"`
	Backoff    time.Duration `yaml:"backoff"`
	MaxBackoff time.Duration `yaml:"max_backoff"`
}

// PassthroughConfig bounds what goes on while the store is away.
type PassthroughConfig struct {
	Slot        LimitConfig `yaml:"slot"`
	Rule        LimitConfig `yaml:"rule"`
	MaxInflight int         `yaml:"max_inflight"`
	Share       float64     `yaml:"share"`
}

// AnswerConfig replaces one of the gate's own answers. A zero Status keeps the
// decision's own.
type AnswerConfig struct {
	Status      int               `yaml:"status"`
	ContentType string            `yaml:"content_type"`
	Headers     map[string]string `yaml:"headers"`
	Body        string            `yaml:"body"`
}
