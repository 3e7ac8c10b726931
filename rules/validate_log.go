package rules

import (
	"net/url"
	"strings"
)

func (v *validator) log(p place) {
	access := v.cfg.Log.Access
	at := p.field("access")
	switch {
	case access == "" || access == "-":
	case strings.ContainsFunc(access, func(r rune) bool { return r < ' ' || r == 0x7f }):
		at.faultf("holds a line end or another control character, which no file name should")
	case strings.Trim(access, " ") != access:
		at.faultf("%q begins or ends with a blank: remove it", access)
	case strings.HasSuffix(access, "/"):
		at.faultf("%q is a directory: write the file in it, such as %saccess.log, - for standard output, or nothing for no access log", access, access)
	case access == v.cfg.Store.Journal:
		at.faultf("%q is store.journal too: give the access log a file of its own", access)
	}
}

// tracing never shows the endpoint: it may hold a token by mistake.
func (v *validator) tracing(p place) {
	raw := v.cfg.Tracing.OTLPEndpoint
	if raw == "" {
		return
	}
	at := p.field("otlp_endpoint")
	u, err := url.Parse(raw)
	switch {
	case err == nil && strings.HasPrefix(raw, "grpc://"), err == nil && u.Scheme != "http" && u.Scheme != "https" && strings.HasSuffix(raw, ":4317"):
		at.faultf("is for gRPC: spans are sent as OTLP over HTTP, which collectors take on port 4318, such as http://127.0.0.1:4318")
	case err != nil || strings.ContainsAny(raw, " \t\r\n") || u.Scheme != "http" && u.Scheme != "https":
		at.faultf("is not a URL of a collector: write http:// or https://, host and port, such as http://127.0.0.1:4318")
	case u.User != nil:
		at.faultf("must not hold a user name or password: have a collector beside the gate send spans to where they are needed")
	case u.Hostname() == "" || !isHost(u.Hostname()):
		at.faultf("names no host: write the collector's address, such as http://127.0.0.1:4318")
	case u.Port() != "" && (!isPort(u.Port()) || u.Port() == "0") || strings.HasSuffix(u.Host, ":"):
		at.faultf("the port must be a number from 1 to 65535")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#"):
		at.faultf("must not hold a query or fragment: write scheme, host, port and perhaps a path")
	}
}
