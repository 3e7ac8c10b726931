-- The store contract's constants (gate/store); a test compares them. Times in
-- milliseconds.

local COPY_WINDOW = 30000
local LAPSE_BATCH = 16
local MAX_ADOPTIONS = 16
local LEARNED_INFLIGHT = 4
local LEARNED = -1

-- Ours alone.
local FIRST_PAUSE = 1000         -- of a full mark
local LAST_PAUSE = 30000
local NEVER_SENT_PAUSE = 1000    -- before the next probe, when one never left
local KEPT_RECHECK = 600000      -- how soon a kept unknown hold notices that keep_unknown is off
local LEDGER_LENGTH = 1000       -- entries of a slot, about
local SUBJECT_SCAN = 64          -- holds of one subject that are looked at
local INDEX_TOUCH = 3600000      -- how often a busy slot is noted in its pool's index
local INDEX_TRIM = 64            -- idle slots that one note drops from it
