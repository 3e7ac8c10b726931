-- What wrk sends. Arguments: "page" (the URL by GET), or "book", the number of lessons
-- and a letter that no other run on the same store has: every request is a booking of
-- one of them, with a key and a student of its own.
--
-- done prints one line of JSON for the rig: times in microseconds.

local counter = 0

function setup(thread)
	counter = counter + 1
	thread:set("number", counter)
end

function init(args)
	if args[1] == "book" then
		local n, lessons, seed = 0, tonumber(args[2]), args[3]
		local head = " HTTP/1.1\r\nHost: bench.test\r\nContent-Type: application/json\r\n"
			.. "Authorization: Bearer 0123456789abcdef\r\nIdempotency-Key: " .. seed .. number .. "-"
		local format = string.format
		-- Every number has the same length, and so has every body.
		function request()
			n = n + 1
			local id = format("%09d", n)
			return "POST /api/lessons/" .. (n % lessons + 1) .. "/bookings" .. head .. id
				.. "\r\nContent-Length: 29\r\n\r\n"
				.. '{"student_id":"' .. seed .. number .. "-" .. id .. '"}'
		end
	end
end

function done(summary, latency, requests)
	local e = summary.errors
	io.write(string.format(
		'{"requests":%d,"micros":%d,"bytes":%d,"refused":%d,"broken":%d,"p50":%d,"p90":%d,"p99":%d,"p999":%d,"max":%d}\n',
		summary.requests, summary.duration, summary.bytes, e.status, e.connect + e.read + e.write + e.timeout,
		latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9), latency.max))
end
