package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// curlRequest is a request in the words of curl, whose defaults it has.
type curlRequest struct {
	method  string
	url     string
	headers []string // "Name: value"; "Name:" takes a default away
	data    []string // as -d has them: joined by &, @FILE without line ends
	binary  []bool   // of data: --data-binary, --data-raw and the like; nil: none
	raw     []bool   // of data: a leading @ is text
	forms   []string // as -F has them
	get     bool     // -G: data belongs to the query
	head    bool
	json    bool
	stdin   io.Reader // what @- reads; nil: not known
}

// curlOptions are the options that curl has, by what Slotgate makes of them. Those that
// say how to connect or what to show are taken and mean nothing here.
var curlOptions = map[string]func(*curlRequest, string) error{
	"-X": (*curlRequest).setMethod, "--request": (*curlRequest).setMethod,
	"-H": (*curlRequest).addHeader, "--header": (*curlRequest).addHeader,
	"-d": (*curlRequest).addData, "--data": (*curlRequest).addData, "--data-ascii": (*curlRequest).addData,
	"--data-raw":       func(c *curlRequest, v string) error { return c.add(v, false, true) },
	"--data-binary":    func(c *curlRequest, v string) error { return c.add(v, true, false) },
	"--data-urlencode": (*curlRequest).addEncoded,
	"--json": func(c *curlRequest, v string) error {
		c.json = true
		return c.add(v, true, false)
	},
	"-F": (*curlRequest).addForm, "--form": (*curlRequest).addForm, "--form-string": (*curlRequest).addForm,
	"-b": (*curlRequest).setCookie, "--cookie": (*curlRequest).setCookie,
	"-u": (*curlRequest).setUser, "--user": (*curlRequest).setUser,
	"-A": headerOption("User-Agent"), "--user-agent": headerOption("User-Agent"),
	"-e": headerOption("Referer"), "--referer": headerOption("Referer"),
	"--url": func(c *curlRequest, v string) error { return c.setURL(v) },
	"-o":    ignored, "--output": ignored, "-m": ignored, "--max-time": ignored, "--connect-timeout": ignored,
	"-w": ignored, "--write-out": ignored, "-x": ignored, "--proxy": ignored, "--cacert": ignored,
	"-E": ignored, "--cert": ignored, "--key": ignored, "--resolve": ignored, "--retry": ignored, "-c": ignored, "--cookie-jar": ignored,
}

// curlSwitches are those without a value.
var curlSwitches = map[string]func(*curlRequest){
	"-G": func(c *curlRequest) { c.get = true }, "--get": func(c *curlRequest) { c.get = true },
	"-I": func(c *curlRequest) { c.head = true }, "--head": func(c *curlRequest) { c.head = true },
	"--compressed": func(c *curlRequest) { _ = c.addHeader("Accept-Encoding: deflate, gzip") },
	"-s":           nil, "--silent": nil, "-S": nil, "--show-error": nil, "-i": nil, "--include": nil, "-k": nil, "--insecure": nil,
	"-L": nil, "--location": nil, "-v": nil, "--verbose": nil, "-f": nil, "--fail": nil, "-N": nil, "--no-buffer": nil,
	"--http1.1": nil, "--http2": nil, "-g": nil, "--globoff": nil, "--path-as-is": nil, "-#": nil, "--progress-bar": nil,
}

func ignored(*curlRequest, string) error { return nil }

func headerOption(name string) func(*curlRequest, string) error {
	return func(c *curlRequest, value string) error { return c.addHeader(name + ": " + value) }
}

// parse reads the words of a command line after curl itself.
func (c *curlRequest) parse(words []string) error {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if len(word) < 2 || word[0] != '-' {
			if err := c.setURL(word); err != nil {
				return err
			}
			continue
		}
		// Short options may stand together, the last with its value: -sXPOST.
		for word != "" {
			option := word
			rest := ""
			if !strings.HasPrefix(word, "--") {
				option, rest = word[:2], word[2:]
			}
			word = ""
			if act, ok := curlSwitches[option]; ok {
				if act != nil {
					act(c)
				}
				if rest != "" {
					word = "-" + rest
				}
				continue
			}
			act, ok := curlOptions[option]
			if !ok {
				return fmt.Errorf("curl's option %q is not understood; leave it out", option)
			}
			if rest == "" {
				if len(words) == 0 {
					return fmt.Errorf("curl's option %q has no value", option)
				}
				rest, words = words[0], words[1:]
			}
			if err := act(c, rest); err != nil {
				return err
			}
		}
	}
	if c.url == "" {
		return errors.New("the curl line has no URL")
	}
	return nil
}

func (c *curlRequest) setURL(text string) error {
	if c.url != "" {
		return fmt.Errorf("the curl line has two URLs, %q and %q; explain one", c.url, text)
	}
	c.url = text
	return nil
}

func (c *curlRequest) setMethod(text string) error { c.method = text; return nil }

func (c *curlRequest) addHeader(text string) error {
	if !strings.Contains(text, ":") && !strings.HasSuffix(text, ";") {
		return fmt.Errorf("-H %q is no header field; write 'Name: value'", text)
	}
	c.headers = append(c.headers, text)
	return nil
}

func (c *curlRequest) addData(text string) error { return c.add(text, false, false) }

func (c *curlRequest) add(text string, binary, raw bool) error {
	for len(c.binary) < len(c.data) {
		c.binary, c.raw = append(c.binary, false), append(c.raw, false)
	}
	c.data, c.binary, c.raw = append(c.data, text), append(c.binary, binary), append(c.raw, raw)
	return nil
}

// addEncoded is curl's name=content, =content, content and name@file.
func (c *curlRequest) addEncoded(text string) error {
	name, content, found := strings.Cut(text, "=")
	if !found {
		var file string
		if name, file, found = strings.Cut(text, "@"); found {
			read, err := c.read(file)
			if err != nil {
				return err
			}
			content = string(read)
		} else {
			name, content = "", text
		}
	}
	if content = url.QueryEscape(content); name != "" {
		content = name + "=" + content
	}
	return c.add(content, true, true)
}

func (c *curlRequest) addForm(text string) error {
	if !strings.Contains(text, "=") {
		return fmt.Errorf("-F %q: write name=content or name=@file", text)
	}
	c.forms = append(c.forms, text)
	return nil
}

func (c *curlRequest) setCookie(text string) error {
	if !strings.Contains(text, "=") {
		return fmt.Errorf("-b %q names a cookie file, which is not read; give name=value", text)
	}
	return c.addHeader("Cookie: " + text)
}

func (c *curlRequest) setUser(text string) error {
	return c.addHeader("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(text)))
}

// read reads the file that an @ names; as with curl, - is the standard input.
func (c *curlRequest) read(file string) ([]byte, error) {
	switch {
	case file != "-":
		return os.ReadFile(file)
	case c.stdin == nil:
		return nil, errors.New("@- is the standard input of curl, which is not known here; write the body in the line")
	default:
		return io.ReadAll(c.stdin)
	}
}

// body joins the data, and labels it as curl would.
func (c *curlRequest) body() (body []byte, label string, err error) {
	if len(c.forms) > 0 {
		return c.multipart()
	}
	for i, text := range c.data {
		if i > 0 && !c.json {
			body = append(body, '&')
		}
		file, isFile := strings.CutPrefix(text, "@")
		if !isFile || i < len(c.raw) && c.raw[i] {
			body = append(body, text...)
			continue
		}
		read, err := c.read(file)
		if err != nil {
			return nil, "", err
		}
		if i >= len(c.binary) || !c.binary[i] {
			read = bytes.ReplaceAll(bytes.ReplaceAll(read, []byte("\r"), nil), []byte("\n"), nil)
		}
		body = append(body, read...)
	}
	if c.json {
		return body, "application/json", nil
	}
	return body, "application/x-www-form-urlencoded", nil
}

func (c *curlRequest) multipart() (body []byte, label string, err error) {
	var buffer bytes.Buffer
	form := multipart.NewWriter(&buffer)
	for _, text := range c.forms {
		name, content, _ := strings.Cut(text, "=")
		file, isFile := strings.CutPrefix(content, "@")
		if !isFile {
			if err := form.WriteField(name, content); err != nil {
				return nil, "", err
			}
			continue
		}
		file, _, _ = strings.Cut(file, ";")
		read, err := c.read(file)
		if err != nil {
			return nil, "", err
		}
		part, err := form.CreateFormFile(name, filepath.Base(file))
		if err != nil {
			return nil, "", err
		}
		if _, err := part.Write(read); err != nil {
			return nil, "", err
		}
	}
	if err := form.Close(); err != nil {
		return nil, "", err
	}
	return buffer.Bytes(), form.FormDataContentType(), nil
}

// bytes is the request as it goes over the wire. Nothing is checked that the gate
// checks.
func (c *curlRequest) bytes() ([]byte, error) {
	host, target, err := splitURL(c.url)
	if err != nil {
		return nil, err
	}
	body, label, err := c.body()
	if err != nil {
		return nil, err
	}
	has := len(c.data)+len(c.forms) > 0
	method := c.method
	if c.get && has {
		mark := "?"
		if strings.Contains(target, "?") {
			mark = "&"
		}
		target, body, has = target+mark+string(body), nil, false
	}
	switch {
	case method != "":
	case c.head:
		method = "HEAD"
	case has:
		method = "POST"
	default:
		method = "GET"
	}
	defaults := []string{"Host: " + host, "User-Agent: curl", "Accept: */*"}
	if c.json {
		defaults[2] = "Accept: application/json"
	}
	if has {
		defaults = append(defaults, "Content-Type: "+label, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, target)
	for _, line := range defaults {
		if !c.says(line) {
			b.WriteString(line + "\r\n")
		}
	}
	for _, line := range c.headers {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(value) != "" {
			b.WriteString(line + "\r\n")
		} else if name, ok := strings.CutSuffix(name, ";"); ok && value == "" {
			b.WriteString(name + ":\r\n") // curl's way to send an empty field
		}
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes(), nil
}

// says reports that -H names the field of a default line.
func (c *curlRequest) says(line string) bool {
	name, _, _ := strings.Cut(line, ":")
	for _, h := range c.headers {
		if given, _, _ := strings.Cut(h, ":"); strings.EqualFold(strings.TrimSuffix(given, ";"), name) {
			return true
		}
	}
	return false
}

// splitURL takes host and request target out of a URL, without changing the target.
// A path alone is for a host called localhost.
func splitURL(text string) (host, target string, err error) {
	if strings.HasPrefix(text, "/") {
		return "localhost", text, nil
	}
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		rest = text // as curl takes it
	} else if scheme != "http" && scheme != "https" {
		return "", "", fmt.Errorf("the URL %q is neither http nor https", text)
	}
	rest, _, _ = strings.Cut(rest, "#")
	host = rest
	target = "/"
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, target = rest[:i], rest[i:]
		if target[0] == '?' {
			target = "/" + target
		}
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if host == "" {
		return "", "", fmt.Errorf("the URL %q names no host", text)
	}
	return host, target, nil
}
