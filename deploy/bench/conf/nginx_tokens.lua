-- Asks token.lua before nginx forwards: one EVALSHA on a pooled connection.
-- tokens.answer and tokens.call are nginx_journey.lua's, too.

local redis = require "nginx.redis"
local ngx = ngx
local tokens = {}

function tokens.answer(status, body)
	ngx.status = status
	ngx.header["Content-Type"] = "application/json"
	ngx.print(body)
	return ngx.exit(status)
end

-- What a script replies, nil without Redis.
function tokens.call(host, port, ...)
	local store = redis:new()
	store:set_timeout(4000)
	local ok = store:connect(host, port, { pool_size = 512 })
	local reply = ok and store:evalsha(...)
	if reply then
		store:set_keepalive(300000, 512)
	end
	return reply
end

function tokens.ask(host, port, sha)
	local key = ngx.var.http_idempotency_key
	if not key then
		return tokens.answer(400, '{"error":"no_key"}')
	end
	local verdict = tokens.call(host, port, sha, 2, "key:" .. key, "slot:" .. ngx.var.lesson)
	if not verdict then
		return tokens.answer(503, '{"error":"no_store"}')
	end
	if verdict ~= 1 then
		return tokens.answer(409, '{"error":"sold_out"}')
	end
end

return tokens
