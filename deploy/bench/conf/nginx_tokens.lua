-- Asks token.lua before nginx forwards: one EVALSHA on a pooled connection.

local redis = require "nginx.redis"
local ngx = ngx
local tokens = {}

local function answer(status, body)
	ngx.status = status
	ngx.header["Content-Type"] = "application/json"
	ngx.print(body)
	return ngx.exit(status)
end

function tokens.ask(host, port, sha)
	local key = ngx.var.http_idempotency_key
	if not key then
		return answer(400, '{"error":"no_key"}')
	end
	local store = redis:new()
	store:set_timeout(4000)
	local ok = store:connect(host, port, { pool_size = 512 })
	local verdict = ok and store:evalsha(sha, 2, "key:" .. key, "slot:" .. ngx.var.lesson)
	if not verdict then
		return answer(503, '{"error":"no_store"}')
	end
	store:set_keepalive(300000, 512)
	if verdict ~= 1 then
		return answer(409, '{"error":"sold_out"}')
	end
end

return tokens
