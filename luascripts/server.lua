-- The last ARGV of every script is the run of the server as the gate knows it on this
-- connection, id|changed|since: changed is 1 once any gate has seen the run change,
-- since when that was first seen, µs. On a cluster the id is followed by those of the
-- other shards, each with a comma before it.
local RUN, RUN_OTHERS, RUN_CHANGED, RUN_SINCE = string.match(ARGV[#ARGV], '^([^,|]*)([^|]*)|([01])|(%d+)$')

-- Whether what bears this run is as good as if it bore this shard's: slots are moved
-- between shards without loss.
local function run_is_another_shards(run)
  return RUN_OTHERS ~= '' and run ~= '' and string.find(RUN_OTHERS .. ',', ',' .. run .. ',', 1, true) ~= nil
end
