-- The sample legacy booking API on SQLite: the constraints are the last word.

CREATE TABLE lesson_slot (
    slot_id INTEGER PRIMARY KEY,
    remain  INTEGER NOT NULL CHECK (remain >= 0), -- seats left
    version INTEGER NOT NULL DEFAULT 0            -- grows with every change
);

CREATE TABLE lesson_booking (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- an id is never used again
    slot_id    INTEGER NOT NULL,
    student_id TEXT    NOT NULL,
    seats      INTEGER NOT NULL DEFAULT 1,
    created_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    paid_at    TEXT    NULL,
    UNIQUE (slot_id, student_id)
);
