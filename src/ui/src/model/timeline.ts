// SPDX-License-Identifier: Apache-2.0
/*
 * timeline - stacks over time as a Profile whose unit is milliseconds, so that the flame graph can
 * draw it: below the root, each lane has a row with its name, and an open lane one row per depth. A
 * box covers its time; its value is in `values`.
 */
import type { FlameChartAnswer, FunctionAnswer, SeriesAnswer } from "./answers";
import { type Functions, GROUP, KINDS, type Profile, type ProfileHeader } from "./profile";
import { type Span, stepFor } from "./timerange";

export interface Lane {
	name: string;
	/* As the server has it: "" for what has no such label. */
	value: string;
	total: number;
	open: boolean;
	/* Value of each bar's time. */
	activity: Float64Array;
}

/* All lanes, the largest or the first of numbers first, and what each was worth, bar by bar. */
export interface Lanes {
	label: string;
	fromMs: number;
	barMs: number;
	bars: number;
	list: Lane[];
	leftOut: number;
	/* The largest of all bars. */
	most: number;
	total: number;
}

export interface Chart {
	profile: Profile;
	lanes: Lane[];
	/* The node that carries a lane's name. */
	nodes: number[];
	/* By node. */
	values: Float64Array;
}

/* Which lanes are open: the largest, all, none, or one by its value. */
export type OpenLanes = "" | "all" | "none" | `=${string}`;

const LANES_MAX = 256;
const PARTS = 120;
/* Below a report's length, where times of samples are what counts. */
const FINE_STEPS = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

export function barsFor(span: Span): number {
	return stepFor(span, PARTS);
}

export function stepsFor(span: Span): number {
	const wanted = (span.toMs - span.fromMs) / PARTS;
	return FINE_STEPS.find((step) => step >= wanted) ?? barsFor(span);
}

const NUMBER = /^\d{1,9}$/;
const nameOf = (label: string, value: string) =>
	value ? (NUMBER.test(value) ? `${label} ${value}` : value) : `(no ${label})`;

export function lanesOf(answer: SeriesAnswer, label: string, span: Span, open: OpenLanes): Lanes {
	const barMs = answer.step_ms;
	const fromMs = Math.floor(span.fromMs / barMs) * barMs;
	const bars = Math.max(1, Math.ceil((span.toMs - fromMs) / barMs));
	const found = new Map<string, Lane>();
	let total = 0;
	for (const { labels, points } of answer.series) {
		const value = labels[label] ?? "";
		const lane = found.get(value) ??
			{ name: nameOf(label, value), value, total: 0, open: false, activity: new Float64Array(bars) };
		found.set(value, lane);
		for (const [atMs, worth] of points) {
			const bar = Math.round((atMs - fromMs) / barMs);
			if (bar < 0 || bar >= bars)
				continue;
			lane.activity[bar]! += worth;
			lane.total += worth;
			total += worth;
		}
	}
	const all = [...found.values()].filter((lane) => lane.total > 0)
		.sort((a, b) => b.total - a.total || (a.value < b.value ? -1 : 1));
	const list = all.slice(0, LANES_MAX).map((lane, rank) => ({ ...lane, open: isOpen(open, lane.value, rank) }));
	/* CPUs stand in their order. */
	if (list.every(({ value }) => NUMBER.test(value)))
		list.sort((a, b) => Number(a.value) - Number(b.value));
	const most = list.reduce((max, { activity }) => activity.reduce((a, b) => Math.max(a, b), max), 0);
	return { label, fromMs, barMs, bars, list, leftOut: all.length - list.length, most, total };
}

const KIND_NAMES: Record<string, string> = { cpython: "python", v8js: "node", luajit: "lua" };

/* Functions of a JSON answer, with names behind them that are no functions'. */
export function functionsOf(list: readonly FunctionAnswer[], names: readonly string[] = []): Functions {
	const strings = [""];
	const ids = new Map([["", 0]]);
	const id = (text = "") => {
		let found = ids.get(text);
		if (found === undefined)
			ids.set(text, (found = strings.push(text) - 1));
		return found;
	};
	const all: Partial<FunctionAnswer>[] = [...list, ...names.map((name) => ({ name }))];
	const texts = (key: "name" | "file" | "mapping" | "build_id" | "system_name" | "unresolved") =>
		Uint32Array.from(all, (each) => id(each[key]));
	const kindOf = ({ kind = "" }: Partial<FunctionAnswer>) =>
		Math.max(0, (KINDS as readonly string[]).indexOf(KIND_NAMES[kind] ?? kind));
	return {
		count: all.length, strings, name: texts("name"), file: texts("file"), mapping: texts("mapping"),
		buildId: texts("build_id"), kind: Uint8Array.from(all, kindOf),
		startLine: Uint32Array.from(all, (each) => each.start_line ?? 0),
		systemName: texts("system_name"), unresolved: texts("unresolved"),
	};
}

function isOpen(open: OpenLanes, value: string, rank: number): boolean {
	return open === "all" || (open === "" ? rank === 0 : open === `=${value}`);
}

class Rows {
	readonly rowStart = [0];
	readonly parent: number[] = [];
	readonly func: number[] = [];
	readonly flags: number[] = [];
	readonly start: number[] = [];
	readonly total: number[] = [];
	readonly values: number[] = [];

	add(parent: number, func: number, flags: number, start: number, total: number, value: number): number {
		this.parent.push(parent);
		this.func.push(func);
		this.flags.push(flags);
		this.start.push(start);
		this.total.push(total);
		return this.values.push(value) - 1;
	}

	endRow(): void {
		this.rowStart.push(this.values.length);
	}
}

type Box = FlameChartAnswer["lanes"][number]["boxes"][number];

/* Boxes below a lane's name, row by row; each below the one of the row before that its start is in. */
function addBoxes(rows: Rows, boxes: readonly Box[], lane: number, origin: number): void {
	const byDepth: Box[][] = [];
	for (const box of boxes)
		(byDepth[box[0]] ??= []).push(box);
	let [above, aboveEnd] = [lane, lane + 1];
	for (const row of byDepth) {
		const first = rows.values.length;
		let at = above;
		for (const [, startMs, duration, fn, value] of row ?? []) {
			const start = startMs - origin;
			while (at + 1 < aboveEnd && rows.start[at]! + rows.total[at]! <= start)
				at++;
			rows.add(at, fn, 0, start, duration, value);
		}
		rows.endRow();
		[above, aboveEnd] = [first, rows.values.length];
		if (above === aboveEnd)
			return;
	}
}

/* `answer` has boxes of the lanes that are open, or is not there yet. */
export function chartOf(lanes: Lanes, answer: FlameChartAnswer | null, header: ProfileHeader): Chart {
	const functions = answer?.functions ?? [];
	const boxes = new Map(answer?.lanes.map((lane) => [lane.name, lane.boxes]));
	const length = lanes.bars * lanes.barMs;
	const rows = new Rows();
	rows.add(0, 0, 0, 0, length, lanes.total);
	rows.endRow();
	const nodes = lanes.list.map(({ value, total, open }, rank) => {
		const node = rows.add(0, functions.length + rank, GROUP, 0, length, total);
		rows.endRow();
		if (open)
			addBoxes(rows, boxes.get(value) ?? [], node, lanes.fromMs);
		return node;
	});
	const table = functionsOf(functions, lanes.list.map(({ name }) => name));
	const total = Float64Array.from(rows.total);
	const profile: Profile = {
		header: { ...header, trimmed: 0 }, functions: table, count: total.length,
		rows: rows.rowStart.length - 1,
		rowStart: Uint32Array.from(rows.rowStart), parent: Uint32Array.from(rows.parent),
		func: Uint32Array.from(rows.func), flags: Uint8Array.from(rows.flags),
		start: Float64Array.from(rows.start), total, self: new Float64Array(total.length),
		...weights(answer?.lanes ?? [], table.count),
	};
	return { profile, lanes: lanes.list, nodes, values: Float64Array.from(rows.values) };
}

/* What each function is worth by itself, for the order of colours: its boxes less those on them. */
function weights(
	lanes: FlameChartAnswer["lanes"], count: number,
): { functionSelf: Float64Array; functionTotal: Float64Array } {
	const functionSelf = new Float64Array(count);
	const functionTotal = new Float64Array(count);
	for (const { boxes } of lanes) {
		const stack: number[] = [];
		/* By start and depth: the box before on the row above is the caller. */
		for (const [depth, , , fn, value] of boxes) {
			functionSelf[fn]! += value;
			functionTotal[fn]! += value;
			if (depth && stack[depth - 1] !== undefined)
				functionSelf[stack[depth - 1]!]! -= value;
			stack[depth] = fn;
		}
	}
	return { functionSelf: functionSelf.map((value) => Math.max(0, value)), functionTotal };
}

/* The number of the lane that a node is in, or -1 for the root. */
export function laneOf(chart: Chart, node: number): number {
	let found = -1;
	chart.nodes.forEach((first, lane) => {
		if (first <= node)
			found = lane;
	});
	return found;
}

/* The label whose values make the most telling lanes. */
export function laneLabel(labels: readonly string[], matchers = ""): string {
	const telling = ["thread_name", "thread", "thread_id", "cpu", "comm", "container", "service", "service_name"];
	/* Of a host, or several of its programs, a lane for each; of one thing that was chosen, its threads. */
	if (!/(^|[^!])="/.test(matchers))
		telling.unshift("comm");
	return telling.find((label) => labels.includes(label)) ?? labels[0] ?? "";
}
