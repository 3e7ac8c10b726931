package rules

import (
	"bytes"
	"mime"
	"regexp"
	"strings"
)

// part is one part of a multipart/form-data body (RFC 7578).
type part struct {
	name, filename, contentType string
	content                     []byte
	file                        bool // it has a file name, an empty one included
	charset                     charset
	readable                    bool // plain text in a charset that can be read
}

// splitMultipart cuts a multipart body. Servers differ on everything the standard
// only tolerates (text before and after the parts, bare line feeds, padding, folded
// or repeated headers), so only what all read alike is let through.
func splitMultipart(body []byte, boundary string, c charset) ([]part, *Refusal) {
	delimiter := []byte("--" + boundary)
	line := []byte("\n--" + boundary)
	rest, ok := bytes.CutPrefix(body, delimiter)
	if !ok {
		return nil, refuseMultipart("it does not begin with its boundary")
	}
	var parts []part
	for {
		if after, last := bytes.CutPrefix(rest, []byte("--")); last {
			if len(after) > 0 && string(after) != "\r\n" {
				return nil, refuseMultipart("text follows the last part")
			}
			return parts, nil
		}
		if rest, ok = bytes.CutPrefix(rest, []byte("\r\n")); !ok {
			return nil, refuseMultipart("a line begins with its boundary and goes on")
		}
		if len(parts) == maxFields {
			return nil, refuseMultipart("it has too many parts")
		}
		end := bytes.Index(rest, line)
		if end < 1 || rest[end-1] != '\r' {
			return nil, refuseMultipart("a part has no end")
		}
		p, refusal := readPart(rest[:end-1], c)
		if refusal != nil {
			return nil, refusal
		}
		parts = append(parts, p)
		rest = rest[end+len(line):]
	}
}

func readPart(text []byte, c charset) (part, *Refusal) {
	head, content, ok := bytes.Cut(text, []byte("\r\n\r\n"))
	if !ok {
		return part{}, refuseMultipart("a part has no end of its head")
	}
	p := part{content: content, charset: c, readable: true}
	// Rack, as others who search with patterns, takes name= and filename= from anywhere
	// in the head, and for want of a name the Content-ID.
	lower := strings.ToLower(string(head))
	p.file = strings.Contains(lower, "filename=")
	if strings.Count(lower, "name=") != 1+strings.Count(lower, "filename=") {
		return part{}, refuseMultipart("a part has no name, or several")
	}
	disposed := false
	for line := range strings.SplitSeq(c.head(string(head)), "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) || strings.ContainsAny(value, "\r\n\x00") {
			return part{}, refuseMultipart("a part has a malformed header")
		}
		value = strings.Trim(value, " \t")
		switch strings.ToLower(name) {
		case "content-disposition":
			if disposed || !p.dispose(value) {
				return part{}, refuseMultipart("a part's Content-Disposition can be read two ways")
			}
			disposed = true
		case "content-type":
			if p.contentType != "" || !p.typed(value) {
				return part{}, refuseMultipart("a part's Content-Type can be read two ways, or holds parts of its own")
			}
		case "content-transfer-encoding":
			switch strings.ToLower(value) {
			case "7bit", "8bit", "binary":
			default:
				return part{}, refuseMultipart("a part has a Content-Transfer-Encoding, which HTTP does not know")
			}
		}
	}
	if !disposed {
		return part{}, refuseMultipart("a part has no Content-Disposition")
	}
	return p, nil
}

// dispose reads Content-Disposition. Extended parameters (name*=) and backslashes are
// read by some and not by others, and so is what stands outside of the quotes of all:
// the quotes of PHP, and blanks around a "=".
func (p *part) dispose(value string) bool {
	if strings.ContainsAny(value, `*\`) || oddlyQuoted.MatchString(quotedText.ReplaceAllString(value, `""`)) {
		return false
	}
	kind, params, err := mime.ParseMediaType(value)
	if err != nil || kind != "form-data" {
		return false
	}
	p.name, p.filename = params["name"], params["filename"]
	return p.name != ""
}

var (
	quotedText  = regexp.MustCompile(`"[^"]*"`)
	oddlyQuoted = regexp.MustCompile(`'|[ \t]=|=[ \t]`)
)

func (p *part) typed(value string) bool {
	kind, params, err := mime.ParseMediaType(value)
	if err != nil || value == "" || strings.HasPrefix(kind, "multipart/") {
		return false
	}
	p.contentType = value
	p.charset, p.readable = p.charset.labelled(params["charset"])
	return true
}

func refuseMultipart(why string) *Refusal {
	return refuse(RefuseAmbiguous, "the multipart body can be read two ways: %s", why)
}
