// Package rig runs the programs that are measured and accounts for the CPU time and
// the memory they take.
//
//	Rig        one temporary folder with the binaries under test
//	Process    one running program, which ends with us
//	Redis      a redis-server, empty and without persistence
//	Postgres   a PostgreSQL with an empty database
//	Load       wrk, and what it saw
//	Snapshot   the CPU time of every process at one moment
//
// Everything listens on 127.0.0.1 on ports that were free, keeps its files in the
// rig's folder and is stopped by its process id. Should this process be killed, the
// kernel ends the others (parent-death signal). The package needs Linux.
package rig
