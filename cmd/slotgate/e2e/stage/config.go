package stage

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"time"
)

// Lessons is the usual configuration in front of the sample API; pool, rule and
// upstream are further settings in flow style.
func Lessons(backend, store, upstream, pool, rule string) string {
	return `
upstream: { url: "` + backend + `"` + upstream + ` }
store: { ` + store + ` }
pools:
  lessons: { ` + pool + ` }
rules:
  - name: book-lesson
    match: { methods: [POST], path: "/api/lessons/{lesson}/bookings" }
    action: book
    pool: lessons
    slot: path:lesson
    subject: json:/student_id
    outcomes:
      - { when: { status: 409, json: { /error: sold_out } }, is: sold_out }
      - { when: { status: 409, json: { /error: duplicate } }, is: duplicate }
      - { when: { status: 3xx }, is: refused }
` + rule
}

// Keyed is the setting of a rule whose clients send idempotency keys.
const Keyed = "    idempotency: { key: [header:Idempotency-Key] }\n"

// OpenPass lets all of a test's bookings pass while the store is away.
const OpenPass = "    passthrough: { slot: { rate: 1000/s, burst: 1000 }, rule: { rate: 5000/s, burst: 5000 }, max_inflight: 256 }\n"

// FollowUps ends a book rule and adds the rules of what follows a booking.
const FollowUps = `    reference: json:/data/booking_id
  - name: cancel-booking
    match: { methods: [DELETE], path: "/api/bookings/{booking}" }
    action: cancel
    pool: lessons
    hold: path:booking
  - name: cancel-student
    match: { methods: [DELETE], path: "/api/lessons/{lesson}/students/{student}" }
    action: cancel
    pool: lessons
    slot: path:lesson
    subject: path:student
  - name: pay
    match: { methods: [POST], path: "/api/bookings/{booking}/payment" }
    action: confirm
    pool: lessons
    hold: path:booking
`

// MemoryStore is a store of one gate.
const MemoryStore = "kind: memory"

// RedisStore has a time-out that a busy test machine does not reach by itself: only
// the tests of an outage want one.
func RedisStore(addr string) string {
	return `kind: redis, timeout: 5s, addresses: ["` + addr + `"]`
}

// QuickRedis notices an outage within its default time-out.
func QuickRedis(addr string) string { return `kind: redis, addresses: ["` + addr + `"]` }

// RedisDo sends one command and fails on an error reply.
func RedisDo(addr string, words ...string) error {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(conn, "%s\r\n", strings.Join(words, " ")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && strings.HasPrefix(line, "-") {
		err = fmt.Errorf("%s", line)
	}
	return err
}
