package rules

import "testing"

func TestValidateTruth(t *testing.T) {
	sql := func(rest string) string {
		return `capacity: { sql: { driver: postgres, dsn: d, query: "SELECT a FROM b WHERE c = $1" ` + rest
	}
	http := func(rest string) string {
		return `capacity: { http: { path: "/api/{slot}", value: json:/a ` + rest
	}
	for _, row := range []struct{ text, want string }{
		// sources
		{"«capacity: {}", "takes a number of units, learned, or a truth source"},
		{"«capacity: { refresh: 5s }", "takes a number of units, learned, or a truth source"},
		{"capacity: { «units: 5 }", "unknown key units"},
		{"«capacity: { sql: { driver: sqlite, dsn: d, query: \"SELECT a WHERE c = ?\" }, http: { path: \"/{slot}\", value: json:/a } }", "has sql and http: keep one of them"},
		{"capacity: { sql: «SELECT }", "takes the fields driver, dsn, query, means, total"},
		{"capacity: { sql: «null }", "has no value"},
		{"capacity: { sql: { driver: «oracle, dsn: d, query: q } }", `"oracle" is not one of postgres, mysql, sqlite`},
		{"capacity: { sql: { driver: «mariadb, dsn: d, query: q } }", `"mariadb" is not one of postgres, mysql, sqlite`},
		{"capacity: { «sql: { dsn: d, query: q } }", "capacity.sql.driver: is required: write postgres, mysql or sqlite"},
		{"capacity: { «sql: { driver: sqlite, query: \"SELECT a WHERE c = ?\" } }", `capacity.sql.dsn: is required: write it as the driver does, best from the environment: "${BOOKING_DSN}"`},
		{"capacity: { sql: { driver: sqlite, dsn: «\"\", query: \"SELECT a WHERE c = ?\" } }", "capacity.sql.dsn: is empty"},
		{"capacity: { sql: { driver: mysql, dsn: «\"mysql://a@b/c\", query: \"SELECT a WHERE c = ?\" } }", "write user:password@tcp(host:3306)/database"},
		{"capacity: { «sql: { driver: postgres, dsn: d } }", "capacity.sql.query: is required: write a SELECT of one value, such as SELECT remain FROM lesson_slot WHERE slot_id = $1"},
		{"capacity: { «sql: { driver: mysql, dsn: d } }", "WHERE slot_id = ?"},
		{"capacity: { «http: { value: json:/a } }", "capacity.http.path: is required"},
		{"capacity: { «http: { path: \"/{slot}\" } }", "capacity.http.value: is required: write where the answer has the value, such as json:/data/remain"},
		{"capacity: { http: { path: «\"\", value: json:/a } }", "path: is empty"},
		{"capacity: { http: { path: «\"api/{slot}\", value: json:/a } }", "write /api/{slot}"},
		{"capacity: { http: { path: «\"http://a/{slot}\", value: json:/a } }", "the backend is upstream.url"},
		{"capacity: { http: { path: «\"/a/{slot}#b\", value: json:/a } }", "holds a #"},
		{"capacity: { http: { path: «\"/a b/{slot}\", value: json:/a } }", "percent-encoded"},
		{"capacity: { http: { path: «/a/lessons, value: json:/a } }", "does not say where the slot goes: write {slot}"},
		{"capacity: { http: { path: «\"/a/{slto}\", value: json:/a } }", "{slto} stands for nothing here, only {slot} does, did you mean {slot}?"},
		{"capacity: { http: { path: «\"/a/{slot}/{subject}\", value: json:/a } }", "{subject} stands for nothing here"},
		{"capacity: { http: { path: «\"/a/{slot}}\", value: json:/a } }", "} stands for nothing here"},
		{"capacity: { http: { path: «\"/a/{slot}/{\", value: json:/a } }", "{ stands for nothing here"},
		{"capacity: { http: { path: \"/{slot}\", value: «header:X-Remain } }", `"header:X-Remain": it takes a place in the answer's JSON`},
		{"capacity: { http: { path: \"/{slot}\", value: «data.remain } }", "does not say where to look"},
		{"capacity: { http: { path: \"/{slot}\", value: «json:data.remain } }", "write /data/remain"},
		{"capacity: { http: { path: \"/{slot}\", «value: { from: json:/a } } }", "takes a place in the answer's JSON, such as json:/data/remain, not a mapping"},
		{http(", headers: { X A: «b } } }"), "is not the name of a header field"},
		{http(", headers: { content-length: «\"5\" } } }"), "is made by the gate"},
		// means and total
		{sql(", means: «left } }"), `"left" is not one of remaining, booked, capacity`},
		{"capacity: { «sql: { driver: sqlite, dsn: d, query: \"SELECT a WHERE c = ?\", means: booked } }", "capacity.sql.total: is required, since means is booked"},
		{"capacity: { «http: { path: \"/{slot}\", value: json:/a, means: booked } }", "capacity.http.total: is required, since means is booked"},
		{sql(", total: «6 } }"), "has no place beside means: remaining: remove it, or write means: booked"},
		{http(", means: capacity, total: «6 } }"), "has no place beside means: capacity"},
		{sql(", means: booked, total: «0 } }"), "0 is below 1"},
		{sql(", means: booked, total: «\"6\" } }"), `"6" is text`},
		{sql(", means: booked, total: «SELECT 6 } }"), "it takes a number of units, { query: … } beside sql"},
		{sql(", means: booked, «total: [6] } }"), "not a list"},
		{sql(", means: booked, «total: {} } }"), "takes a number of units, { query: … } beside sql, or { value: json:/… } beside http"},
		{sql(", means: booked, «total: { query: \"\" } } }"), "takes a number of units"},
		{sql(", means: booked, total: { «sql: a } } }"), "unknown key sql"},
		{sql(", means: booked, «total: { value: json:/a } } }"), "value is for an http source"},
		{sql(", means: booked, total: { query: «SELECT 6 } } }"), "total.query: the query has no parameter"},
		{http(", means: booked, «total: { query: SELECT 6 } } }"), "query is for an sql source"},
		{http(", means: booked, total: { value: «path:a } } }"), "takes a place in the answer's JSON"},
		// looks
		{sql("}, hot: «2m }"), "2m is more than refresh, which is 1m"},
		{sql("}, hot: «3s, refresh: 2s }"), "3s is more than refresh, which is 2s"},
		{sql("}, refresh: «60 }"), "60 has no unit"},
		{sql("}, refresh: «0s }"), "0s is too little: the least is 100ms"},
		{sql("}, timeout: «0s }"), "0s is too little: the least is 1ms"},
		{sql("}, timeout: «2m }"), "2m is too much: the most is 1m"},
		{sql("}, max_rate: «50 }"), "50 does not say per what"},
		{sql("}, «refrsh: 5s }"), "unknown key refrsh, did you mean refresh?"},
		// bookings and reports
		{sql("}, «bookings: {} }"), "bookings.query: is required: write a SELECT of id, subject"},
		{sql("}, bookings: { query: «SELECT id FROM b } }"), "bookings.query: the query has no parameter"},
		{sql("}, bookings: { query: SELECT id FROM b WHERE c = $1, path: «\"/{slot}/{subject}\" } }"), "is for an http source: write query instead"},
		{http("}, «bookings: {} }"), "bookings.path: is required"},
		{http("}, bookings: { path: «\"/{slot}\" } }"), "does not say where the subject goes: write {subject}"},
		{http("}, bookings: { path: \"/{slot}/{subject}\", query: «SELECT id FROM b WHERE c = $1 } }"), "is for an sql source: write path instead"},
		{sql("}, report: «4:30, report_dir: /a }"), `"4:30" is not a time of day`},
		{sql("}, report: «\"24:00\", report_dir: /a }"), "is not a time of day"},
		{sql("}, report: «\"04:30\" }"), "needs report_dir"},
	} {
		t.Run(row.text, func(t *testing.T) {
			expectFault(t, edit(t, "lessons:", row.text), row.want, LoadOptions{})
		})
	}
}

func TestValidateTruthKeepsQuiet(t *testing.T) {
	for _, text := range []string{
		`capacity: { sql: { driver: sqlite, dsn: "file:shop.db?mode=ro", query: "SELECT remain FROM slot WHERE id = ?", means: capacity } }`,
		`capacity: { sql: { driver: postgres, dsn: d, query: "SELECT count(*) FROM b WHERE s = $1", means: booked, total: { query: "SELECT n FROM s WHERE id = $1" } }, report: "" }`,
		`capacity: { http: { path: "/api/slots?id={slot}&again={slot}", value: json:/remain, headers: { Authorization: Bearer a } }, refresh: 100ms, hot: 100ms, timeout: 1m, lag: 0s }`,
		`capacity: { http: { path: "/%E5%90%8D/{slot}", value: json:/0 }, report: "00:00", report_dir: /a }`,
	} {
		t.Run(text, func(t *testing.T) { load(t, edit(t, "lessons:", text), LoadOptions{}) })
	}
}
