package booking

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/slotgate/slotgate/deploy/schema"
)

// mysqlConnections is the pool of a typical application server.
const mysqlConnections = 32

// mysql is MySQL or MariaDB at its own isolation level, REPEATABLE READ. Every
// transaction here begins with a statement that locks the lesson, so that what it
// reads afterwards is no older than the lock.
type mysql struct {
	address   string
	database  string
	connector driver.Connector
}

// newMySQL takes mysql://user:password@host:port/database, with the parameters of
// the driver behind a question mark.
func newMySQL(address string) (mysql, error) {
	want := errors.New("database URL: want mysql://user:password@host:3306/database")
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" { // the error itself quotes the password
		return mysql{}, want
	}
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	config, err := mysqldriver.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return mysql{}, want
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr = "tcp", net.JoinHostPort(u.Hostname(), port)
	config.DBName = strings.TrimPrefix(u.Path, "/")
	config.MultiStatements = true // for the schema
	config.Logger = &mysqldriver.NopLogger{}
	if config.Params == nil {
		config.Params = make(map[string]string)
	}
	config.Params["time_zone"] = "'+00:00'" // columns hold times without a zone
	connector, err := mysqldriver.NewConnector(config)
	if err != nil {
		return mysql{}, want
	}
	return mysql{address: config.Addr, database: config.DBName, connector: connector}, nil
}

func (m mysql) name() string {
	return fmt.Sprintf("MySQL database %q at %s", m.database, m.address)
}

func (m mysql) open() *sql.DB {
	db := sql.OpenDB(m.connector)
	db.SetMaxOpenConns(mysqlConnections)
	db.SetMaxIdleConns(mysqlConnections)
	return db
}

func (mysql) tables(constraints bool) string {
	if constraints {
		return schema.MySQL
	}
	return schema.MySQLUnconstrained
}

func (mysql) tablesExist() string {
	return `SELECT EXISTS (SELECT 1 FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name = 'lesson_slot')`
}

var numberedParameter = regexp.MustCompile(`\$[0-9]+`)

// bind writes $1 as ?, once for each use.
func (mysql) bind(query string, args []any) (string, []any) {
	var bound []any
	query = numberedParameter.ReplaceAllStringFunc(query, func(parameter string) string {
		n, _ := strconv.Atoi(parameter[1:]) // digits only
		bound = append(bound, args[n-1])
		return "?"
	})
	return query, bound
}

func (mysql) addLesson() string {
	return "INSERT INTO lesson_slot (slot_id, remain) VALUES ($1, $2) ON DUPLICATE KEY UPDATE slot_id = slot_id"
}

// insert: MySQL, unlike MariaDB, has no RETURNING.
func (mysql) insert(ctx context.Context, s statements, query string, args []any) (int64, error) {
	result, err := s.execute(ctx, query, args)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (mysql) forUpdate() string { return " FOR UPDATE" }

func (mysql) enter(func()) {}

func (mysql) leave() {}

// rowLocked locks the row, if it can at once. A consistent read would be no probe: it
// would fix what the transaction sees before it has the lock.
func (m mysql) rowLocked(ctx context.Context, tx *sql.Tx, where string, args []any) (bool, error) {
	query, args := m.bind("SELECT 1 FROM lesson_slot WHERE "+where+" FOR UPDATE NOWAIT", args)
	var one int
	err := tx.QueryRowContext(ctx, query, args...).Scan(&one)
	switch mysqlError(err) {
	case 1205, 3572: // MariaDB: ER_LOCK_WAIT_TIMEOUT; MySQL: ER_LOCK_NOWAIT
		return true, nil // the transaction goes on, the statement alone has failed
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return false, err
}

// classify reads error numbers; sources: MySQL Server Error Reference, MariaDB Error
// Code Reference.
func (mysql) classify(err error) violation {
	switch mysqlError(err) {
	case 4025, 3819: // MariaDB: ER_CONSTRAINT_FAILED; MySQL: ER_CHECK_CONSTRAINT_VIOLATED
		return checkViolation
	case 1062: // ER_DUP_ENTRY
		return uniqueViolation
	case 1213, 1205, 1020: // ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT, ER_CHECKREAD
		return lostRace
	}
	return noViolation
}

// mysqlError returns the number of an error of the server, 0 for another.
func mysqlError(err error) uint16 {
	var failure *mysqldriver.MySQLError
	if errors.As(err, &failure) {
		return failure.Number
	}
	return 0
}
