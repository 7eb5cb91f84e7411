// SPDX-License-Identifier: Apache-2.0
/* answers - types of the server's JSON answers that the page computes with (docs/api.md); data/api requests them. */

/* [at_ms, value, per_second, reports] */
export type Point = [number, number, number, number];

export interface SeriesAnswer {
	type: string;
	unit: string;
	period: number;
	period_unit: string;
	delta: boolean;
	step_ms: number;
	series: { labels: Record<string, string>; points: Point[] }[];
}

/* Whether a share changed by more than chance. */
export interface Verdict {
	share: number;
	base_share: number;
	low: number;
	high: number;
	p: number;
	significant: boolean;
}

export interface Significance {
	/* Frames whose names are still read. */
	pending: number;
	/* Not there when names came while it was made. */
	significance?: {
		method: "none" | "counts" | "blocks";
		level?: number;
		total?: { rate: number; base_rate: number; p: number; significant: boolean } | null;
	};
	functions: { name: string; change?: { self: Verdict | null; total: Verdict | null } }[];
}

/* Values by time of column and row within; empty cells are not there. */
export interface HeatmapAnswer {
	from_ms: number;
	to_ms: number;
	column_ms: number;
	rows: number;
	/* Whether samples count at their own times, not at the start of their report. */
	times: boolean;
	/* How exactly times are known. */
	resolution_ms: number;
	cells: [column: number, row: number, value: number, reports: number][];
}

/* A function as JSON answers have it. */
export interface FunctionAnswer {
	name: string;
	kind: string;
	system_name?: string;
	file?: string;
	start_line?: number;
	mapping?: string;
	build_id?: string;
	unresolved?: string;
	/* A group-by value. */
	label?: boolean;
}

/* Stacks over time, by lane. */
export interface FlameChartAnswer {
	from_ms: number;
	to_ms: number;
	step_ms: number;
	resolution_ms: number;
	total: number;
	lanes_left_out: number;
	functions: FunctionAnswer[];
	lanes: {
		name: string; total: number;
		boxes: [depth: number, startMs: number, durationMs: number, fn: number, value: number][];
	}[];
}

export interface CallGraphAnswer {
	total: number;
	left_out: number;
	functions: (FunctionAnswer & { flat: number; cum: number })[];
	edges: [caller: number, callee: number, value: number][];
}
