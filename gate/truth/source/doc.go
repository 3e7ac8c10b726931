// Package source reads truth: what the backend's own data says of a slot (contract
// 2.2). It knows nothing of holds and counters; package truth makes looks of what it
// reads.
//
//	sql   a query to PostgreSQL, MySQL, MariaDB or SQLite, with the slot as parameter
//	http  a GET to the backend, with the slot in its path
//
// A read of an sql source is one transaction that is read-only and sees one snapshot,
// so that a value and its total belong together. It runs on one of a few connections,
// which a failed read does not leave behind. The slot is a bound parameter and finds
// the row that spells it exactly so (see grammar.compile): one that only the laxer
// equality of a database would find is missing, as is one that the column's type
// cannot hold. What an http source's backend takes for one slot is the backend's to
// say; a rule's `as: integer` and `case: fold` keep its spellings out.
//
// Errors name the setting that has to change, and neither a DSN, whatever is wrong
// with it, nor a header.
package source
