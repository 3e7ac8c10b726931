package rules

import "testing"

// What every request or answer goes through makes no garbage.
func TestCommonRulesDoNotAllocate(t *testing.T) {
	rc := testRule("book", "POST", "/api/lessons/{lesson}/bookings")
	rc.Slot, rc.Subject, rc.Units = extractors("path:lesson"), extractors("json:/student_id"), extractors("json:/seats")
	rc.Idempotency = &IdempotencyConfig{Key: extractors("header:Idempotency-Key")}
	rc.Outcomes = []OutcomeConfig{
		{When: WhenConfig{Status: []StatusRange{{409, 409}}, JSON: map[string]Scalar{"/error": {ScalarString, "sold_out"}}}, Is: SoldOut},
		{When: WhenConfig{JSON: map[string]Scalar{"/code": {ScalarNumber, "4001"}}}, Is: SoldOut},
		{When: WhenConfig{Header: map[string]string{"Location": "/ok*"}}, Is: Booked},
		{When: WhenConfig{Text: "名额已满"}, Is: SoldOut},
	}
	s := testSet(t, rc)
	r := testRequest("POST /api/lessons/7/bookings?from=mail", `{"student_id":"s-12345","seats":2,"note":"first come"}`,
		jsonType, "Idempotency-Key: 5f1c0b7e-8a55-4a8e-9d3c-0c1f2f3a4b5c", "Authorization: Bearer x", "Accept: */*")
	r.Texts = new(Texts)
	m, refusal := s.Match(r)
	if m.Rule == nil || refusal != nil {
		t.Fatal(m, refusal)
	}
	body := `{"code":0,"msg":"ok","data":{"booking_id":"b-12345"}}`
	booked, full := response(201, body, jsonType), response(409, `{"error":"sold_out"}`, jsonType)
	plain := response(404, "")
	for _, row := range []struct {
		what string
		most float64
		run  func()
	}{
		{"Match", 0, func() {
			if m, _ := s.Match(r); m.Rule == nil {
				t.Fatal("no rule")
			}
		}},
		{"Extract", 0, func() {
			if f, refusal := m.Rule.Extract(r, &m, 1<<20); refusal != nil || f.Units != 2 {
				t.Fatal(f, refusal)
			}
		}},
		{"Classify by JSON", 0, func() {
			if m.Rule.Classify(booked) != Booked || m.Rule.Classify(full) != SoldOut {
				t.Fatal("another outcome")
			}
		}},
		{"Classify by status", 0, func() {
			if m.Rule.Classify(plain) != Refused {
				t.Fatal("another outcome")
			}
		}},
	} {
		if n := testing.AllocsPerRun(200, row.run); n > row.most+raceGarbage {
			t.Errorf("%s allocates %v times; want %v", row.what, n, row.most)
		}
	}
}
