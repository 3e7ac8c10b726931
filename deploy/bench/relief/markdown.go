package relief

import (
	"bytes"
	"fmt"
	"io"
)

// WriteMarkdown writes the rows as a table.
func WriteMarkdown(w io.Writer, rows []Row) error {
	var table bytes.Buffer
	table.WriteString("| API | before it | reached the API | transactions | lock waits | database CPU s | booked | told neither | all answered after s | p99 hot ms | p99 others ms (calm) |\n")
	table.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&table, "| %s | %s | %d | %d | %d | %.1f | %d | %d | %.2f | %.0f | %.1f (%.1f) |\n",
			r.Style, r.Front, r.Arrived, r.Transactions, r.LockWaits, r.DatabaseCPU, r.Booked, r.Unserved, r.HotSeconds, r.HotP99, r.OthersP99, r.CalmP99)
	}
	_, err := table.WriteTo(w)
	return err
}
