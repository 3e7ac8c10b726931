package rules

import (
	"net/netip"
	"time"
)

// Config is the whole configuration file after defaults and cross-field checks.
// Field order follows the documentation. The tags are the schema, from which the
// loader and the JSON Schema both work: yaml is the name users write, enum the
// words that are allowed (in a list: for its entries), min and max the bounds as
// they would be written, doc what an editor shows.
type Config struct {
	Version  int                    `yaml:"version" min:"1" max:"1" doc:"of this schema"`
	Server   ServerConfig           `yaml:"server" doc:"the listener that clients reach"`
	Admin    AdminConfig            `yaml:"admin" doc:"the operators' listener"`
	Upstream UpstreamConfig         `yaml:"upstream" doc:"the backend"`
	Store    StoreConfig            `yaml:"store" doc:"where counters, holds and keys live"`
	Log      LogConfig              `yaml:"log" doc:"the process log"`
	Tracing  TracingConfig          `yaml:"tracing" doc:"OpenTelemetry spans of gated requests"`
	Pools    map[string]*PoolConfig `yaml:"pools" doc:"families of slots that share settings"`
	Rules    []*RuleConfig          `yaml:"rules" doc:"first match wins"`
}

// ServerConfig is the listener that clients reach.
type ServerConfig struct {
	Listen         string         `yaml:"listen" doc:"host:port, or unix:/path"`
	TLS            TLSConfig      `yaml:"tls" doc:"certificate of the client listener"`
	MaxBody        Size           `yaml:"max_body" min:"1KiB" doc:"a gated request is buffered up to this, 413 beyond"`
	MaxHeader      Size           `yaml:"max_header" min:"1KiB" max:"1MiB" doc:"431 beyond"`
	MaxBuffered    Size           `yaml:"max_buffered" min:"1KiB" doc:"all gated bodies and stored answers in this process at once, 503 busy beyond"`
	ReadTimeout    time.Duration  `yaml:"read_timeout" min:"1ms" doc:"a gated request whole; an ungated one: its head"`
	IdleTimeout    time.Duration  `yaml:"idle_timeout" min:"1ms" doc:"idle client connections, and between bytes of an ungated request"`
	MaxConnections int            `yaml:"max_connections" min:"1" max:"1000000" doc:"503 busy beyond"`
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies" doc:"CIDRs whose X-Forwarded-* are believed"`
	Drain          time.Duration  `yaml:"drain" doc:"on SIGTERM: stop accepting, finish what runs"`
	GateHeaders    bool           `yaml:"gate_headers" doc:"false hides every Gate-* field from clients"`
	Unmatched      string         `yaml:"unmatched" enum:"pass,reject" doc:"what happens to a request that no rule matches"`
	ForwardPath    string         `yaml:"forward_path" enum:"as_sent,normalized" doc:"which spelling of the path the backend sees"`
	CORS           CORSConfig     `yaml:"cors" doc:"browsers that may read the gate's own answers"`
}

// TLSConfig names a certificate and its key, both PEM files.
type TLSConfig struct {
	CertFile string `yaml:"cert_file" doc:"PEM file"`
	KeyFile  string `yaml:"key_file" doc:"PEM file"`
}

// CORSConfig lists the origins that may read the gate's own answers.
type CORSConfig struct {
	Origins []string `yaml:"origins" doc:"such as https://www.example.com"`
}

// AdminConfig is the operators' listener.
type AdminConfig struct {
	Listen string `yaml:"listen" doc:"host:port; a non-loopback address needs a token"`
	Token  string `yaml:"token" doc:"bearer token of the admin API"`
}

// UpstreamConfig is the backend behind the gate.
type UpstreamConfig struct {
	URL            string         `yaml:"url" doc:"the backend, such as http://127.0.0.1:9000"`
	Dialect        string         `yaml:"dialect" enum:"any,php,rack,express,spring,aspnet" doc:"how the backend reads paths and methods"`
	ConnectTimeout time.Duration  `yaml:"connect_timeout" min:"1ms" doc:"one connection attempt"`
	Timeout        time.Duration  `yaml:"timeout" min:"1ms" doc:"gated requests: whole answer; ungated: to the head, then idle"`
	MaxConnections int            `yaml:"max_connections" min:"1" max:"1000000" doc:"gated and ungated traffic have separate pools"`
	KeepAlive      time.Duration  `yaml:"keep_alive" min:"1ms" doc:"idle connections; keep it below the backend's own"`
	Breaker        BackendBreaker `yaml:"breaker" doc:"connect failures and time-outs count, 5xx do not"`
}

// BackendBreaker opens on the ratio of connect failures and time-outs.
type BackendBreaker struct {
	FailureRatio float64       `yaml:"failure_ratio" min:"0.01" max:"1" doc:"opens at this share of failures"`
	MinRequests  int           `yaml:"min_requests" min:"1" max:"1000000" doc:"and not before so many requests in the window"`
	Window       time.Duration `yaml:"window" min:"100ms" doc:"rolling window"`
	OpenFor      time.Duration `yaml:"open_for" min:"1ms" doc:"pause before the first probe"`
	Probes       int           `yaml:"probes" min:"1" max:"1000" doc:"successes that close it"`
}

// StoreConfig says where counters, holds and keys live.
type StoreConfig struct {
	Kind           string        `yaml:"kind" enum:"memory,redis" doc:"memory: one gate, state dies with it"`
	Addresses      []string      `yaml:"addresses" doc:"host:port of Redis"`
	Mode           string        `yaml:"mode" enum:"standalone,sentinel,cluster" doc:"how Redis is run"`
	MasterName     string        `yaml:"master_name" doc:"sentinel only"`
	Username       string        `yaml:"username" doc:"of Redis; empty: its default user"`
	Password       string        `yaml:"password" doc:"of Redis, such as ${REDIS_PASSWORD}"`
	DB             int           `yaml:"db" min:"0" max:"65535" doc:"database number"`
	TLS            bool          `yaml:"tls" doc:"to Redis, verified by the system's roots"`
	Prefix         string        `yaml:"prefix" doc:"start of every key in Redis"`
	Secret         string        `yaml:"secret" doc:"keys the hashes of idempotency keys; empty: made once and shared through the store"`
	EncryptKey     string        `yaml:"encrypt_key" doc:"32 bytes in base64: stored answers and subjects are AES-256-GCM"`
	EncryptOldKeys []string      `yaml:"encrypt_old_keys" doc:"still read, no longer written"`
	Timeout        time.Duration `yaml:"timeout" min:"5ms" doc:"one decision or settlement, its one retry included"`
	Breaker        StoreBreaker  `yaml:"breaker" doc:"opens after failures in a row"`
	MaxMemory      Size          `yaml:"max_memory" min:"1MiB" doc:"memory store only"`
	Journal        string        `yaml:"journal" doc:"file for settlements made while the store is away; empty: memory only"`
}

// StoreBreaker opens after so many store failures in a row.
type StoreBreaker struct {
	Failures int           `yaml:"failures" min:"1" max:"1000000" doc:"in a row"`
	OpenFor  time.Duration `yaml:"open_for" min:"1ms" doc:"with jitter"`
	Probes   int           `yaml:"probes" min:"1" max:"1000" doc:"successes that close it"`
}

// LogConfig is the process log, on standard error, and the access log: Access is a
// file, "-" or empty.
type LogConfig struct {
	Level  string `yaml:"level" enum:"debug,info,warn,error" doc:"debug has a line for each decision, info samples of them"`
	Format string `yaml:"format" enum:"text,json" doc:"of both logs; the access log of text is in the combined format"`
	Access string `yaml:"access" doc:"access log: a file, - for standard output, or empty; a reload or SIGHUP opens it again"`
}

// TracingConfig is off while OTLPEndpoint is empty.
type TracingConfig struct {
	OTLPEndpoint string  `yaml:"otlp_endpoint" doc:"collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; empty: off"`
	Sample       float64 `yaml:"sample" min:"0" max:"1" doc:"share of requests that are traced; one that comes with a traceparent follows it"`
}

// PoolConfig is what the slots of one family share.
type PoolConfig struct {
	Capacity      Capacity      `yaml:"capacity" doc:"units of a slot: a number, learned, or a truth source"`
	HoldTTL       time.Duration `yaml:"hold_ttl" min:"1s" doc:"a hold without an outcome lapses after this"`
	PendingTTL    time.Duration `yaml:"pending_ttl" doc:"a booked hold waits for a confirm rule that long"`
	Retain        time.Duration `yaml:"retain" min:"1s" doc:"idle slot state is kept this long"`
	OnePerSubject bool          `yaml:"one_per_subject" doc:"a subject may have a slot once"`
	MaxPerSubject int64         `yaml:"max_per_subject" min:"0" doc:"units one subject may hold in the whole pool, 0: no limit"`
	MaxInflight   int           `yaml:"max_inflight" min:"0" max:"1000000" doc:"requests of one slot at the backend at once, 1: a lock, 0: no limit"`
	Queue         QueueConfig   `yaml:"queue" doc:"what exceeds max_inflight waits here"`
	KeepUnknown   bool          `yaml:"keep_unknown" doc:"an unknown outcome keeps its units until truth or an operator says"`
	RejectCache   time.Duration `yaml:"reject_cache" doc:"repeats of \"sold out\" are answered from this process for so long, until a unit comes free; 0s: never"`
	OpensAt       time.Time     `yaml:"opens_at" doc:"RFC 3339: before it every booking is closed"`
}

// QueueConfig bounds the waiting room of a pool in this process.
type QueueConfig struct {
	Size int           `yaml:"size" min:"0" max:"1000000" doc:"requests of this process"`
	Wait time.Duration `yaml:"wait" doc:"503 busy beyond"`
}

// RuleConfig is one entry of rules, first match wins.
type RuleConfig struct {
	Name           string                  `yaml:"name" doc:"unique; in Gate-Rule, metrics and the admin API"`
	Match          MatchConfig             `yaml:"match" doc:"which requests; all conditions must hold"`
	Action         string                  `yaml:"action" enum:"book,cancel,confirm,guard" doc:"guard: dedupe and limits only"`
	Pool           string                  `yaml:"pool" doc:"the pool that a booking takes units from"`
	Slot           Extractors              `yaml:"slot" doc:"what is booked; a list joins its parts"`
	Subject        Extractors              `yaml:"subject" doc:"whom the units are for; a list joins its parts"`
	Units          Extractors              `yaml:"units" doc:"how many units, default 1"`
	Reference      Extractors              `yaml:"reference" doc:"the booking's id in the backend's answer"`
	Hold           Extractors              `yaml:"hold" doc:"cancel and confirm: the reference of the hold"`
	BodyAs         string                  `yaml:"body_as" enum:"auto,json,form" doc:"overrides the Content-Type label"`
	Charset        string                  `yaml:"charset" doc:"of bodies that do not say"`
	Timeout        time.Duration           `yaml:"timeout" doc:"0s: upstream.timeout"`
	Idempotency    *IdempotencyConfig      `yaml:"idempotency" doc:"dedupe by key; absent: none"`
	Limits         LimitsConfig            `yaml:"limits" doc:"rate limits"`
	Outcomes       []OutcomeConfig         `yaml:"outcomes" doc:"what the backend's answers mean, first match wins"`
	Retry          RetryConfig             `yaml:"retry" doc:"inside the gate, when the backend says it did not execute"`
	OnStoreFailure string                  `yaml:"on_store_failure" enum:"pass,local,reject" doc:"what happens while the store is away"`
	Passthrough    PassthroughConfig       `yaml:"passthrough" doc:"bounds what goes on while the store is away"`
	Answers        map[string]AnswerConfig `yaml:"answers" doc:"replaces the gate's own answers, by decision with _ for -"`
	Mode           string                  `yaml:"mode" enum:"enforce,shadow,off" doc:"shadow: decides and counts, but refuses nobody; off: proxied untouched"`
}

// MatchConfig says which requests a rule is for; all conditions must hold.
type MatchConfig struct {
	Methods []string          `yaml:"methods" doc:"such as [POST]; none: every method"`
	Path    string            `yaml:"path" doc:"such as /api/lessons/{lesson}/bookings; {rest...} takes what is left"`
	Params  map[string]string `yaml:"params" doc:"anchored RE2 by path variable"`
	Except  []string          `yaml:"except" doc:"paths that are not meant"`
	Hosts   []string          `yaml:"hosts" doc:"host names without port"`
	Headers map[string]string `yaml:"headers" doc:"exact values by header name"`
	Exact   bool              `yaml:"exact" doc:"the path as written, no other spelling of it"`
}

// IdempotencyConfig is dedupe by key; a rule without it does none.
type IdempotencyConfig struct {
	Key         Extractors    `yaml:"key" doc:"first present wins"`
	Group       string        `yaml:"group" doc:"rules with one group share keys; default: the rule's name"`
	Required    bool          `yaml:"required" doc:"no key: 400"`
	Derive      time.Duration `yaml:"derive" doc:"with no key, one is derived from subject, slot, method and fingerprint for so long, from the request and again from its answer; 0s: none"`
	Partition   Extractors    `yaml:"partition" doc:"separates keys of different clients"`
	Scope       Extractors    `yaml:"scope" doc:"who may be given a stored answer"`
	Fingerprint Fingerprint   `yaml:"fingerprint" doc:"auto, body, none or a list of extractors"`
	TTL         time.Duration `yaml:"ttl" min:"1s" doc:"a key is remembered this long"`
	InFlight    string        `yaml:"in_flight" enum:"wait,reject" doc:"while the first request with the key runs"`
	Wait        time.Duration `yaml:"wait" doc:"409 in-flight beyond"`
	Unknown     string        `yaml:"unknown" enum:"auto,retry,reject,probe" doc:"auto: retry where an outcomes line names duplicate, else reject"`
	Issue       IssueConfig   `yaml:"issue" doc:"hands out one-time request ids with the booking page; then a key source, the last unless key lists it"`
	Store       []Outcome     `yaml:"store" enum:"booked,duplicate,refused,sold_out,done" doc:"outcomes that are kept and replayed; default: booked and duplicate, of cancel and confirm done"`
	MaxResponse Size          `yaml:"max_response" doc:"beyond: kept without body"`
}

// IssueConfig hands out one-time request ids with the booking page.
type IssueConfig struct {
	On     string `yaml:"on" doc:"the page, with variables called like the parts of the slot: GET /lessons/{lesson}, GET /book?lesson={lesson}"`
	Cookie string `yaml:"cookie" doc:"such as sg_rid; each slot has its own, named by this and _ and 12 characters"`
}

// LimitsConfig holds the rate limits of a rule; nil is no limit.
type LimitsConfig struct {
	Slot    *LimitConfig `yaml:"slot" doc:"per slot, all gates together"`
	Subject *LimitConfig `yaml:"subject" doc:"per subject, all gates together"`
	Client  *LimitConfig `yaml:"client" doc:"per client address, all gates together"`
	Rule    *LimitConfig `yaml:"rule" doc:"per process"`
}

// LimitConfig is a token bucket: Rate refills it, Burst is its size.
type LimitConfig struct {
	Rate  Rate `yaml:"rate" doc:"such as 50/s, 5/10s, 100/1m"`
	Burst int  `yaml:"burst" min:"1" max:"1000000" doc:"default: the count of rate"`
}

// OutcomeConfig is one line of outcomes: answers that fit When mean Is.
type OutcomeConfig struct {
	When WhenConfig `yaml:"when" doc:"all conditions must hold"`
	Is   Outcome    `yaml:"is" enum:"booked,refused,sold_out,duplicate,busy,unknown,done" doc:"what such an answer means"`
}

// WhenConfig lists conditions on an answer; all that are present must hold.
type WhenConfig struct {
	Status []StatusRange     `yaml:"status" doc:"200, 4xx, 500-503, or a list"`
	Header map[string]string `yaml:"header" doc:"a value, or prefix*, by header name"`
	JSON   map[string]Scalar `yaml:"json" doc:"a value by JSON Pointer"`
	Text   string            `yaml:"text" doc:"a part of the body"`
}

// RetryConfig repeats a request inside the gate when the backend said it did not
// execute it. Attempts counts the first one too.
type RetryConfig struct {
	On         []Outcome     `yaml:"on" enum:"busy" doc:"such as [busy]"`
	Attempts   int           `yaml:"attempts" min:"1" max:"10" doc:"the first one included"`
	Backoff    time.Duration `yaml:"backoff" min:"1ms" doc:"doubles each time, full jitter"`
	MaxBackoff time.Duration `yaml:"max_backoff" min:"1ms" doc:"where the doubling ends"`
}

// PassthroughConfig bounds what goes on while the store is away.
type PassthroughConfig struct {
	Slot        LimitConfig `yaml:"slot" doc:"per slot and process"`
	Rule        LimitConfig `yaml:"rule" doc:"per process"`
	MaxInflight int         `yaml:"max_inflight" min:"1" max:"1000000" doc:"of the rule at the backend at once"`
	Share       float64     `yaml:"share" min:"0" max:"1" doc:"of what is left, that this gate may admit"`
}

// AnswerConfig replaces one of the gate's own answers. A zero Status keeps the
// decision's own.
type AnswerConfig struct {
	Status      int               `yaml:"status" min:"200" max:"599" doc:"default: the decision's own"`
	ContentType string            `yaml:"content_type" doc:"such as application/json"`
	Headers     map[string]string `yaml:"headers" doc:"more header fields, by name"`
	Body        string            `yaml:"body" doc:"sent as it stands"`
}
