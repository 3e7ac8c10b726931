-- The store contract's constants (gate/store); a test compares them. Times in
-- milliseconds.

local COPY_WINDOW = 30000
local LAPSE_BATCH = 16
local MAX_ADOPTIONS = 16
local MAX_CANCELS = 64
local LEARNED_INFLIGHT = 4
local LEARNED = -1

-- Ours alone. What goes to Redis as it stands is text.
local FIRST_PAUSE = 1000         -- of a full mark
local LAST_PAUSE = 30000
local NEVER_SENT_PAUSE = 1000    -- before the next probe, when one never left
local KEPT_RECHECK = 600000      -- how soon a kept unknown hold notices that keep_unknown is off
local LEDGER_LENGTH = '1000'     -- entries of a slot, about
local LEDGER_UNSHIPPED = '20000' -- entries of a slot that wait to be shipped, about
local OUTBOX_LENGTH = '100000'   -- entries of a pool, about
local OUTBOX_LOOK = 1000         -- how soon an outbox that was made is noticed
local KEEP_MORE = 1000           -- for how long at least Redis keeps a slot's keys beyond retain
local SUBJECT_SCAN = 64          -- holds of one subject that are looked at, or listed as booked
local RECENT_SCAN = 4000         -- holds booked for less than lag that a look adds up
local MOVED_STEP = 1000          -- how exactly a slot knows when it moved last
local MOVED_LATELY = 3600000     -- for how long after its last movement a slot is looked at
local DUE_LOST = 600000          -- a look overdue for so long is noted again: the note may be lost
local INDEX_TOUCH = 3600000      -- how often a busy slot is noted in its pool's index
local TRIM = 16                  -- changes of a slot between two clearings of what is over in it
local INDEX_TRIM = 64            -- idle slots that one note drops from it
