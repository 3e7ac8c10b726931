// Package schema holds the tables of the sample legacy booking API as SQL, one
// file for each database, with and without the constraints that keep the data
// right whatever the code above them does.
package schema

import _ "embed"

var (
	//go:embed postgres.sql
	Postgres string
	//go:embed postgres-unconstrained.sql
	PostgresUnconstrained string
	//go:embed mysql.sql
	MySQL string
	//go:embed mysql-unconstrained.sql
	MySQLUnconstrained string
	//go:embed sqlite.sql
	SQLite string
	//go:embed sqlite-unconstrained.sql
	SQLiteUnconstrained string
)
