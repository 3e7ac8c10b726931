package storm

import (
	"net/http"
	"strings"
	"testing"
)

func TestTwoRefusalsThatDifferByTheirIDAreTheSameAnswer(t *testing.T) {
	problem := func(body string) *Exchange {
		return &Exchange{Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: []byte(body)}
	}
	a, b := problem(`{"status":409,"request_id":"one"}`), problem(`{"status":409,"request_id":"two"}`)
	if string(twinBody(a)) != string(twinBody(b)) {
		t.Errorf("%s and %s differ", twinBody(a), twinBody(b))
	}
	free := problem(`{"status":409,"retryable":true,"request_id":"one"}`)
	if full := problem(`{"status":409,"retryable": false,"request_id":"two"}`); string(twinBody(free)) == string(free.Body) || !strings.Contains(string(twinBody(full)), `"status":409`) || strings.Contains(string(twinBody(full)), "retryable") {
		t.Errorf("%s and %s", twinBody(free), twinBody(full))
	}
	other := problem(`{"status":422,"request_id":"one"}`)
	if string(twinBody(a)) == string(twinBody(other)) {
		t.Error("other members do not count")
	}
	plain := &Exchange{Header: http.Header{}, Body: []byte(`{"request_id":"one"}`)}
	if string(twinBody(plain)) != `{"request_id":"one"}` {
		t.Error("an answer of the API was changed")
	}
}
