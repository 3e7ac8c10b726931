-- The sample legacy booking API on PostgreSQL: the constraints are the last word.

CREATE TABLE lesson_slot (
    slot_id bigint  PRIMARY KEY,
    remain  integer NOT NULL CHECK (remain >= 0), -- seats left
    version bigint  NOT NULL DEFAULT 0            -- grows with every change
);

CREATE TABLE lesson_booking (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slot_id    bigint      NOT NULL,
    student_id text        NOT NULL,
    seats      integer     NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    paid_at    timestamptz NULL,
    UNIQUE (slot_id, student_id)
);
