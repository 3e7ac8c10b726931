package rules

import "testing"

func TestLogAndTracing(t *testing.T) {
	for _, row := range []string{
		"log: { access: \"\" }",
		"log: { access: \"-\" }",
		"log: { access: /var/log/slotgate/access.log }",
		"log: { access: \"logs/a b.log\", format: json }",
		"tracing: { otlp_endpoint: \"\" }",
		"tracing: { otlp_endpoint: \"http://127.0.0.1:4318\", sample: 1 }",
		"tracing: { otlp_endpoint: \"https://collector.example:4318/otel/v1/traces\", sample: 0 }",
		"tracing: { otlp_endpoint: \"http://[::1]:4318/\" }",
	} {
		t.Run(row, func(t *testing.T) { load(t, edit(t, "", row), LoadOptions{}) })
	}
	for _, row := range []struct{ text, want string }{
		{"log: { access: «\"logs/\" }", "is a directory"},
		{"log: { access: «\"a\\nb\" }", "control character"},
		{"log: { access: «\"a \" }", "a blank"},
		{"store: { journal: a }\nlog: { access: «a }", "is store.journal too"},
		{"tracing: { otlp_endpoint: «\"127.0.0.1:4318\" }", "is not a URL"},
		{"tracing: { otlp_endpoint: «collector }", "is not a URL"},
		{"tracing: { otlp_endpoint: «\"http://a b\" }", "is not a URL"},
		{"tracing: { otlp_endpoint: «\"grpc://a:4317\" }", "is for gRPC"},
		{"tracing: { otlp_endpoint: «\"collector:4317\" }", "is for gRPC"},
		{"tracing: { otlp_endpoint: «\"http://:4318\" }", "names no host"},
		{"tracing: { otlp_endpoint: «\"http://a:0\" }", "the port"},
		{"tracing: { otlp_endpoint: «\"http://a:70000\" }", "the port"},
		{"tracing: { otlp_endpoint: «\"http://a?token=hunter2\" }", "query"},
		{"tracing: { otlp_endpoint: «\"http://u:hunter2@a\" }", "password"},
		{"tracing: { sample: «1.5 }", "1"},
		{"tracing: { sample: «-0.1 }", "0"},
	} {
		t.Run(row.text, func(t *testing.T) { expectFault(t, edit(t, "", row.text), row.want, LoadOptions{}) })
	}
}
