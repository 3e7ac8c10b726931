package source

import (
	"fmt"
	"strings"
	"testing"
)

// Slots that a database may take for another one's spelling.
var strangers = []string{
	"", " ", "abc", "007", "0007", "07", "+7", "-7", " 7", "7 ", "\t7", "7\n", "7.0", "7.", "7e0", "70e-1", "0x7", "7abc", "7;", "7'",
	"７", "٧", "7\u00a0", "'7'", `"7"`, "7 OR 1=1", "7/**/", "1", "8", "true", "NULL", "null", "%", "_",
	"9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551623", "4294967303",
	"7\x00", "\x00", "7\xff", "\xff\xfe", strings.Repeat("7", 300), strings.Repeat("x", 1<<16), "0" + strings.Repeat("0", 1<<16) + "7",
}

func TestAnIntegerColumnHasOneSpelling(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database) {
		for _, kind := range []string{"smallint", "int", "bigint", "numeric(20)"} {
			d.do("CREATE TABLE slots (slot "+kind+" PRIMARY KEY, n int)", "INSERT INTO slots VALUES (7, 70), (0, 11), (-3, 33)")
			s := d.bySlot()
			for slot, want := range map[string]int64{"7": 70, "0": 11, "-3": 33} {
				if got := read(t, s, slot); got != left(want) {
					t.Errorf("%s: slot %q is %+v, want %d left", kind, slot, got, want)
				}
			}
			for _, slot := range append(strangers, "-0", "00") {
				if got := read(t, s, slot); got != missing {
					t.Errorf("%s: slot %.40q is %+v, want none", kind, slot, got)
				}
			}
			d.do("DROP TABLE slots")
		}
	})
}

// A double cannot tell these apart, and MySQL compares text with integers as doubles.
func TestLargeIntegersAreExact(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE slots (slot bigint PRIMARY KEY, n int)",
			"INSERT INTO slots VALUES (9007199254740992, 2), (9007199254740993, 3), (9223372036854775806, 6)")
		s := d.bySlot()
		for slot, want := range map[string]Value{
			"9007199254740992": left(2), "9007199254740993": left(3), "9007199254740994": missing,
			"9223372036854775806": left(6), "9223372036854775807": missing,
		} {
			if got := read(t, s, slot); got != want {
				t.Errorf("slot %s is %+v, want %+v", slot, got, want)
			}
		}
	})
}

func TestATextColumnIsComparedByteForByte(t *testing.T) {
	kinds := map[string][]string{
		"postgres": {"text", "varchar(255)", "char(20)", `text COLLATE caseless`},
		"mysql": {
			"varchar(255)", "char(20)", "varchar(255) COLLATE utf8mb4_unicode_ci", "varchar(255) COLLATE utf8mb4_bin",
			"varchar(255) CHARACTER SET latin1", "varchar(255) CHARACTER SET utf8mb3", "varchar(190) COLLATE utf8mb4_nopad_bin",
		},
		"sqlite": {"text", "varchar(255)", "text COLLATE NOCASE", "text COLLATE RTRIM", ""},
	}
	onEachDatabase(t, func(t *testing.T, d database) {
		if d.driver == "postgres" {
			d.do("CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		for _, kind := range kinds[d.driver] {
			d.do("CREATE TABLE slots (slot "+kind+" PRIMARY KEY, n int)",
				"INSERT INTO slots VALUES ('A1', 1), ('007', 2), ('é', 3), ('straße', 4), ('it''s', 5)")
			s := d.bySlot()
			for slot, want := range map[string]int64{"A1": 1, "007": 2, "é": 3, "straße": 4, "it's": 5} {
				if got := read(t, s, slot); got != left(want) {
					t.Errorf("%s: slot %q is %+v, want %d left", kind, slot, got, want)
				}
			}
			for _, slot := range []string{
				"a1", "A1 ", " A1", "A1\t", "A1\x00", "A１", "A😀", "Á1", "A1\u200b", "7", "07", "0007", "7.0", "e", "É", "e\u0301", "strasse", "STRASSE",
				"its", `it\'s`, "it''s", "", "\xe9", strings.Repeat("A1", 1<<15),
			} {
				if got := read(t, s, slot); got != missing {
					t.Errorf("%s: slot %.40q is %+v, want none", kind, slot, got)
				}
			}
			d.do("DROP TABLE slots")
		}
	})
}

// The spelling is only looked at in the rows that an index finds.
func TestTheIndexOfTheColumnIsUsed(t *testing.T) {
	explain := map[string]struct{ prefix, found string }{
		"postgres": {"EXPLAIN ", "Index"},
		"mysql":    {"EXPLAIN FORMAT=JSON ", `"key": "by_slot"`},
		"sqlite":   {"EXPLAIN QUERY PLAN ", "SEARCH"},
	}
	onEachDatabase(t, func(t *testing.T, d database) {
		for _, kind := range []string{"int", "bigint", "varchar(50)", "char(10)"} {
			rows := make([]string, 2000)
			for i := range rows {
				rows[i] = fmt.Sprintf("('%d', %d)", i, i)
			}
			d.do("CREATE TABLE slots (slot "+kind+" NOT NULL, n int)", "CREATE INDEX by_slot ON slots (slot)",
				"INSERT INTO slots VALUES "+strings.Join(rows, ", "))
			if d.driver != "sqlite" {
				d.do(map[string]string{"postgres": "ANALYZE slots", "mysql": "ANALYZE TABLE slots"}[d.driver])
			}
			s := d.bySlot().(*sqlSource).query
			var plan strings.Builder
			// The type is named so that no session takes it for the statement of another type.
			lines, err := d.Query(explain[d.driver].prefix+s.text+" /* "+kind+" */", s.arguments("70")...)
			if err != nil {
				t.Fatal(err)
			}
			columns, _ := lines.Columns()
			for lines.Next() {
				row := make([]any, len(columns))
				for i := range row {
					row[i] = new(any)
				}
				if err := lines.Scan(row...); err != nil {
					t.Error(err)
				}
				fmt.Fprintln(&plan, spelling(*row[len(row)-1].(*any)))
			}
			lines.Close()
			if !strings.Contains(plan.String(), explain[d.driver].found) {
				t.Errorf("%s: the plan of %s is\n%s", kind, s.text, &plan)
			}
			d.do("DROP TABLE slots")
		}
	})
}

func TestOtherTypesAreSpelledAsTheDatabaseDoes(t *testing.T) {
	d := databases["postgres"](t)
	d.do("CREATE TABLE slots (slot uuid PRIMARY KEY, n int)", "INSERT INTO slots VALUES ('0f8fad5b-d9cb-469f-a165-70867728950e', 7)")
	s := d.bySlot()
	for slot, want := range map[string]Value{
		"0f8fad5b-d9cb-469f-a165-70867728950e": left(7), "0F8FAD5B-D9CB-469F-A165-70867728950E": missing,
		"{0f8fad5b-d9cb-469f-a165-70867728950e}": missing, "0f8fad5bd9cb469fa16570867728950e": missing, "abc": missing, "": missing,
	} {
		if got := read(t, s, slot); got != want {
			t.Errorf("slot %q is %+v, want %+v", slot, got, want)
		}
	}
	d.do("DROP TABLE slots", "CREATE TABLE slots (slot timestamptz PRIMARY KEY, n int)", "INSERT INTO slots VALUES ('2026-12-01T10:00:00Z', 7)")
	s = d.source("SELECT n FROM slots WHERE slot = $1::timestamptz")
	for slot, want := range map[string]Value{"2026-12-01T10:00:00Z": left(7), "2026-12-01 11:00+01": left(7), "2026-12-01T11:00:00Z": missing} {
		if got := read(t, s, slot); got != want {
			t.Errorf("slot %q is %+v, want %+v: a cast is the query's own comparison", slot, got, want)
		}
	}
}

var (
	numbered = postgres{}.grammar()
	question = sqlite{}.grammar()
	mysqls   = mySQL{}.grammar()
)

func TestCompileAddsTheSpelling(t *testing.T) {
	pg := func(operand string) string { return fmt.Sprintf(`(%s)::text COLLATE "C" = $2`, operand) }
	lite := func(operand string) string { return fmt.Sprintf(`CAST(%s AS TEXT) = ? COLLATE BINARY`, operand) }
	my := func(operand string) string {
		return fmt.Sprintf(`CAST(CONVERT(%s USING utf8mb4) AS BINARY) = ?`, operand)
	}
	for _, test := range []struct {
		grammar     grammar
		query, want string
		args        int
	}{
		{numbered, "SELECT n FROM t WHERE a = $1", "SELECT n FROM t WHERE (a = $1 AND " + pg("a") + ")", 2},
		{numbered, "SELECT n FROM t WHERE $1=t.a;", "SELECT n FROM t WHERE ($1=t.a AND " + pg("t.a") + ");", 2},
		{numbered, `SELECT n FROM t WHERE x AND "A b"."c""d"=$1 LIMIT 1`, `SELECT n FROM t WHERE x AND ("A b"."c""d"=$1 AND ` + pg(`"A b"."c""d"`) + ") LIMIT 1", 2},
		{numbered, "SELECT n FROM t WHERE lower(s.a, (b)) = $1", "SELECT n FROM t WHERE (lower(s.a, (b)) = $1 AND " + pg("lower(s.a, (b))") + ")", 2},
		{numbered, "SELECT n FROM t WHERE f.g(a) = $1", "SELECT n FROM t WHERE (f.g(a) = $1 AND " + pg("f.g(a)") + ")", 2},
		{numbered, "SELECT n FROM t WHERE a::text = $1", "SELECT n FROM t WHERE (a::text = $1 AND " + pg("a::text") + ")", 2},
		{numbered, "SELECT n FROM t WHERE (a + b) = $1", "SELECT n FROM t WHERE ((a + b) = $1 AND " + pg("(a + b)") + ")", 2},
		{numbered, "SELECT n FROM t WHERE $1 = f(a)::text OR a", "SELECT n FROM t WHERE ($1 = f(a)::text AND " + pg("f(a)::text") + ") OR a", 2},
		{
			numbered, "SELECT (SELECT c FROM u WHERE u.a = $1) - n FROM t WHERE t.a = $1",
			"SELECT (SELECT c FROM u WHERE (u.a = $1 AND " + pg("u.a") + ")) - n FROM t WHERE (t.a = $1 AND " + pg("t.a") + ")", 2,
		},
		{
			question, "SELECT (SELECT c FROM u WHERE u.a = ?) - n FROM t WHERE ? = [a b]",
			"SELECT (SELECT c FROM u WHERE (u.a = ? AND " + lite("u.a") + ")) - n FROM t WHERE (? = [a b] AND " + lite("[a b]") + ")", 4,
		},
		{question, "SELECT '?', \"?\" FROM t WHERE a == ? -- ?", "SELECT '?', \"?\" FROM t WHERE (a == ? AND " + lite("a") + ") -- ?", 2},
		{mysqls, "SELECT `n` FROM t WHERE `a b`=? # ?", "SELECT `n` FROM t WHERE (`a b`=? AND " + my("`a b`") + ") # ?", 2},
		{mysqls, `SELECT 'it\'s?' FROM t WHERE a = ? /* ? */`, `SELECT 'it\'s?' FROM t WHERE (a = ? AND ` + my("a") + `) /* ? */`, 2},
		{numbered, "SELECT $$ $9 $$, $a$ $9 $$ $a$, E'\\'$9', '$9' /* /* $9 */ $9 */ WHERE a = $1", "SELECT $$ $9 $$, $a$ $9 $$ $a$, E'\\'$9', '$9' /* /* $9 */ $9 */ WHERE (a = $1 AND " + pg("a") + ")", 2},
	} {
		s, err := test.grammar.compile("sql.query", test.query)
		if err != nil || s.text != test.want || s.args != test.args || !s.exact {
			t.Errorf("%s\nis %+v (%v)\nwant %s with %d", test.query, s, err, test.want, test.args)
		}
	}
}

// What is not a plain comparison of whole operands stays as it is.
func TestCompileLeavesOtherComparisonsAlone(t *testing.T) {
	for _, condition := range []string{
		"a = ANY($1)", "$1 = ANY(a)", "a IN ($1)", "a <> $1", "a <= $1", "a >= $1", "a LIKE $1", "a = $1::bigint", "a = CAST($1 AS bigint)",
		"a = f($1)", "a = $1 || 'x'", "a = $1 + 1", "a + b = $1", "x - f(a) = $1", "a || b = $1", "$1 = a + 1", "-a = $1", "a[1] = $1", "$1 = 5.", "f($1)",
		"a = $1 COLLATE x", "CASE WHEN x THEN 1 END = $1", "a IS NOT DISTINCT FROM $1", "(a, b) = ($1, 2)", ") = $1", "= $1", "$1 =", "$1 = (a", "$1",
	} {
		query := "SELECT n FROM t WHERE " + condition
		s, err := numbered.compile("sql.query", query)
		if err != nil || s.text != query || s.exact || s.args != 1 {
			t.Errorf("%s becomes %+v (%v), want it unchanged and not exact", query, s, err)
		}
	}
}

func TestCompileWantsOneStatementWithTheSlotAlone(t *testing.T) {
	for _, test := range []struct {
		grammar     grammar
		query, says string
	}{
		{numbered, "SELECT 1", "$1"},
		{numbered, "SELECT n FROM t WHERE a = '$1'", "no parameter"},
		{numbered, "SELECT n FROM t WHERE a = ?", "$1"},
		{numbered, "SELECT n FROM t WHERE a = $1 AND b = $2", "$2"},
		{numbered, "SELECT n FROM t WHERE a = $10", "$10"},
		{numbered, "SELECT n FROM t WHERE a = $1; DELETE FROM t", "more than one"},
		{question, "SELECT n FROM t WHERE a = '?' /* ? */ -- ?", "?"},
		{question, "SELECT n FROM t WHERE a = ?; DELETE FROM t", "more than one"},
		{mysqls, "SELECT 1", "write ?"},
		{question, "", "no parameter"},
	} {
		s, err := test.grammar.compile("sql.query", test.query)
		if err == nil || !strings.HasPrefix(err.Error(), "sql.query: ") || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s becomes %+v (%v), want an error with %q", test.query, s, err, test.says)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		"SELECT n FROM t WHERE a = $1", "a = ?", "'", `"`, "$", "$$", "E'\\", "/*", "--", "[", "`", "((( = ?", "? = )", "::::= $1", "a.b.c( = $1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, g := range []grammar{numbered, question, mysqls} {
			s, err := g.compile("sql.query", query)
			if err == nil && len(s.text) < len(query) {
				t.Errorf("%q loses text: %q", query, s.text)
			}
		}
	})
}
