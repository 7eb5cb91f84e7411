// SPDX-License-Identifier: Apache-2.0
/* retry - whether and when a failed query is repeated automatically. */

/* A server that is away, behind a proxy or not, or that says it has too much to do. */
const TRANSIENT = [0, 429, 502, 503, 504];
const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;
/* What a server may ask for at most; the reader can always ask sooner. */
const ASKED_MAX_MS = 600_000;

/* Milliseconds of a Retry-After header, in seconds or a date; 0 when there is none that can be read. */
export function retryAfterMs(header: string | null, nowMs: number): number {
	const text = (header ?? "").trim();
	const ms = /^\d+$/.test(text) ? 1000 * Number(text) : Date.parse(text) - nowMs;
	return ms > 0 ? Math.min(ms, ASKED_MAX_MS) : 0;
}

/* How long to wait after the `failed`th failure in a row (from 1); null: asking again would not help. */
export function retryDelay(status: number, askedMs: number, failed: number): number | null {
	if (!TRANSIENT.includes(status))
		return null;
	return askedMs || Math.min(LONGEST_MS, FIRST_MS * 2 ** (failed - 1));
}
