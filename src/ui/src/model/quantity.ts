// SPDX-License-Identifier: Apache-2.0
/*
 * quantity - formats the values of a profile: CPU samples as time and cores, bytes as KiB and MiB,
 * everything else as a count. Three significant digits throughout.
 */
export interface Unit {
	kind: "time" | "bytes" | "count";
	/* Time: nanoseconds per unit of value (the sampling period). Else 1. */
	scale: number;
	/* Whether the values are samples, so that their number is worth saying too. */
	sampled: boolean;
	/* Whether values add up over time, so that "per second" (cores) means something. */
	delta: boolean;
	noun: string;
	/* Behind numbers whose unit has no words of its own here. */
	suffix: string;
}

const NS: Record<string, number> = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };

export function unitOf(
	source: { type?: string; unit: string; period: number; period_unit: string; delta: boolean },
): Unit {
	const { unit, period, delta } = source;
	const noun = source.type?.split(":")[1] || unit || "count";
	const common = { scale: 1, sampled: false, delta, noun, suffix: "" };
	if (NS[unit])
		return { ...common, kind: "time", scale: NS[unit]! };
	if (unit === "bytes")
		return { ...common, kind: "bytes" };
	const tick = NS[source.period_unit];
	if (delta && tick && period > 0)
		return { ...common, kind: "time", scale: tick * period, sampled: true };
	return { ...common, kind: "count", suffix: unit && unit !== "count" ? ` ${unit}` : "" };
}

/* Thousands apart by a narrow space. */
function grouped(value: number): string {
	return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/* Three significant digits, never an exponent: 0.0123, 1.23, 12.3, 123, 1 234. */
export function digits(value: number): string {
	const size = Math.abs(value);
	if (size === 0)
		return "0";
	if (size >= 99.95)
		return grouped(value);
	if (size >= 9.995)
		return value.toFixed(1);
	if (size >= 0.9995)
		return value.toFixed(2);
	return size < 0.0005 ? (value < 0 ? ">-0.001" : "<0.001") : value.toFixed(3);
}

/* "1 frame", "12 frames" */
export function counted(count: number, noun: string): string {
	return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

export function formatCount(value: number): string {
	if (Math.abs(value) < 1e5)
		return Number.isInteger(value) ? grouped(value) : digits(value);
	const steps: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
	const [size, letter] = steps.find(([step]) => Math.abs(value) >= step)!;
	return `${digits(value / size)} ${letter}`;
}

export function formatBytes(value: number): string {
	const letters = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	let step = 0;
	for (; Math.abs(value) >= 1024 && step < letters.length - 1; step++)
		value /= 1024;
	return `${step ? digits(value) : Math.round(value)} ${letters[step]}`;
}

export function formatTime(ns: number): string {
	const size = Math.abs(ns);
	if (size < 1e3)
		return `${digits(ns)} ns`;
	if (size < 1e6)
		return `${digits(ns / 1e3)} µs`;
	if (size < 1e9)
		return `${digits(ns / 1e6)} ms`;
	if (size < 600e9)
		return `${digits(ns / 1e9)} s`;
	if (size < 6e12)
		return `${digits(ns / 60e9)} min`;
	return `${digits(ns / 3600e9)} h`;
}

export function formatValue(unit: Unit, value: number): string {
	if (unit.kind === "time")
		return formatTime(value * unit.scale);
	return unit.kind === "bytes" ? formatBytes(value) : formatCount(value) + unit.suffix;
}

/* Value per second of the range: cores for time. "" where that means nothing. */
export function formatRate(unit: Unit, value: number, seconds: number): string {
	if (!unit.delta || !(seconds > 0))
		return "";
	return formatPerSecond(unit, value / seconds);
}

export function formatPerSecond(unit: Unit, perSecond: number): string {
	if (unit.kind === "time") {
		const cores = (perSecond * unit.scale) / 1e9;
		return `${digits(cores)} ${cores === 1 ? "core" : "cores"}`;
	}
	const text = unit.kind === "bytes" ? formatBytes(perSecond) : formatCount(perSecond) + unit.suffix;
	return unit.delta ? `${text}/s` : text;
}

/* Fewer say little. */
export const THIN_SAMPLES = 30;

/* The number of samples behind a value; Infinity where values are none. */
export function samplesOf(
	source: { unit: string; period: number; period_unit: string }, unit: Unit, value: number,
): number {
	if (unit.sampled)
		return value;
	return source.period > 0 && source.period_unit === source.unit ? value / source.period : Infinity;
}

/* The number of samples behind a value, as words; "" when values are not samples. */
export function formatSamples(unit: Unit, value: number): string {
	if (!unit.sampled)
		return "";
	return `${formatCount(value)} ${value === 1 ? "sample" : "samples"}`;
}

export function formatPercent(part: number, whole: number): string {
	if (!(whole > 0))
		return "–";
	const share = (100 * part) / whole;
	if (share === 0)
		return "0 %";
	if (share < 0.01)
		return "<0.01 %";
	if (share > 99.99 && share < 100)
		return ">99.9 %";
	return `${share < 0.995 ? share.toFixed(2) : share < 99.95 ? share.toFixed(1) : "100"} %`;
}

/* A title for people: "CPU", else what the type's own words say. */
export function typeTitle(type: string): string {
	const [name = "", sample = "", unit = ""] = type.split(":");
	if (name === "on_cpu" || (name === "process_cpu" && (sample === "cpu" || sample === "samples")))
		return name === "on_cpu" ? "CPU" : `CPU (${name}, ${sample})`;
	if (name === "off_cpu")
		return "Off-CPU";
	const words = sample && sample !== name ? `${name} · ${sample}` : name;
	const telling = unit && !["count", "bytes", "nanoseconds"].includes(unit);
	return (telling ? `${words} (${unit})` : words).replace(/_/g, " ");
}
