package rules

import (
	"fmt"
	"strings"
	"testing"
)

func TestQueries(t *testing.T) {
	const (
		reads     = "a look only reads: begin"
		writes    = "a look only reads and locks nothing"
		several   = "goes on behind a semicolon"
		none      = "has no parameter"
		open      = "not closed"
		parameter = "and the slot is the only one"
	)
	for _, row := range []struct{ driver, query, want string }{
		{"postgres", "SELECT remain FROM slot WHERE id = $1", ""},
		{"postgres", "  -- remaining seats\n select n - $1::int /* ; /* nested */ ? */ from a where b=$1 ;\n -- done\n", ""},
		{"postgres", "WITH s AS (SELECT $1::text AS id) SELECT 'a;b', \"c;d\", $$;$2$$, $q$ ; $$ $q$, E'\\';' FROM s", ""},
		{"postgres", "SELECT data->'a' ? 'b' FROM t WHERE id = $1", ""},
		{"postgres", "SELECT \"delete\", deleted_at, 'update' FROM t WHERE a$2 = $1", ""},
		{"postgres", "SELECT a[1:2] FROM t WHERE id = $1", ""},
		{"postgres", "", "is empty"},
		{"postgres", "()", reads},
		{"postgres", "-- SELECT", reads},
		{"postgres", "UPDATE slot SET a = 1 WHERE id = $1", reads},
		{"postgres", "CALL remain($1)", reads},
		{"postgres", "EXPLAIN SELECT a WHERE b = $1", reads},
		{"postgres", "SELECT a FROM t WHERE id = $1; DROP TABLE t", several},
		{"postgres", "SELECT a FROM t WHERE id = $1;;", several},
		{"postgres", "SELECT a FROM t WHERE id = $1; ()", several},
		{"postgres", "SELECT a FROM t WHERE id = $1 FOR UPDATE", writes + ", and the query says UPDATE"},
		{"postgres", "WITH d AS (DELETE FROM t WHERE id = $1 RETURNING a) SELECT a FROM d", writes + ", and the query says DELETE"},
		{"postgres", "SELECT a INTO b FROM t WHERE id = $1", writes + ", and the query says INTO"},
		{"postgres", "SELECT a FROM t", none},
		{"postgres", "SELECT a FROM t WHERE id = '$1'", none},
		{"postgres", "SELECT a FROM t WHERE id = ?", "write $1 instead of ?"},
		{"postgres", "SELECT a FROM t WHERE id = {slot}", "write $1 instead of {slot}"},
		{"postgres", "SELECT a FROM t WHERE id = $1 AND b = $2", "has the parameter $2, " + parameter},
		{"postgres", "SELECT a FROM t WHERE id = $12", "has the parameter $12, " + parameter},
		{"postgres", "SELECT 'a FROM t WHERE id = $1", "a quote that is " + open},
		{"postgres", "SELECT \"a FROM t WHERE id = $1", "a quote that is " + open},
		{"postgres", "SELECT a /* b /* c */ FROM t WHERE id = $1", "a comment that is " + open},
		{"postgres", "SELECT $a$ FROM t WHERE id = $1 $b$", "a dollar-quoted text that is " + open},
		{"postgres", "SELECT E'a\\' FROM t WHERE id = $1", open},

		{"mysql", "SELECT remain FROM slot WHERE id = ?", ""},
		{"mysql", "SELECT `a;?`, 'b\\'?', \"c\\\"?\", 5--1 # ; ?\n FROM t -- ?\n WHERE id = ?;", ""},
		{"mysql", "SELECT a /* ? */ FROM t WHERE id = ? /* b */", ""},
		{"mysql", "SELECT a FROM t WHERE id = ? AND b = ?", "has 2 parameters, and the slot is bound once"},
		{"mysql", "SELECT a FROM t WHERE id = $1", "write ? instead of $1"},
		{"mysql", "SELECT a /*! INTO OUTFILE 'b' */ FROM t WHERE id = ?", "a /*! comment"},
		{"mysql", "SELECT a /*M! FOR UPDATE */ FROM t WHERE id = ?", "a /*! comment"},
		{"mysql", "SELECT a FROM t WHERE id = ? --; ()", several},
		{"mysql", "SELECT a FROM t WHERE id = ? INTO OUTFILE 'b'", "the query says INTO"},
		{"mysql", "SELECT `a FROM t WHERE id = ?", open},

		{"sqlite", "SELECT remain FROM slot WHERE id = ?", ""},
		{"sqlite", "SELECT [a;?], `b?`, 'c\\' FROM t WHERE id = ? --;", ""},
		{"sqlite", "SELECT a FROM t WHERE id = ?1", "has the parameter ?1, " + parameter},
		{"sqlite", "SELECT a FROM t WHERE id = :slot", "has the parameter :slot, " + parameter + ": write ?"},
		{"sqlite", "SELECT a FROM t WHERE id = @slot", "has the parameter @slot"},
		{"sqlite", "SELECT a FROM t WHERE id = $1", "has the parameter $1"},
		{"sqlite", "SELECT a FROM t WHERE id = ? OR id = ?", "has 2 parameters"},
		{"sqlite", "SELECT [a FROM t WHERE id = ?", "a [ that is " + open},
	} {
		t.Run(row.driver+" "+row.query, func(t *testing.T) {
			src := edit(t, "lessons:", fmt.Sprintf("capacity: { sql: { driver: %s, dsn: d, query: %q } }", row.driver, row.query))
			if row.want == "" {
				load(t, src, LoadOptions{})
				return
			}
			expectFault(t, strings.Replace(src, "query: ", "query: «", 1), row.want, LoadOptions{})
		})
	}
}

// FuzzReadSQL: every text comes to an end, and what is read lies in it.
func FuzzReadSQL(f *testing.F) {
	f.Add("SELECT a FROM t WHERE id = $1")
	f.Add("$a$ $1 '\\")
	f.Add("/* /*! # -- \n ? :a [")
	f.Fuzz(func(t *testing.T, query string) {
		for _, driver := range []string{"postgres", "mysql", "sqlite"} {
			for _, p := range readSQL(driver, query).parameters {
				if !strings.Contains(query, p) {
					t.Errorf("%s: %q has no %q", driver, query, p)
				}
			}
		}
	})
}
