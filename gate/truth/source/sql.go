package source

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

const (
	// connections to a database are few: looks are bounded by max_rate, and what is
	// in front of the backend must not use up its database's sessions.
	connections = 4
	// maxIdleTime and maxLifetime end connections, so that a changed address, role
	// or table is followed.
	maxIdleTime = time.Minute
	maxLifetime = 5 * time.Minute
)

// dialect is what differs between the databases.
type dialect interface {
	grammar() grammar
	// snapshot are the options of a transaction that reads one state and cannot write.
	snapshot() *sql.TxOptions
	// holds tells whether the column that the statement compares with the slot could
	// have it as a value. A database that fails on what could not needs it.
	holds(ctx context.Context, conn *sql.Conn, s *statement, slot string) (bool, error)
	// foreign tells whether a statement failed because its column cannot spell the slot.
	foreign(err error, slot string) bool
	// passing tells whether the same statement may succeed in a moment.
	passing(err error) bool
}

// sqlSource looks with queries. See statement for how a slot is compared.
type sqlSource struct {
	db      *sql.DB
	dialect dialect
	meaning meaning
	query   *statement
	total   *statement // nil: none
}

func openSQL(cfg *rules.TruthConfig, o Options) (Source, error) {
	c := cfg.SQL
	db, dialect, err := openDatabase(c.Driver, c.DSN, cfg.Timeout)
	if err != nil {
		return nil, fmt.Errorf("truth: sql.dsn: %w", err)
	}
	source, err := newSQLSource(cfg, db, dialect, o)
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("truth: %w", err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(maxIdleTime)
	db.SetConnMaxLifetime(maxLifetime)
	return source, nil
}

func newSQLSource(cfg *rules.TruthConfig, db *sql.DB, d dialect, o Options) (Source, error) {
	compile := func(setting, query string) (*statement, error) {
		s, err := d.grammar().compile(setting, query)
		if err == nil && !s.exact {
			o.Log.Warn("truth: a query does not compare a column with the slot as \"column = parameter\":"+
				" slots that the database takes for equal share what it counts", "setting", setting)
		}
		return s, err
	}
	s := &sqlSource{db: db, dialect: d, meaning: meaning{means: cfg.SQL.Means, total: cfg.SQL.Total.Units}}
	var err error
	if s.query, err = compile("sql.query", cfg.SQL.Query); err != nil {
		return nil, err
	}
	if cfg.SQL.Means == rules.MeansBooked && cfg.SQL.Total.Query != "" {
		if s.total, err = compile("sql.total.query", cfg.SQL.Total.Query); err != nil {
			return nil, err
		}
	}
	if cfg.Bookings == nil {
		return s, nil
	}
	list, err := compile("bookings.query", cfg.Bookings.Query)
	if err != nil {
		return nil, err
	}
	return &sqlBookings{sqlSource: s, list: list}, nil
}

// openDatabase prepares a pool of read-only connections; it does not connect.
func openDatabase(driver, dsn string, timeout time.Duration) (*sql.DB, dialect, error) {
	if timeout <= 0 {
		timeout = 2 * time.Second
	}
	switch driver {
	case "postgres":
		return openPostgres(dsn, timeout)
	case "mysql":
		return openMySQL(dsn, timeout)
	case "sqlite":
		return openSQLite(dsn)
	}
	return nil, nil, fmt.Errorf("unknown driver %q: want postgres, mysql or sqlite", driver)
}

// CheckDSN tells what is wrong with a dsn, in words that do not show it. It does not
// connect.
func CheckDSN(driver, dsn string) error {
	db, _, err := openDatabase(driver, dsn, 0)
	if err != nil {
		return err
	}
	return db.Close()
}

func (s *sqlSource) Close() error { return s.db.Close() }

func (s *sqlSource) Read(ctx context.Context, slot string) (v Value, err error) {
	if !spellable(slot) {
		return Value{Missing: true}, nil
	}
	err = s.look(ctx, func(l *look) error {
		total := store.Learned
		if s.total != nil {
			of, err := l.one(s.total, slot)
			if v = of.empty(); err != nil || v.Missing || v.None {
				return err
			}
			if total, err = whole(of.value); err != nil {
				return fmt.Errorf("%s: %w", s.total.setting, err)
			}
		}
		c, err := l.one(s.query, slot)
		if v = c.empty(); err != nil || v.Missing || v.None {
			return err
		}
		n, err := whole(c.value)
		if err == nil {
			v, err = s.meaning.value(n, total)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.query.setting, err)
		}
		return nil
	})
	if err != nil {
		return Value{}, fmt.Errorf("truth: %w", err)
	}
	return v, nil
}

// spellable is false for what no column of text holds in every database: NUL, and
// what is not UTF-8.
func spellable(slot string) bool {
	return utf8.ValidString(slot) && strings.IndexByte(slot, 0) < 0
}

// look is a read-only transaction: all its statements see one state of the database.
type look struct {
	ctx     context.Context
	conn    *sql.Conn
	tx      *sql.Tx
	dialect dialect
}

func (s *sqlSource) look(ctx context.Context, read func(*look) error) error {
	for tries := 1; ; tries++ {
		err := s.lookOnce(ctx, read)
		if err == nil || !s.dialect.passing(err) || tries == passingTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(passingPause):
		}
	}
}

// What passes is over in a moment, or stays.
const (
	passingTries = 50
	passingPause = 5 * time.Millisecond
)

func (s *sqlSource) lookOnce(ctx context.Context, read func(*look) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, s.dialect.snapshot())
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	err = read(&look{ctx: ctx, conn: conn, tx: tx, dialect: s.dialect})
	if rollback := tx.Rollback(); err == nil && rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
		err = fmt.Errorf("end: %w", rollback)
	}
	if err != nil {
		// A new one knows nothing of a table or a role that has changed since.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}

// query runs a statement; rows is nil if the slot cannot be a value of its column.
func (l *look) query(s *statement, slot string) (rows *sql.Rows, err error) {
	holds, err := l.dialect.holds(l.ctx, l.conn, s, slot)
	if err == nil && holds {
		rows, err = l.tx.QueryContext(l.ctx, s.text, s.arguments(slot)...)
	}
	if err != nil && l.dialect.foreign(err, slot) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.setting, err)
	}
	return rows, nil
}

// cell is the one value of a row.
type cell struct {
	found bool
	value any
}

// empty is the Value of a cell that has none; it is zero for one that has.
func (c cell) empty() Value {
	return Value{Missing: !c.found, None: c.found && c.value == nil}
}

// one reads a statement's only value.
func (l *look) one(s *statement, slot string) (c cell, err error) {
	rows, err := l.query(s, slot)
	if err != nil || rows == nil {
		return cell{}, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err == nil && len(columns) != 1 {
		err = fmt.Errorf("gives %d columns (%s): want one", len(columns), strings.Join(columns, ", "))
	}
	if err == nil && rows.Next() {
		c.found = true
		err = rows.Scan(&c.value)
		if err == nil && rows.Next() {
			err = errors.New("gives several rows for one slot: want one")
		}
	}
	if err == nil {
		err = rows.Err()
	}
	if err != nil {
		return cell{}, fmt.Errorf("%s: %w", s.setting, err)
	}
	return c, nil
}
