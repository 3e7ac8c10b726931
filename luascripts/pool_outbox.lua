-- The outbox of a pool: a stream of its slots' ledger entries, each with the name of the
-- slot (luascripts/keys.go lists the fields). It is written once a program has made it.

-- entry is as the ledger has it (slot.lua), and id, where there is one, its id there. False
-- where there is no outbox.
local function outbox_add(outbox, name, entry, id)
  local t, h, s, u, f, o, c = string.match(entry, '^(%d+)|([^|]*)|([^|]*)|(%d+)|(%a*)|(%a+)|(.*)$')
  if id then
    return redis.call('XADD', outbox, 'NOMKSTREAM', 'MAXLEN', '~', OUTBOX_LENGTH, '*',
      'l', id, 'n', name, 't', t, 'h', h, 's', s, 'u', u, 'f', f, 'o', o, 'c', c)
  end
  return redis.call('XADD', outbox, 'NOMKSTREAM', 'MAXLEN', '~', OUTBOX_LENGTH, '*',
    'n', name, 't', t, 'h', h, 's', s, 'u', u, 'f', f, 'o', o, 'c', c)
end
