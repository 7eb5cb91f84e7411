// SPDX-License-Identifier: Apache-2.0
/*
 * timerange - the two ends of the time range, in the server's forms: "now", "now-15m", RFC 3339, or
 * milliseconds since the epoch.
 */
export interface TimeRange {
	from: string;
	to: string;
}

export interface Span {
	fromMs: number;
	toMs: number;
}

const SECOND = 1000;
const UNITS: Record<string, number> = {
	s: SECOND, m: 60 * SECOND, h: 3600 * SECOND, d: 86400 * SECOND, w: 7 * 86400 * SECOND,
};
const RELATIVE = /^now(?:-(\d{1,6})([smhdw]))?$/;

export const PRESETS = ["5m", "15m", "30m", "1h", "3h", "6h", "12h", "24h", "2d", "7d", "14d"] as const;
export const DEFAULT_RANGE: TimeRange = { from: "now-15m", to: "now" };

/* Milliseconds since the epoch, or NaN. */
export function resolveTime(text: string, nowMs: number): number {
	const relative = RELATIVE.exec(text);
	if (relative)
		return nowMs - (relative[1] ? Number(relative[1]) * UNITS[relative[2]!]! : 0);
	if (/^\d{1,15}$/.test(text))
		return Number(text);
	return /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : NaN;
}

export function isRelative(text: string): boolean {
	return RELATIVE.test(text);
}

export function endsNow(range: TimeRange): boolean {
	return range.to === "now";
}

export function isValidRange(range: TimeRange): boolean {
	const now = Date.now();
	return resolveTime(range.from, now) < resolveTime(range.to, now);
}

export function resolveRange(range: TimeRange, nowMs: number): Span {
	return { fromMs: resolveTime(range.from, nowMs), toMs: resolveTime(range.to, nowMs) };
}

export function absoluteRange({ fromMs, toMs }: Span): TimeRange {
	return { from: String(Math.round(fromMs)), to: String(Math.round(toMs)) };
}

/* Widened to whole buckets, so that a chart's points and the profile below count the same. */
export function snapSpan({ fromMs, toMs }: Span, stepMs: number): Span {
	const from = Math.floor(fromMs / stepMs) * stepMs;
	const to = Math.ceil(toMs / stepMs) * stepMs;
	return { fromMs: from, toMs: to > from ? to : from + stepMs };
}

/* A round step, a multiple of the agent's 10 s report, that gives about `points` buckets. */
export function stepFor(span: Span, points: number): number {
	const wanted = (span.toMs - span.fromMs) / points / SECOND;
	const steps = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400];
	return SECOND * (steps.find((step) => step >= wanted) ?? Math.ceil(wanted / 86400) * 86400);
}

const WORDS: Record<string, string> = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };

export function describeDuration(text: string): string {
	const [, count, unit] = /^(\d+)([smhdw])$/.exec(text) ?? [];
	if (!count || !unit)
		return text;
	return count === "1" ? `1 ${WORDS[unit]}` : `${count} ${WORDS[unit]}s`;
}

/* In which all times are written and read: one setting of the page, which starts anew when it changes. */
export type Zone = "local" | "utc";

let zone: Zone = "local";

export function setZone(next: Zone): void {
	zone = next;
}

/* "UTC", or the place whose time the machine has. */
export function zoneName(): string {
	return zone === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
}

const pad = (value: number) => String(value).padStart(2, "0");

/* Years to seconds of a moment in the zone. */
function partsOf(ms: number): { year: number; month: number; day: number; clock: string } {
	const date = new Date(ms);
	const [year, month, day, ...clock] = zone === "utc"
		? [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate(),
			date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()]
		: [date.getFullYear(), date.getMonth(), date.getDate(),
			date.getHours(), date.getMinutes(), date.getSeconds()];
	return { year: year!, month: month! + 1, day: day!, clock: clock.map(pad).join(":") };
}

export function clockTime(ms: number): string {
	return partsOf(ms).clock;
}

export function dayOf(ms: number): string {
	const { year, month, day } = partsOf(ms);
	return `${year}-${pad(month)}-${pad(day)}`;
}

/* "2026-01-02T15:04:05", as <input type=datetime-local> has it. */
export function localInput(ms: number): string {
	return `${dayOf(ms)}T${clockTime(ms)}`;
}

/* Milliseconds since the epoch of such a text, or NaN. */
export function parseInput(text: string): number {
	return new Date(zone === "utc" ? `${text}Z` : text).getTime();
}

export function describeRange(range: TimeRange): string {
	const relative = RELATIVE.exec(range.from);
	if (relative?.[1] && endsNow(range))
		return `Last ${describeDuration(relative[1] + relative[2]!)}`;
	const { fromMs, toMs } = resolveRange(range, Date.now());
	if (Number.isNaN(fromMs) || Number.isNaN(toMs))
		return `${range.from} – ${range.to}`;
	const today = dayOf(Date.now());
	const suffix = zone === "utc" ? " UTC" : "";
	const from = dayOf(fromMs) === today ? clockTime(fromMs) : `${dayOf(fromMs)} ${clockTime(fromMs)}`;
	if (endsNow(range))
		return `${from}${suffix} – now`;
	const to = dayOf(toMs) === dayOf(fromMs) ? clockTime(toMs) : `${dayOf(toMs)} ${clockTime(toMs)}`;
	return `${from} – ${to}${suffix}`;
}

export function describeAge(ms: number): string {
	const seconds = Math.max(0, ms / SECOND);
	const text = seconds < 90 ? `${Math.round(seconds)}s` : seconds < 5400 ? `${Math.round(seconds / 60)}m`
		: seconds < 129600 ? `${Math.round(seconds / 3600)}h` : `${Math.round(seconds / 86400)}d`;
	return describeDuration(text);
}

/* The widest sensible step back out: three times the span around its middle, not into the future. */
export function zoomOut({ fromMs, toMs }: Span, nowMs: number): Span {
	const width = toMs - fromMs;
	const to = Math.min(nowMs, toMs + width);
	return { fromMs: to - 3 * width, toMs: to };
}

/* The same range, `ms` earlier; stays relative where its ends are whole minutes before now. */
export function earlier(range: TimeRange, ms: number, nowMs: number): TimeRange {
	const shift = (text: string) => {
		const at = resolveTime(text, nowMs);
		const minutes = (nowMs - at + ms) / (60 * SECOND);
		return isRelative(text) && Number.isInteger(minutes) ? `now-${minutes}m` : String(Math.round(at - ms));
	};
	return { from: shift(range.from), to: shift(range.to) };
}
