// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { retryAfterMs, retryDelay } from "../../../src/ui/src/model/retry";

test("Retry-After is seconds or a date; what is neither, or long past, is none", () => {
	const now = Date.parse("2026-01-02T03:04:05Z");
	const cases: [string | null, number][] = [
		["7", 7000], [" 2 ", 2000], ["Fri, 02 Jan 2026 03:04:08 GMT", 3000], ["0", 0],
		["Fri, 02 Jan 2026 03:04:01 GMT", 0], ["soon", 0], ["", 0], [null, 0], ["99999999999", 600_000],
	];
	for (const [header, ms] of cases)
		assert.equal(retryAfterMs(header, now), ms, String(header));
});

test("a server that is away or busy is asked again, ever more rarely, or when it says", () => {
	assert.deepEqual([1, 2, 3, 4, 5, 6, 60].map((failed) => retryDelay(0, 0, failed)),
		[1000, 2000, 4000, 8000, 16000, 30000, 30000]);
	assert.equal(retryDelay(503, 5000, 9), 5000);
	assert.equal(retryDelay(429, 0, 1), 1000);
});

test("what would fail again is not asked again", () => {
	for (const status of [-1, 400, 401, 403, 404, 413, 500])
		assert.equal(retryDelay(status, 9000, 1), null);
});
