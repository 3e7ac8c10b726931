package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
)

const explainHelp = `Usage: slotgate explain -c FILE [-X METHOD] 'URL' [-H 'K: V']... [-d BODY|@FILE]
       slotgate explain -c FILE curl ...
       slotgate explain -c FILE --request FILE

Says what the gate would do with one request, without sending it anywhere and
without looking at the store: which rule it falls under and why not under the
others, the slot, subject, units and key it names, and what each layer would do.
It goes through the same code as a request to a running gate.

  -c FILE            the configuration
  --set PATH=VALUE   replaces a value; repeatable
  -X METHOD          the method: GET, or POST where there is a body
  -H 'NAME: VALUE'   a header field; repeatable. As with curl, a body is labelled
                     application/x-www-form-urlencoded unless a field says else
  -d BODY, -d @FILE  the body; @- for standard input
  curl ...           a curl command line, pasted as it is
  --request FILE     a raw HTTP request, a HAR file or entry, or a curl command
                     line; - for standard input
  --entry N          the N-th request of a HAR file [1]
  --client IP        the address of the client [127.0.0.1]
  --json             prints JSON

Exit status: 0 explained, whatever the gate would answer; 2 there was nothing to
explain: a configuration that cannot be used, or a request that cannot be read.

Examples:
  slotgate explain -c slotgate.yaml -X POST 'http://localhost:8080/api/lessons/7/bookings' \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: 4f1c' -d '{"student_id":17}'
  slotgate explain -c slotgate.yaml curl -X POST http://localhost:8080/book -d lesson=7
`

func explainCommand(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		return usageFault("explain", explainHelp, err, checkUnusable, stdout, stderr)
	}
	var flags configFlags
	shown := curlRequest{stdin: stdin}
	set := newFlags("explain")
	flags.register(set)
	set.StringVar(&shown.method, "X", "", "")
	set.Func("H", "", shown.addHeader)
	set.Func("d", "", appendTo(&shown.data))
	file := set.String("request", "", "")
	entry := set.Int("entry", 1, "")
	client := set.String("client", "127.0.0.1", "")
	asJSON := set.Bool("json", false, "")

	var pasted []string
	if i := slices.Index(args, "curl"); i >= 0 {
		args, pasted = args[:i], args[i+1:]
	}
	operands, err := parse(set, args)
	if err != nil {
		return fail(err)
	}
	from, err := netip.ParseAddr(*client)
	if err != nil {
		return fail(fmt.Errorf("--client %q is no IP address", *client))
	}
	raw, notes, err := explained(&shown, operands, pasted, *file, *entry, stdin)
	if err != nil {
		return fail(err)
	}
	config, faults, err := flags.load()
	if err != nil {
		return fail(err)
	}
	if config == nil {
		fmt.Fprint(stderr, faults)
		return checkUnusable
	}
	e, err := explain(config, raw, from)
	if err != nil {
		fmt.Fprintf(stderr, "slotgate explain: %v\n", err)
		return checkUnusable
	}
	e.Notes = notes
	if *asJSON {
		out := json.NewEncoder(stdout)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		err = out.Encode(e)
	} else {
		err = writeExplanation(stdout, e)
	}
	if err != nil {
		fmt.Fprintf(stderr, "slotgate explain: %v\n", err)
		return checkUnusable
	}
	return checkUsable
}

// explained is the request as bytes, from wherever it was given, and what was changed
// about it.
func explained(shown *curlRequest, operands, pasted []string, file string, entry int, stdin io.Reader) (raw []byte, notes []string, err error) {
	ways := 0
	for _, given := range []bool{len(operands) > 0 || shown.method != "" || len(shown.headers)+len(shown.data) > 0, pasted != nil, file != ""} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return nil, nil, errors.New("give the request in one way: a URL with -X, -H and -d, a curl line, or --request FILE")
	case file != "":
		return readRequestFile(file, entry, stdin)
	case pasted != nil:
		shown = &curlRequest{stdin: stdin}
		if err := shown.parse(pasted); err != nil {
			return nil, nil, err
		}
	case len(operands) == 0:
		return nil, nil, errors.New("the URL is missing")
	case len(operands) > 1:
		return nil, nil, fmt.Errorf("unexpected argument %q", operands[1])
	default:
		shown.url = operands[0]
	}
	raw, err = shown.bytes()
	return raw, nil, err
}
