package source

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

type postgres struct {
	// named: statements may outlive their transaction. Behind a pooler they may not;
	// default_query_exec_mode in the DSN says so.
	named bool
}

func openPostgres(dsn string, timeout time.Duration) (*sql.DB, dialect, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The driver's own error quotes what it was given.
		return nil, nil, errors.New("want postgres://user:password@host:5432/database, or host=… user=… dbname=…")
	}
	if config.ConnectTimeout <= 0 || config.ConnectTimeout > timeout {
		config.ConnectTimeout = timeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "slotgate"
	}
	return stdlib.OpenDB(*config), postgres{named: config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement}, nil
}

// grammar: casting to text takes the padding off character(n), and the collation
// "C" compares bytes also where the column's own takes several texts for equal.
func (postgres) grammar() grammar {
	return grammar{numbered: true, dollars: true, exactMatch: func(operand, placeholder string) string {
		return fmt.Sprintf(`(%s)::text COLLATE "C" = %s`, operand, placeholder)
	}}
}

func (postgres) snapshot() *sql.TxOptions {
	return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
}

// holds prepares the statement, if it can once for each connection, to learn the type
// that the server has given to the slot. It would answer a slot that this type cannot
// spell with an error that looks like one of the data.
func (p postgres) holds(ctx context.Context, conn *sql.Conn, s *statement, slot string) (holds bool, err error) {
	err = conn.Raw(func(c any) error {
		name := ""
		if p.named {
			name = s.text // under which pgx finds it when it is run
		}
		prepared, err := c.(*stdlib.Conn).Conn().Prepare(ctx, name, s.text)
		if err != nil {
			return err
		}
		if got := len(prepared.ParamOIDs); got != s.args {
			return fmt.Errorf("PostgreSQL reads %d parameters where %d were written", got, s.args)
		}
		holds = spells(prepared.ParamOIDs[0], slot)
		return nil
	})
	return holds, err
}

var (
	decimalPattern = regexp.MustCompile(`^-?[0-9]{1,1000}(\.[0-9]{1,1000})?$`)
	uuidPattern    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// spells tells whether the type has a value that it writes like this.
func spells(oid uint32, slot string) bool {
	switch oid {
	case pgtype.Int2OID:
		return isInteger(slot, 16)
	case pgtype.Int4OID:
		return isInteger(slot, 32)
	case pgtype.Int8OID:
		return isInteger(slot, 64)
	case pgtype.NumericOID:
		return decimalPattern.MatchString(slot)
	case pgtype.UUIDOID:
		return uuidPattern.MatchString(slot)
	}
	return true
}

// isInteger takes the one spelling of an integer: no plus sign, no leading zero.
func isInteger(slot string, bits int) bool {
	n, err := strconv.ParseInt(slot, 10, bits)
	return err == nil && strconv.FormatInt(n, 10) == slot
}

func (postgres) foreign(error, string) bool { return false }

func (postgres) passing(error) bool { return false }
