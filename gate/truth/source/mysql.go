package source

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"
)

type mySQL struct{}

func openMySQL(dsn string, timeout time.Duration) (*sql.DB, dialect, error) {
	want := errors.New("want user:password@tcp(host:3306)/database")
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, nil, want // the driver's own error quotes what it was given
	}
	config.MultiStatements = false
	config.InterpolateParams = false
	config.ParseTime = true
	config.Logger = &mysql.NopLogger{} // it would write to standard error; looks return their errors
	for _, limit := range []*time.Duration{&config.Timeout, &config.ReadTimeout, &config.WriteTimeout} {
		if *limit <= 0 || *limit > timeout {
			*limit = timeout
		}
	}
	if config.Apply(mysql.Charset("utf8mb4", "")) != nil {
		return nil, nil, want
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, nil, want
	}
	return sql.OpenDB(connector), mySQL{}, nil
}

// grammar: the bytes of UTF-8 are compared, since collations differ in what letter
// case, accents and trailing blanks mean.
func (mySQL) grammar() grammar {
	return grammar{backslash: true, exactMatch: func(operand, placeholder string) string {
		return fmt.Sprintf("CAST(CONVERT(%s USING utf8mb4) AS BINARY) = %s", operand, placeholder)
	}}
}

func (mySQL) snapshot() *sql.TxOptions {
	return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
}

// foreign: a column in latin1 cannot be compared with text beyond it. ASCII is in
// every character set: if such a slot fails like this, the query is wrong.
func (mySQL) foreign(err error, slot string) bool {
	const illegalMixOfCollations = 1267 // ER_CANT_AGGREGATE_2COLLATIONS
	var failed *mysql.MySQLError
	return errors.As(err, &failed) && failed.Number == illegalMixOfCollations && !isASCII(slot)
}

func (mySQL) passing(error) bool { return false }

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// holds: a text that no number spells is compared as 0 or by its leading digits,
// and then not found, since the spelling differs.
func (mySQL) holds(context.Context, *sql.Conn, *statement, string) (bool, error) { return true, nil }
