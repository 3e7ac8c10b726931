-- The sample legacy booking API on MySQL 8.0.16 or MariaDB 10.2 and later, which
-- enforce CHECK: the constraints are the last word.

CREATE TABLE lesson_slot (
    slot_id bigint PRIMARY KEY,
    remain  int    NOT NULL CHECK (remain >= 0), -- seats left
    version bigint NOT NULL DEFAULT 0            -- grows with every change
) ENGINE = InnoDB;

CREATE TABLE lesson_booking (
    id         bigint       AUTO_INCREMENT PRIMARY KEY,
    slot_id    bigint       NOT NULL,
    student_id varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, -- letter case counts
    seats      int          NOT NULL DEFAULT 1,
    created_at datetime(3)  NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    paid_at    datetime(3)  NULL,
    UNIQUE (slot_id, student_id)
) ENGINE = InnoDB;
