package token

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
)

func page(token string) string   { return "/page/" + token }
func lesson(token string) string { return "/lessons/" + token + "/bookings" }
func shadow(token string) string { return "/shadow/" + token + "/bookings" }

func pick[T any](c *client, of ...T) T { return of[c.rand.IntN(len(of))] }

// manner is one in which anything may be answered.
func (c *client) manner() string {
	return pick(c, "", "", "long", "chunked", "204", "304", "cut", "unasked", "long head", "slow", "big")
}

// ask does one thing that clients do.
func (c *client) ask() { pick(c, asks...)(c, newToken()) }

var asks = []func(c *client, token string){
	(*client).get, (*client).get, (*client).headOnly, (*client).getAsOf10, (*client).leave, (*client).pipeline,
	(*client).post, (*client).postInChunks, (*client).postHalf, (*client).postInVain, (*client).postWhenAsked, (*client).upgrade,
	(*client).book, (*client).book, (*client).bookTwice, (*client).bookInShadow, (*client).bookInShadow, (*client).bookOfFew, (*client).bookNonsense,
}

func (c *client) get(token string) {
	c.write(c.head("GET", token, page(token), c.manner()) + "\r\n")
	c.read("GET", token)
}

func (c *client) headOnly(token string) {
	c.write(c.head("HEAD", token, page(token), c.manner()) + "\r\n")
	c.read("HEAD", token)
}

func (c *client) getAsOf10(token string) {
	c.write(strings.Replace(c.head("GET", token, page(token), c.manner()), "HTTP/1.1", "HTTP/1.0", 1) + "\r\n")
	c.read("GET", token)
	c.shut()
}

func (c *client) leave(token string) {
	c.write(c.head("GET", token, page(token), c.manner()) + "\r\n")
	c.goAway()
}

// pipeline sends several requests before it reads.
func (c *client) pipeline(token string) {
	list := []string{token}
	for range 1 + c.rand.IntN(4) {
		list = append(list, newToken())
	}
	var all strings.Builder
	for _, token := range list {
		if c.rand.IntN(3) == 0 {
			all.WriteString(c.booking(token, lesson(token), "", 10))
		} else {
			all.WriteString(c.head("GET", token, page(token), pick(c, "", "long", "204", "chunked")) + "\r\n")
		}
	}
	c.write(all.String())
	if c.rand.IntN(6) == 0 {
		c.goAway()
		return
	}
	for _, token := range list {
		if !c.read("GET", token) {
			return
		}
	}
}

func (c *client) post(token string) {
	c.write(withBody(c.head("POST", token, page(token), c.manner()), filler(token, c.rand.IntN(40<<10))))
	c.read("POST", token)
}

func (c *client) postInChunks(token string) {
	c.write(c.inChunks(c.head("POST", token, page(token), c.manner()), token))
	c.read("POST", token)
}

// postHalf goes away while it sends.
func (c *client) postHalf(token string) {
	text := withBody(c.head("POST", token, page(token), c.manner()), filler(token, 100<<10))
	c.write(text[:c.rand.IntN(len(text))])
	c.shut()
}

// postInVain is answered before it has sent all.
func (c *client) postInVain(token string) {
	c.write(withBody(c.head("POST", token, page(token), "early"), filler(token, 300<<10)))
	c.read("POST", token)
	c.shut()
}

// postWhenAsked sends its body when the gate wants it.
func (c *client) postWhenAsked(token string) {
	defer c.shut()
	path := pick(c, page(token), lesson(token), shadow(token))
	body := student(token, c.rand.IntN(3000))
	c.write(c.head("POST", token, path, c.manner(), "Expect: 100-continue", "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body))) + "\r\n")
	for c.conn != nil {
		line, err := c.in.Peek(len("HTTP/1.1 100"))
		if err != nil {
			return
		}
		if !bytes.Equal(line, []byte("HTTP/1.1 100")) {
			break
		}
		_, _ = c.in.ReadString('\n')
		_, _ = c.in.ReadString('\n')
		c.write(body)
	}
	c.read("POST", token)
}

// upgrade wants another protocol, and perhaps gets it.
func (c *client) upgrade(token string) {
	defer c.shut()
	c.write(c.head("GET", token, page(token), pick(c, "echo", ""), "Connection: Upgrade", "Upgrade: echo") + "\r\n")
	if c.conn == nil {
		return
	}
	answer, err := http.ReadResponse(c.in, &http.Request{Method: "GET"})
	if err != nil {
		return
	}
	only(c.t, "the upgrade", token, fmt.Sprint(answer.Header))
	if answer.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(answer.Body)
		only(c.t, "the answer", token, string(text))
		return
	}
	for range 5 {
		part := filler(token, c.rand.IntN(9000))
		c.write(part)
		back := make([]byte, len(part))
		if _, err := io.ReadFull(c.in, back); err != nil || string(back) != part {
			c.t.Errorf("through the tunnel of %s came %.100q, %v", token, back, err)
			return
		}
	}
}

// book does so, and again with the same key.
func (c *client) book(token string) {
	text := c.booking(token, lesson(token), pick(c, "slow", "big", "refused", "", "cut", "unasked"), c.rand.IntN(40<<10))
	for range 1 + c.rand.IntN(3) {
		c.write(text)
		if c.rand.IntN(4) == 0 {
			c.shut()
		} else {
			c.read("POST", token)
		}
	}
}

// bookTwice does so at once over two connections.
func (c *client) bookTwice(token string) {
	text := c.booking(token, lesson(token), "slow", c.rand.IntN(20<<10))
	twin := &client{t: c.t, address: c.address, rand: rand.New(rand.NewPCG(c.rand.Uint64(), 1))}
	defer twin.shut()
	twin.write(text)
	c.write(text)
	if c.rand.IntN(3) == 0 {
		twin.shut()
	} else {
		twin.read("POST", token)
	}
	c.read("POST", token)
}

func (c *client) bookInShadow(token string) {
	text := c.booking(token, shadow(token), c.manner(), c.rand.IntN(40<<10))
	for range 1 + c.rand.IntN(2) {
		c.write(text)
		if c.rand.IntN(4) == 0 {
			c.goAway()
		} else {
			c.read("POST", token)
		}
	}
}

// bookOfFew wants a lesson that is sold out.
func (c *client) bookOfFew(token string) {
	c.write(c.booking(token, fmt.Sprintf("/few/%d/%s", c.rand.IntN(3), token), "slow", c.rand.IntN(4000)))
	c.read("POST", token)
}

func (c *client) bookNonsense(token string) {
	c.write(withBody(c.head("POST", token, lesson(token), c.manner(), "Content-Type: application/json"), `{"student_id": `+token))
	c.read("POST", token)
}
