-- The same tables as sqlite.sql as many a legacy database has them: nothing
-- stops a remainder below zero or a student who is booked twice.

CREATE TABLE lesson_slot (
    slot_id INTEGER PRIMARY KEY,
    remain  INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE lesson_booking (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    slot_id    INTEGER NOT NULL,
    student_id TEXT    NOT NULL,
    seats      INTEGER NOT NULL DEFAULT 1,
    created_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    paid_at    TEXT    NULL
);

CREATE INDEX lesson_booking_student ON lesson_booking (slot_id, student_id);
