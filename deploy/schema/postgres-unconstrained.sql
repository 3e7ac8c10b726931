-- The same tables as postgres.sql as many a legacy database has them: nothing
-- stops a remainder below zero or a student who is booked twice.

CREATE TABLE lesson_slot (
    slot_id bigint  PRIMARY KEY,
    remain  integer NOT NULL,
    version bigint  NOT NULL DEFAULT 0
);

CREATE TABLE lesson_booking (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slot_id    bigint      NOT NULL,
    student_id text        NOT NULL,
    seats      integer     NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    paid_at    timestamptz NULL
);

CREATE INDEX lesson_booking_student ON lesson_booking (slot_id, student_id);
