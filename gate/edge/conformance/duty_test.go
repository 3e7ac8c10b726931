package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// must is what this gate has to do with a case, whether it gates it or not. The
// table says what it does; these keep -update from writing a fault into it.
type must func(c *conformanceCase, o *observation) error

// refuse: an error answer, the connection ends, and the backend sees nothing.
func refuse(status int) must {
	return func(_ *conformanceCase, o *observation) error {
		switch {
		case len(o.seen) > 0 || o.after || o.cut || o.leftover != "":
			return errors.New("something reached the backend")
		case len(o.answers) != 1 || o.answers[0].status() != status:
			return fmt.Errorf("not answered with %d alone", status)
		case !o.ended:
			return errors.New("the connection is not closed")
		}
		return nil
	}
}

// refuseOne: an error answer to a request that was understood, and the connection
// goes on.
func refuseOne(status int) must {
	return func(_ *conformanceCase, o *observation) error {
		if len(o.seen) > 0 || !o.after || len(o.answers) != 2 || o.answers[0].status() != status {
			return fmt.Errorf("not answered with %d", status)
		}
		return inStep(o, 0)
	}
}

// finalRecipient: the request is answered here, and the connection goes on.
func finalRecipient(_ *conformanceCase, o *observation) error {
	if len(o.seen) > 0 {
		return errors.New("it is forwarded")
	}
	if !o.after || len(o.answers) != 2 {
		return errors.New("the connection does not go on")
	}
	return inStep(o, 0)
}

// dated: the answer comes with a Date.
func dated(_ *conformanceCase, o *observation) error {
	if len(o.answers[0].values("Date")) != 1 {
		return errors.New("no Date")
	}
	return nil
}

// refuseBody: as refuse, but the head may have reached the backend before the
// fault in the body was there to be seen; the backend then sees it cut.
func refuseBody(status int) must {
	return func(c *conformanceCase, o *observation) error {
		o.cut = false
		return refuse(status)(c, o)
	}
}

// cutToo: of a request that is cut, the backend sees no whole one.
func cutToo(_ *conformanceCase, o *observation) error {
	if len(o.seen) > 0 || !o.ended {
		return errors.New("the backend takes it for a whole request")
	}
	return nil
}

// pass: the backend reads the requests that were sent, with the same body, each
// once, framed in one way; each answer goes to its own request. The fields named
// are not sent on; all others are, with their values.
func pass(without ...string) must {
	return func(c *conformanceCase, o *observation) error {
		sent := readRequests(c.raw)
		if len(o.seen) != len(sent) || o.leftover != "" || o.cut || !o.ended {
			return errors.New("other requests reached the backend")
		}
		for i, got := range o.seen {
			if err := arrived(sent[i], got, without); err != nil {
				return err
			}
		}
		if !c.upgrade && o.desync() {
			return errors.New("answers are for other requests")
		}
		return nil
	}
}

// passAs is pass for a single request whose target changes.
func passAs(target string, without ...string) must {
	return func(c *conformanceCase, o *observation) error {
		sent := *c
		sent.raw = strings.Replace(c.raw, readRequests(c.raw)[0].target(), target, 1)
		return pass(without...)(&sent, o)
	}
}

func arrived(sent, got *message, without []string) error {
	if got.method() != sent.method() || got.target() != sent.target() || word(got.line, 2) != "HTTP/1.1" {
		return fmt.Errorf("%q arrived as %q", sent.line, got.line)
	}
	if got.body != sent.body || inDoubt(got) {
		return fmt.Errorf("the body arrived as %q, the head as %q", got.body, got.fields)
	}
	if hosts := got.values("Host"); len(hosts) != 1 {
		return fmt.Errorf("Host arrived as %q", hosts)
	}
	for _, name := range without {
		if len(got.values(name)) > 0 {
			return fmt.Errorf("%s arrived", name)
		}
	}
	for _, f := range sent.fields {
		switch {
		case slices.ContainsFunc(without, func(name string) bool { return strings.EqualFold(name, f.name) }),
			strings.EqualFold(f.name, "Transfer-Encoding"), strings.EqualFold(f.name, "Connection"),
			strings.EqualFold(f.name, "Trailer"):
		case !slices.Equal(got.values(f.name), sent.values(f.name)):
			return fmt.Errorf("%s arrived as %q", f.name, got.values(f.name))
		}
	}
	return nil
}

// relay: the client gets the final answer that the backend gave, with its fields
// but for those named, its body and its end; the next request gets its own.
func relay(without ...string) must {
	return func(c *conformanceCase, o *observation) error {
		given, _, at := givenAnswer(c)
		if at >= len(o.answers) || !o.ended {
			return errors.New("no answer")
		}
		got := o.answers[at]
		if got.status() != given.status() || got.body != given.body || got.cut != given.cut {
			return fmt.Errorf("%d %q (cut: %t) instead of %d %q", got.status(), got.body, got.cut, given.status(), given.body)
		}
		if inDoubt(got) {
			return fmt.Errorf("framed as %q", got.fields)
		}
		for _, f := range given.fields {
			dropped := slices.ContainsFunc(without, func(name string) bool { return strings.EqualFold(name, f.name) })
			switch values := got.values(f.name); {
			case dropped && len(values) > 0:
				return fmt.Errorf("%s came through", f.name)
			case !dropped && !strings.EqualFold(f.name, "Transfer-Encoding") && !slices.Equal(values, given.values(f.name)):
				return fmt.Errorf("%s came as %q", f.name, values)
			}
		}
		return inStep(o, at)
	}
}

// fail: the client gets the status instead of what the backend said, once, and the
// next request gets its own answer.
func fail(status int) must {
	return func(c *conformanceCase, o *observation) error {
		_, _, at := givenAnswer(c)
		if at >= len(o.answers) || o.answers[at].status() != status || !o.ended {
			return fmt.Errorf("not answered with %d", status)
		}
		if len(o.seen) != len(readRequests(c.raw)) {
			return errors.New("sent twice")
		}
		return inStep(o, at)
	}
}

// stayCut: an answer that the backend cut is cut for the client too, or is none.
func stayCut(c *conformanceCase, o *observation) error {
	_, _, at := givenAnswer(c)
	if at >= len(o.answers) || !o.answers[at].cut && o.answers[at].status() < 500 {
		return errors.New("a cut answer came whole")
	}
	return inStep(o, at)
}

func inStep(o *observation, at int) error {
	if rest := o.answers[at+1:]; len(rest) > 0 && rest[0].body != after {
		return fmt.Errorf("the next request is answered with %q %q", rest[0].line, rest[0].body)
	}
	return nil
}

// either: the RFC leaves both open.
func either(a, b must) must {
	return func(c *conformanceCase, o *observation) error {
		errA, errB := a(c, o), b(c, o)
		if errA == nil || errB == nil {
			return nil
		}
		return errors.Join(errA, errB)
	}
}

// appends: the field arrives in one line that begins as given.
func appends(name, start string) must {
	return value(name, func(got string) bool { return strings.HasPrefix(got, start) && got != start })
}

// replaces: the field arrives in one line with another value.
func replaces(name, want string) must {
	return value(name, func(got string) bool { return got == want })
}

func value(name string, wanted func(string) bool) must {
	return func(_ *conformanceCase, o *observation) error {
		if len(o.seen) != 1 {
			return errors.New("not forwarded once")
		}
		if values := o.seen[0].values(name); len(values) != 1 || !wanted(values[0]) {
			return fmt.Errorf("%s arrived as %q", name, values)
		}
		return nil
	}
}

// withoutByte: no field of the answer holds it.
func withoutByte(b byte) must {
	return func(_ *conformanceCase, o *observation) error {
		for _, f := range o.answers[0].fields {
			if strings.IndexByte(f.name+f.value, b) >= 0 {
				return fmt.Errorf("%q came through", f)
			}
		}
		return inStep(o, 0)
	}
}

// unfolded: the folded line is one, or there is no such answer.
func unfolded(c *conformanceCase, o *observation) error {
	for _, f := range o.answers[0].fields {
		if strings.Contains(f.value, "\r\n") {
			return fmt.Errorf("%q came through", f)
		}
	}
	return inStep(o, 0)
}

// once: the answer comes with one line of the field.
func once(name string) must {
	return func(_ *conformanceCase, o *observation) error {
		if values := o.answers[0].values(name); len(values) != 1 {
			return fmt.Errorf("%s came as %q", name, values)
		}
		return inStep(o, 0)
	}
}
