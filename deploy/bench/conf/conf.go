// Package conf holds what configures the programs of a comparison, as they read it.
// The .tmpl files are text/template; Settings is what they are filled in with.
package conf

import _ "embed"

// Admitted is what token.lua returns for a booking that may go on.
const Admitted = 1

var (
	//go:embed token.lua
	Token string // the script of the peers that ask Redis
	//go:embed journey_decide.lua
	JourneyDecide string // the scripts of the peer that writes what the gate does
	//go:embed journey_settle.lua
	JourneySettle string
	//go:embed load.lua
	Load string // what wrk sends
	//go:embed gate.yaml.tmpl
	Gate string
	//go:embed nginx.conf.tmpl
	Nginx string
	//go:embed nginx_tokens.lua
	NginxTokens string
	//go:embed nginx_journey.lua
	NginxJourney string
	//go:embed nginx_limit.conf.tmpl
	NginxLimit string
	//go:embed haproxy.cfg.tmpl
	HAProxy string
)

// Settings fill in the templates.
type Settings struct {
	Dir     string // for files of the program
	Listen  string // host:port
	Admin   string // host:port of the gate's admin API
	Backend string // host:port
	Redis   string // host:port; "" without
	Host    string // of Redis
	Port    string // of Redis
	Token   string // SHA1 of token.lua
	Decide  string // SHA1 of journey_decide.lua
	Settle  string // SHA1 of journey_settle.lua
	Settles bool   // nginx asks those two
	Modules string // folder of nginx's modules
	Workers int

	Capacity     int    // units of each slot
	RejectCache  string // duration; "" is none
	StoreTimeout string // duration, with Redis
}
