package testbed

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxBulk is Redis's own default limit of one bulk string (proto-max-bulk-len).
const maxBulk = 512 << 20

// readRequest reads one command as a client sends it: an array of bulk
// strings, or an inline command. raw is exactly what was read. Source: Redis
// serialization protocol specification, "Sending commands to a Redis server".
func readRequest(r *bufio.Reader) (raw []byte, args []string, err error) {
	line, err := readLine(r)
	if err != nil {
		return nil, nil, err
	}
	if line[0] != '*' {
		return line, strings.Fields(string(line)), nil
	}
	count, err := parseLength(line)
	if err != nil {
		return nil, nil, err
	}
	raw = line
	for range count {
		header, err := readLine(r)
		if err != nil {
			return nil, nil, midway(err)
		}
		if header[0] != '$' {
			return nil, nil, fmt.Errorf("testbed: a command holds bulk strings only, got %q", header)
		}
		bulk, err := readBulk(r, header)
		if err != nil {
			return nil, nil, err
		}
		raw = append(append(raw, header...), bulk...)
		args = append(args, string(bytes.TrimSuffix(bulk, crlf)))
	}
	return raw, args, nil
}

// readReply reads one whole reply, RESP2 or RESP3, nested values and leading
// attributes included, and returns its bytes.
func readReply(r *bufio.Reader) ([]byte, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	children := 0
	switch line[0] {
	case '+', '-', ':', '_', ',', '#', '(':
		return line, nil
	case '$', '=', '!':
		bulk, err := readBulk(r, line)
		return append(line, bulk...), err
	case '*', '~', '>':
		children, err = parseLength(line)
	case '%':
		children, err = parseLength(line)
		children *= 2
	case '|': // attributes precede the value they describe
		children, err = parseLength(line)
		children = children*2 + 1
	default:
		err = fmt.Errorf("testbed: %q starts no RESP value", line)
	}
	if err != nil {
		return nil, err
	}
	raw := line
	for range children {
		child, err := readReply(r)
		if err != nil {
			return nil, midway(err)
		}
		raw = append(raw, child...)
	}
	return raw, nil
}

// isPush tells messages that Redis sends unasked (RESP3) from replies.
func isPush(reply []byte) bool { return reply[0] == '>' }

// isError tells whether a reply is an error of either protocol version.
func isError(reply []byte) bool { return reply[0] == '-' || reply[0] == '!' }

var crlf = []byte("\r\n")

// readLine returns a fresh slice that ends in CRLF and is longer than it.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		if len(line) > 0 {
			err = midway(err)
		}
		return nil, err
	}
	if len(line) < 3 || !bytes.HasSuffix(line, crlf) {
		return nil, fmt.Errorf("testbed: %q is no RESP line", line)
	}
	return line, nil
}

// readBulk reads what follows the header $N: N bytes and CRLF, nothing for -1.
func readBulk(r *bufio.Reader, header []byte) ([]byte, error) {
	length, err := parseLength(header)
	if err != nil || length < 0 {
		return nil, err
	}
	bulk := make([]byte, length+len(crlf))
	if _, err := io.ReadFull(r, bulk); err != nil {
		return nil, midway(err)
	}
	if !bytes.HasSuffix(bulk, crlf) {
		return nil, fmt.Errorf("testbed: a bulk string of %d bytes does not end in CRLF", length)
	}
	return bulk, nil
}

func parseLength(line []byte) (int, error) {
	length, err := strconv.Atoi(string(line[1 : len(line)-len(crlf)]))
	if err != nil || length < -1 || length > maxBulk {
		return 0, fmt.Errorf("testbed: %q has no valid length", line)
	}
	return length, nil
}

// midway turns an end of stream inside a value into the error it is.
func midway(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
