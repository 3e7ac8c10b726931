package testbed

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestReadReplyTakesExactlyOneValue(t *testing.T) {
	replies := []string{
		"+OK\r\n", "-ERR no\r\n", ":42\r\n", "$5\r\nhe\r\no\r\n", "$0\r\n\r\n", "$-1\r\n",
		"*-1\r\n", "*0\r\n", "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n",
		"_\r\n", ",1.5\r\n", "#t\r\n", "(12345678901234567890\r\n", "!5\r\nERR x\r\n", "=7\r\ntxt:abc\r\n",
		"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", "~2\r\n:1\r\n:2\r\n", ">2\r\n+message\r\n+hi\r\n",
		"|1\r\n+ttl\r\n:3\r\n$1\r\nv\r\n",
	}
	for _, reply := range replies {
		reader := bufio.NewReader(strings.NewReader(reply + "+next\r\n"))
		got, err := readReply(reader)
		if err != nil || string(got) != reply {
			t.Errorf("read %q (%v), want %q", got, err, reply)
			continue
		}
		if next, err := readReply(reader); err != nil || string(next) != "+next\r\n" {
			t.Errorf("after %q came %q (%v)", reply, next, err)
		}
	}
}

func TestReadRequestTakesExactlyOneCommand(t *testing.T) {
	for request, want := range map[string][]string{
		"*1\r\n$4\r\nPING\r\n":                         {"PING"},
		"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n\r\n\r\n": {"SET", "k", "\r\n"},
		"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n":               {"ECHO", ""},
		"PING\r\n":                                     {"PING"},
		"set k  v\r\n":                                 {"set", "k", "v"},
	} {
		reader := bufio.NewReader(strings.NewReader(request + "QUIT\r\n"))
		raw, args, err := readRequest(reader)
		if err != nil || string(raw) != request || !slices.Equal(args, want) {
			t.Errorf("read %q as %q (%v), want all of %q as %q", raw, args, err, request, want)
			continue
		}
		if _, next, err := readRequest(reader); err != nil || !slices.Equal(next, []string{"QUIT"}) {
			t.Errorf("after %q came %q (%v)", request, next, err)
		}
	}
}

func TestWhatIsNoRESPIsAnError(t *testing.T) {
	for _, stream := range []string{
		"?\r\n", "\r\n", "+OK\n", "$x\r\n", "$3\r\nabcd\r\n", "$-2\r\n", "$99999999999\r\n", "*1\r\n?\r\n",
	} {
		if got, err := readReply(bufio.NewReader(strings.NewReader(stream))); err == nil {
			t.Errorf("reply %q was read as %q", stream, got)
		}
	}
	for _, stream := range []string{"*x\r\n", "*1\r\n:1\r\n", "*1\r\n$x\r\n", "*1\r\n$1\r\nab\r\n", "\r\n"} {
		if got, _, err := readRequest(bufio.NewReader(strings.NewReader(stream))); err == nil {
			t.Errorf("request %q was read as %q", stream, got)
		}
	}
}

func TestAnEndInsideAValueIsUnexpected(t *testing.T) {
	if _, err := readReply(bufio.NewReader(strings.NewReader(""))); err != io.EOF {
		t.Errorf("an end between replies gives %v, want io.EOF", err)
	}
	whole := "%1\r\n+a\r\n*2\r\n:1\r\n$2\r\nhi\r\n"
	for cut := 1; cut < len(whole); cut++ {
		if _, err := readReply(bufio.NewReader(strings.NewReader(whole[:cut]))); err != io.ErrUnexpectedEOF {
			t.Errorf("an end after %q gives %v, want io.ErrUnexpectedEOF", whole[:cut], err)
		}
	}
	whole = "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n"
	for cut := 1; cut < len(whole); cut++ {
		if _, _, err := readRequest(bufio.NewReader(strings.NewReader(whole[:cut]))); err != io.ErrUnexpectedEOF {
			t.Errorf("an end after %q gives %v, want io.ErrUnexpectedEOF", whole[:cut], err)
		}
	}
}
