-- The same tables as mysql.sql as many a legacy database has them: nothing
-- stops a remainder below zero or a student who is booked twice.

CREATE TABLE lesson_slot (
    slot_id bigint PRIMARY KEY,
    remain  int    NOT NULL,
    version bigint NOT NULL DEFAULT 0
) ENGINE = InnoDB;

CREATE TABLE lesson_booking (
    id         bigint       AUTO_INCREMENT PRIMARY KEY,
    slot_id    bigint       NOT NULL,
    student_id varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    seats      int          NOT NULL DEFAULT 1,
    created_at datetime(3)  NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    paid_at    datetime(3)  NULL
) ENGINE = InnoDB;

CREATE INDEX lesson_booking_student ON lesson_booking (slot_id, student_id);
