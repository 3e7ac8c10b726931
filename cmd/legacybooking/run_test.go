package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHelpShowsAnExample(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"--help"}, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Errorf("exit code %d and errors %q, want 0 and none", code, &stderr)
	}
	for _, want := range []string{
		"legacybooking --lessons", "--listen", "--db", "--style", "--no-constraints", "--envelope",
		"--delay", "--commit-then-delay", "--lessons N", "--seats M",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("help does not mention %q", want)
		}
	}
}

func TestErrorsAreOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--style", "pessimistic"}, 2, "optimistic"},
		{[]string{"--nope"}, 2, "--help"},
		{[]string{"--delay", "5"}, 2, "delay"},
		{[]string{"now"}, 2, `unexpected argument "now"`},
		{[]string{"--lessons", "-1"}, 1, "0 or more"},
		{[]string{"--db", "postgres://127.0.0.1:1/db"}, 1, "127.0.0.1:1"},
		{[]string{"--db", "mysql://root@127.0.0.1:1/db"}, 1, "127.0.0.1:1"},
		{[]string{"--listen", taken.Addr().String()}, 1, "address already in use"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(test.args, &stdout, &stderr)
		message := stderr.String()
		if code != test.code || strings.Count(message, "\n") != 1 || !strings.HasPrefix(message, "legacybooking: ") || !strings.Contains(message, test.says) {
			t.Errorf("%v: exit code %d and %q, want %d and one line that says %q", test.args, code, message, test.code, test.says)
		}
	}
}

// start runs the command and returns the URL it serves and its exit code.
func start(t *testing.T, args ...string) (url string, exited <-chan int) {
	t.Helper()
	out, stdout := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(append([]string{"--listen", "127.0.0.1:0"}, args...), stdout, io.Discard)
		stdout.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it printed %q and ended (%v)", line, err)
	}
	_, url, found := strings.Cut(strings.TrimSpace(line), " at ")
	if !found {
		t.Fatalf("it printed %q, want its address", line)
	}
	return url, code
}

// The signal comes while a booking is at work; it is finished and answered.
func TestASignalLetsRunningRequestsFinish(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		url, exited := start(t, "--lessons", "1", "--seats", "1", "--commit-then-delay", "300ms")
		client := &http.Client{Transport: &http.Transport{}}
		answered := make(chan string, 1)
		go func() {
			response, err := client.Post(url+"/api/lessons/1/bookings", "application/json", strings.NewReader(`{"student_id":"ann"}`))
			if err != nil {
				answered <- err.Error()
				return
			}
			response.Body.Close()
			answered <- response.Status
		}()
		awaitBooking(t, client, url)
		if err := syscall.Kill(syscall.Getpid(), signal); err != nil {
			t.Fatal(err)
		}
		if got := <-answered; got != "201 Created" {
			t.Errorf("%v: the booking got %q, want 201 Created", signal, got)
		}
		if code := <-exited; code != 0 {
			t.Errorf("%v: exit code %d, want 0", signal, code)
		}
		client.CloseIdleConnections()
	}
}

// awaitBooking returns once the seat of lesson 1 is taken.
func awaitBooking(t *testing.T, client *http.Client, url string) {
	t.Helper()
	for t.Context().Err() == nil {
		response, err := client.Get(url + "/api/lessons/1")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(body, []byte(`"booked":1`)) {
			return
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, settings{listen: "127.0.0.1:0", options: booking.Options{}}, stdout)
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
