package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
)

const (
	// loadWorkers call the admin API at once; the pool's max_rate bounds what they
	// cost the backend's database.
	loadWorkers = 8
	// loadShown is how many lines that failed are told one by one.
	loadShown = 20
)

// loadLine is one slot of a file, and where it stood.
type loadLine struct {
	line     int
	slot     string
	capacity *int64 // nil: as configured, or as truth says
}

// loadSlots makes slots known before an opening, so that the first requests need
// not wait for truth. It goes on after a line that fails, and fails at the end.
func loadSlots(api *adminClient, f *slotsFlags, operands []string, stdout io.Writer) error {
	if len(operands) < 1 || len(operands) > 2 {
		return errors.New("write slotgate slots load POOL FILE, or POOL alone to read standard input")
	}
	if f.capacity != nil {
		return errors.New("a capacity is written behind its slot: SLOT,CAPACITY")
	}
	source, name := f.stdin, "standard input"
	if len(operands) == 2 && operands[1] != "-" {
		file, err := os.Open(operands[1])
		if err != nil {
			return err
		}
		defer file.Close()
		source, name = file, operands[1]
	}
	lines, err := readLoad(source, name)
	if err != nil {
		return err
	}
	faults := make([]error, len(lines))
	var workers sync.WaitGroup
	next := make(chan int)
	for range loadWorkers {
		workers.Go(func() {
			for i := range next {
				faults[i] = loadSlot(api, operands[0], &lines[i], f.opensAt)
			}
		})
	}
	for i := range lines {
		next <- i
	}
	close(next)
	workers.Wait()
	return reportLoad(lines, faults, name, stdout)
}

// readLoad reads the whole file before anything is changed: a file with a mistake
// changes nothing.
func readLoad(source io.Reader, name string) ([]loadLine, error) {
	reader := csv.NewReader(source)
	reader.Comment = '#'
	reader.FieldsPerRecord = -1
	var lines []loadLine
	for {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := reader.FieldPos(0)
		l := loadLine{line: line, slot: fields[0]}
		switch {
		case len(fields) > 2:
			return nil, fmt.Errorf("%s:%d: write SLOT or SLOT,CAPACITY; a name with a comma needs quotes", name, line)
		case l.slot == "":
			return nil, fmt.Errorf("%s:%d: there is no slot", name, line)
		case len(fields) == 2:
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("%s:%d: the capacity %q is no whole number from 0", name, line, fields[1])
			}
			l.capacity = &n
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s names no slot; write one a line", name)
	}
	return lines, nil
}

func loadSlot(api *adminClient, pool string, l *loadLine, opensAt *string) error {
	change := map[string]any{}
	if l.capacity != nil {
		change["capacity"] = *l.capacity
	} else if _, err := api.resync(pool, l.slot); err != nil {
		return err
	}
	if opensAt != nil {
		change["opens_at"] = opensAtMember(*opensAt)
	}
	if len(change) == 0 {
		return nil
	}
	_, err := api.slot("PUT", pool, l.slot, change)
	return err
}

func reportLoad(lines []loadLine, faults []error, name string, stdout io.Writer) error {
	failed := 0
	for i, err := range faults {
		if err == nil {
			continue
		}
		if failed++; failed <= loadShown {
			fmt.Fprintf(stdout, "%s:%d: slot %s: %v\n", name, lines[i].line, printable(lines[i].slot), err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d slots could not be loaded", failed, len(lines))
	}
	_, err := fmt.Fprintf(stdout, "%d slots are loaded\n", len(lines))
	return err
}
