package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// adminClient calls a gate's admin API.
type adminClient struct {
	base  string
	token string
	http  *http.Client
}

// slotAnswer is a slot as the admin API shows it; nil where it says null.
type slotAnswer struct {
	Pool      string       `json:"pool"`
	Slot      string       `json:"slot"`
	Capacity  *int64       `json:"capacity"`
	Confirmed int64        `json:"confirmed"`
	Held      int64        `json:"held"`
	Available *int64       `json:"available"`
	Closed    bool         `json:"closed"`
	Full      bool         `json:"full"`
	Dirty     bool         `json:"dirty"`
	Version   int64        `json:"version"`
	Inflight  int          `json:"inflight"`
	Source    string       `json:"source"`
	CheckedAt *time.Time   `json:"checked_at"`
	OpensAt   *time.Time   `json:"opens_at"`
	Holds     []holdAnswer `json:"holds"`
}

type holdAnswer struct {
	ID        string     `json:"id"`
	Subject   string     `json:"subject"`
	Units     int64      `json:"units"`
	State     string     `json:"state"`
	Reference string     `json:"reference"`
	ExpiresAt *time.Time `json:"expires_at"`
}

type releaseAnswer struct {
	Hold  string `json:"hold"`
	Was   string `json:"was"`
	State string `json:"state"`
}

type entryAnswer struct {
	ID          string    `json:"id"`
	Time        time.Time `json:"time"`
	Hold        string    `json:"hold"`
	SubjectHash string    `json:"subject_hash"`
	Units       int64     `json:"units"`
	From        string    `json:"from"`
	To          string    `json:"to"`
	Cause       string    `json:"cause"`
}

func newAdminClient(base, token string) (*adminClient, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--admin %q is not a URL such as http://127.0.0.1:9901", base)
	}
	return &adminClient{
		base:  strings.TrimSuffix(base, "/"),
		token: token,
		http: &http.Client{
			Timeout: time.Minute,
			// The API never redirects; whoever does is not to be given the token.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// list follows the cursor until limit slots are there, or all with limit 0.
func (c *adminClient) list(pool string, limit int) ([]slotAnswer, error) {
	const page = 1000
	slots, cursor := []slotAnswer{}, ""
	for {
		query := url.Values{"pool": {pool}, "cursor": {cursor}, "limit": {strconv.Itoa(page)}}
		if limit > 0 {
			query.Set("limit", strconv.Itoa(min(page, limit-len(slots))))
		}
		var got struct {
			Slots  []slotAnswer
			Cursor string
		}
		if err := c.call("GET", "/v1/slots?"+query.Encode(), nil, &got); err != nil {
			return nil, err
		}
		slots = append(slots, got.Slots...)
		if cursor = got.Cursor; cursor == "" {
			return slots, nil
		}
		if limit > 0 && len(slots) >= limit {
			return slots[:limit], nil
		}
	}
}

func (c *adminClient) slot(method, pool, slot string, change map[string]any) (*slotAnswer, error) {
	answer := new(slotAnswer)
	return answer, c.call(method, slotPath(pool, slot), change, answer)
}

func (c *adminClient) resync(pool, slot string) (*slotAnswer, error) {
	answer := new(slotAnswer)
	return answer, c.call("POST", slotPath(pool, slot)+"/resync", nil, answer)
}

func (c *adminClient) release(pool, slot, hold string) (*releaseAnswer, error) {
	answer := new(releaseAnswer)
	return answer, c.call("DELETE", slotPath(pool, slot)+"/holds/"+pathSegment(hold), nil, answer)
}

// ledger is the slot's latest transitions, newest first.
func (c *adminClient) ledger(pool, slot string) ([]entryAnswer, error) {
	var got struct{ Entries []entryAnswer }
	err := c.call("GET", slotPath(pool, slot)+"/ledger", nil, &got)
	return got.Entries, err
}

func slotPath(pool, slot string) string {
	return "/v1/slots/" + pathSegment(pool) + "/" + pathSegment(slot)
}

// pathSegment also escapes dots, so that nothing on the way takes the slot ".."
// for a step up.
func pathSegment(text string) string {
	return strings.ReplaceAll(url.PathEscape(text), ".", "%2E")
}

func (c *adminClient) call(method, path string, body map[string]any, answer any) error {
	var send io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		send = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, c.base+path, send)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("no answer from the admin listener: %w; is slotgate running, and is --admin its admin.listen?", unwrapURL(err))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("the answer did not arrive whole: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return refused(res.StatusCode, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return errors.New("the answer is not from a slotgate admin API; is --admin its admin.listen?")
	}
	return nil
}

// refused is the detail of a problem document.
func refused(status int, text []byte) error {
	var problem struct{ Detail string }
	if json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
		return fmt.Errorf("answered %d %s; is --admin the admin.listen of a slotgate?", status, http.StatusText(status))
	}
	if status == http.StatusUnauthorized {
		return errors.New("a token is needed, or this one is wrong: --token, or SLOTGATE_ADMIN_TOKEN in the environment")
	}
	return errors.New(problem.Detail)
}

// unwrapURL drops the method and URL that net/http puts in front.
func unwrapURL(err error) error {
	if urlError := new(url.Error); errors.As(err, &urlError) {
		return urlError.Err
	}
	return err
}
