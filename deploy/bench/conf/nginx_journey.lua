-- A booking that is decided, forwarded and settled by nginx: two EVALSHA on pooled
-- connections and a subrequest between them.

local tokens = require "nginx_tokens"
local ngx, answer, call = ngx, tokens.answer, tokens.call
local journey = {}

function journey.book(host, port, decide, settle, seats)
	local key = ngx.var.http_idempotency_key
	ngx.req.read_body()
	local body = ngx.req.get_body_data()
	local student = body and string.match(body, '"student_id":"([^"]*)"')
	if not key or not student then
		return answer(400, '{"error":"no_key_or_student"}')
	end
	local lesson, id, fingerprint = ngx.var.lesson, ngx.var.request_id, ngx.md5(body)
	local slot, due, ledger, record = "slot:" .. lesson .. ":s", "due:" .. lesson, "ledger:" .. lesson, "key:" .. key
	local verdict = call(host, port, decide, 4, slot, due, ledger, record, id, student, fingerprint, seats, ngx.now() * 1000)
	if not verdict then
		return answer(503, '{"error":"no_store"}')
	end
	if verdict ~= "admitted" then
		return answer(409, '{"error":"' .. verdict .. '"}')
	end
	local got = ngx.location.capture("/backend" .. ngx.var.uri, { method = ngx.HTTP_POST, always_forward_body = true })
	if got.status == 201 and not call(host, port, settle, 4, slot, due, ledger, record, id, student, fingerprint, got.body, ngx.now() * 1000) then
		return answer(502, '{"error":"not_settled"}')
	end
	ngx.header["Content-Type"] = got.header["Content-Type"]
	ngx.status = got.status
	ngx.print(got.body)
end

return journey
