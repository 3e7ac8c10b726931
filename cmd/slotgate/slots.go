package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

const slotsHelp = `Usage: slotgate slots ACTION [flags]

Looks at and changes slots through a gate's admin API. A change takes effect for
all gates of the same store at once.

Actions
  list POOL                   all slots of a pool
  get POOL SLOT               one slot with its holds
  set POOL SLOT --capacity N  give the slot its own number of units
  set POOL SLOT --opens-at T  refuse bookings until then (RFC 3339, or none)
  unset POOL SLOT             back to the configured number of units
  close POOL SLOT             refuse bookings
  open POOL SLOT              accept them again
  release POOL SLOT HOLD      free a hold, a confirmed one too
  resync POOL SLOT            with truth: look at it now. Else, after the store lost its
                              data: believe the slot's counters and the configured
                              number of units again
  load POOL FILE              make slots known before an opening: a line each, SLOT
                              or SLOT,CAPACITY; no FILE, or -: standard input.
                              With truth each is looked at, else resynced

Flags
  --admin URL    the admin listener (http://127.0.0.1:9901)
  --token T      admin.token; or in the environment as SLOTGATE_ADMIN_TOKEN,
                 where other users of the machine cannot read it
  --limit N      list: stop after N slots (1000; 0 lists all)
  --ledger       get: the slot's latest transitions too, newest first
  --opens-at T   set, load: see there
  --json         print what the admin API answers
  --             what follows is a name, even with a dash in front

Exit status: 0 done, 1 not.

Example: two more seats for lesson 7, then look at it
  slotgate slots set lessons 7 --capacity 8
  slotgate slots get lessons 7
`

// slotsFlags is a parsed command line.
type slotsFlags struct {
	admin, token string
	limit        int
	json         bool
	ledger       bool
	stdin        io.Reader
	capacity     *int64
	opensAt      *string // RFC 3339 or none
}

// slotsAction is one action: the operands that follow it, and what it does.
type slotsAction struct {
	name     string
	operands []string
	do       func(api *adminClient, f *slotsFlags, operands []string, stdout io.Writer) error
}

func slotsActions() []slotsAction {
	slot := []string{"POOL", "SLOT"}
	return []slotsAction{
		{"list", []string{"POOL"}, listSlots},
		{"get", slot, getSlot},
		{"set", slot, setSlot},
		{"unset", slot, changeSlot(map[string]any{"capacity": nil})},
		{"close", slot, changeSlot(map[string]any{"closed": true})},
		{"open", slot, changeSlot(map[string]any{"closed": false})},
		{"release", []string{"POOL", "SLOT", "HOLD"}, releaseHold},
		{"load", nil, loadSlots},
		{"resync", slot, resyncSlot},
	}
}

func slotsCommand(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	set, f := slotsFlagSet()
	f.stdin = stdin
	operands, err := parse(set, args)
	var action slotsAction
	if err == nil {
		action, err = findAction(operands)
	}
	if err == nil {
		operands = operands[1:]
		err = checkOperands(action, operands)
	}
	if err != nil {
		return usageFault("slots", slotsHelp, err, 1, stdout, stderr)
	}
	api, err := newAdminClient(f.admin, f.token)
	if err == nil {
		err = action.do(api, f, operands, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "slotgate slots %s: %v\n", action.name, err)
		return 1
	}
	return 0
}

func slotsFlagSet() (*flag.FlagSet, *slotsFlags) {
	f := &slotsFlags{token: os.Getenv("SLOTGATE_ADMIN_TOKEN")}
	set := newFlags("slots")
	set.StringVar(&f.admin, "admin", "http://127.0.0.1:9901", "")
	set.StringVar(&f.token, "token", f.token, "")
	set.IntVar(&f.limit, "limit", 1000, "")
	set.BoolVar(&f.json, "json", false, "")
	set.BoolVar(&f.ledger, "ledger", false, "")
	set.Func("capacity", "", func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return errors.New("must be a whole number from 0")
		}
		f.capacity = &n
		return nil
	})
	set.Func("opens-at", "", func(text string) error {
		if _, err := time.Parse(time.RFC3339, text); err != nil && text != "none" {
			return errors.New("must be a time such as 2030-09-01T10:00:00+02:00, or none")
		}
		f.opensAt = &text
		return nil
	})
	return set, f
}

func findAction(operands []string) (slotsAction, error) {
	if len(operands) == 0 {
		return slotsAction{}, errors.New("say what to do: list, get, set, unset, close, open, load, resync or release")
	}
	var names []string
	for _, action := range slotsActions() {
		if action.name == operands[0] {
			return action, nil
		}
		names = append(names, action.name)
	}
	return slotsAction{}, fmt.Errorf("no action %q%s", operands[0], suggestion(operands[0], names))
}

func checkOperands(action slotsAction, operands []string) error {
	if action.operands != nil && len(operands) != len(action.operands) {
		return fmt.Errorf("write slotgate slots %s %s", action.name, strings.Join(action.operands, " "))
	}
	return nil
}

func listSlots(api *adminClient, f *slotsFlags, operands []string, stdout io.Writer) error {
	slots, err := api.list(operands[0], f.limit)
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(stdout, map[string]any{"slots": slots})
	}
	return writeSlotTable(stdout, slots)
}

func getSlot(api *adminClient, f *slotsFlags, operands []string, stdout io.Writer) error {
	slot, err := api.slot("GET", operands[0], operands[1], nil)
	if err != nil {
		return err
	}
	if !f.ledger {
		return showSlot(stdout, f, slot)
	}
	ledger, err := api.ledger(operands[0], operands[1])
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(stdout, struct {
			*slotAnswer
			Ledger []entryAnswer `json:"ledger"`
		}{slot, ledger})
	}
	if err := writeSlot(stdout, slot); err != nil {
		return err
	}
	return writeLedger(stdout, ledger)
}

func setSlot(api *adminClient, f *slotsFlags, operands []string, stdout io.Writer) error {
	change := map[string]any{}
	if f.capacity != nil {
		change["capacity"] = *f.capacity
	}
	if f.opensAt != nil {
		change["opens_at"] = opensAtMember(*f.opensAt)
	}
	if len(change) == 0 {
		return errors.New("say what to set: --capacity N or --opens-at TIME")
	}
	return changeSlot(change)(api, f, operands, stdout)
}

// opensAtMember is --opens-at as the API takes it.
func opensAtMember(text string) any {
	if text == "none" {
		return nil
	}
	return text
}

func changeSlot(change map[string]any) func(*adminClient, *slotsFlags, []string, io.Writer) error {
	return func(api *adminClient, f *slotsFlags, operands []string, stdout io.Writer) error {
		slot, err := api.slot("PUT", operands[0], operands[1], change)
		if err != nil {
			return err
		}
		return showSlot(stdout, f, slot)
	}
}

func resyncSlot(api *adminClient, f *slotsFlags, operands []string, stdout io.Writer) error {
	slot, err := api.resync(operands[0], operands[1])
	if err != nil {
		return err
	}
	return showSlot(stdout, f, slot)
}

func showSlot(stdout io.Writer, f *slotsFlags, slot *slotAnswer) error {
	if f.json {
		return writeJSON(stdout, slot)
	}
	return writeSlot(stdout, slot)
}

func releaseHold(api *adminClient, f *slotsFlags, operands []string, stdout io.Writer) error {
	released, err := api.release(operands[0], operands[1], operands[2])
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(stdout, released)
	}
	_, err = fmt.Fprintf(stdout, "hold %s was %s and is released\n", printable(released.Hold), released.Was)
	return err
}
