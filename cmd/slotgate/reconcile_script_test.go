package main

import (
	"database/sql"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptServe runs a gate for the rest of a script: serve FILE. $GATE and $ADMIN become
// its URLs. ${NAME} in the file is the script's.
func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve FILE")
	}
	s, err := startService(os.Expand(ts.ReadFile(args[0]), ts.Getenv))
	ts.Check(err)
	ts.Defer(func() { _ = s.stop() })
	ts.Setenv("GATE", s.gate)
	ts.Setenv("ADMIN", s.admin)
}

// scriptSQL runs the statements of a file on $DATABASE, a SQLite file: sql FILE.
func scriptSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sql FILE")
	}
	db, err := sql.Open("sqlite", ts.Getenv("DATABASE"))
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(ts.ReadFile(args[0]))
	ts.Check(err)
}
