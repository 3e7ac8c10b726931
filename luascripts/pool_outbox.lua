-- The outbox of a pool: a stream of its slots' ledger entries, each with the name of the
-- slot (luascripts/keys.go lists the fields). entry is a flat list of fields.

local function outbox_add(outbox, name, entry)
  redis.call('XADD', outbox, 'MAXLEN', '~', OUTBOX_LENGTH, '*', 'n', name, unpack(entry))
end
