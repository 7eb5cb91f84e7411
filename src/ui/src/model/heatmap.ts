// SPDX-License-Identifier: Apache-2.0
/*
 * heatmap - values in cells of time: columns of equal width, rows within a column from its start
 * (top) to its end. Cells are numbered in the order of time, so a period of time is a range of
 * numbers.
 */
import type { HeatmapAnswer } from "./answers";
import type { Span } from "./timerange";

export interface Layout {
	columnMs: number;
	rows: number;
}

export interface Heatmap {
	fromMs: number;
	columnMs: number;
	cellMs: number;
	columns: number;
	rows: number;
	/* By cell. */
	values: Float64Array;
	/* What the darkest colour begins at: outliers would make all else look empty. */
	cap: number;
	max: number;
	total: number;
	resolutionMs: number;
}

/* Column width and the cells that fit it: sub-second, sub-minute, sub-hour, sub-day. */
const LAYOUTS: [columnMs: number, cellMs: number][] = [
	[1_000, 20], [10_000, 200], [60_000, 1_000], [600_000, 10_000], [3_600_000, 60_000],
	[86_400_000, 1_800_000],
];
export const COLUMN_CHOICES = ["1s", "10s", "1m", "10m", "1h", "1d"] as const;

export const COLUMNS_MAX = 200;
const COLUMNS_SHOWN_MAX = 2_000;
/* A column of fewer cells says little. */
const ROWS_WANTED = 5;
export const HEAT_STEPS = 8;

/* Cells no finer than times are known; of reports that are a little early or late as well. */
function rowsOf(columnMs: number, cellMs: number, resolutionMs: number): number {
	let rows = Math.round(columnMs / cellMs);
	while (rows > 1 && (columnMs % rows || columnMs / rows < resolutionMs * 0.9))
		rows--;
	return rows;
}

/* The finest columns of which so many fit; `columnMs` 0: any. */
export function layoutFor(spanMs: number, resolutionMs: number, columnMs = 0): Layout {
	const fits = ([column, cell]: [number, number]) => spanMs / column <= COLUMNS_MAX &&
		rowsOf(column, cell, resolutionMs) >= ROWS_WANTED;
	const chosen = LAYOUTS.find(([column]) => column === columnMs) ?? LAYOUTS.find(fits) ?? LAYOUTS.at(-1)!;
	return { columnMs: chosen[0], rows: rowsOf(chosen[0], chosen[1], resolutionMs) };
}

/* Widths of columns that a range can be shown in. */
export function columnChoices(spanMs: number): { value: string; columnMs: number }[] {
	return COLUMN_CHOICES.map((value, index) => ({ value, columnMs: LAYOUTS[index]![0] }))
		.filter(({ columnMs }) => spanMs / columnMs <= COLUMNS_SHOWN_MAX && spanMs / columnMs > 1);
}

export function heatmapOf(answer: HeatmapAnswer): Heatmap {
	const { from_ms: fromMs, column_ms: columnMs, rows } = answer;
	const columns = Math.max(1, Math.ceil((answer.to_ms - fromMs) / columnMs));
	const values = new Float64Array(columns * rows);
	let total = 0;
	let max = 0;
	for (const [column, row, value] of answer.cells) {
		if (column < 0 || column >= columns || row < 0 || row >= rows)
			continue;
		values[column * rows + row] = value;
		total += value;
		max = Math.max(max, value);
	}
	return {
		fromMs, columnMs, cellMs: columnMs / rows, columns, rows, values, total, max, cap: capOf(values, max),
		resolutionMs: answer.resolution_ms,
	};
}

/* The value that one filled cell in a hundred is above, unless that is most of the largest. */
function capOf(values: Float64Array, max: number): number {
	const filled = values.filter((value) => value > 0).sort();
	const high = filled[Math.floor(filled.length * 0.99)] ?? max;
	return high < max / 2 ? high : max;
}

/* 0 for an empty cell, else 1 to HEAT_STEPS. */
export function heatStep(map: Heatmap, value: number): number {
	return value > 0 ? Math.min(HEAT_STEPS, Math.ceil((value / map.cap) * HEAT_STEPS)) : 0;
}

export function cellSpan(map: Heatmap, first: number, last = first): Span {
	const [low, high] = first <= last ? [first, last] : [last, first];
	return { fromMs: map.fromMs + low * map.cellMs, toMs: map.fromMs + (high + 1) * map.cellMs };
}

/* The cells that a span covers, as [first, end). */
export function cellsOf(map: Heatmap, { fromMs, toMs }: Span): [number, number] {
	const at = (ms: number) => (ms - map.fromMs) / map.cellMs;
	const clamp = (cell: number) => Math.min(map.values.length, Math.max(0, cell));
	return [clamp(Math.floor(at(fromMs) + 1e-6)), clamp(Math.ceil(at(toMs) - 1e-6))];
}

export function sumOf(map: Heatmap, spans: readonly Span[]): number {
	let sum = 0;
	for (const span of spans)
		for (let [cell, end] = cellsOf(map, span); cell < end; cell++)
			sum += map.values[cell]!;
	return sum;
}
