// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SeriesAnswer } from "../../../src/ui/src/model/answers";
import {
	COLUMNS_MAX, cellSpan, cellsOf, columnChoices, heatStep, HEAT_STEPS, heatmapOf, layoutFor, sumOf,
} from "../../../src/ui/src/model/heatmap";
import { formatCells, lengthOf, parseCells } from "../../../src/ui/src/model/moments";
import { START, formatPlace, parsePlace } from "../../../src/ui/src/model/place";
import { type Profile, GROUP, nodeAt, nodeName } from "../../../src/ui/src/model/profile";
import { chartOf, laneLabel, laneOf, lanesOf, stepsFor } from "../../../src/ui/src/model/timeline";
import { folded } from "./encode";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

test("columns are the finest that fit, cells no finer than times are known", () => {
	assert.deepEqual(layoutFor(MINUTE, 1), { columnMs: SECOND, rows: 50 });
	assert.deepEqual(layoutFor(15 * MINUTE, 1), { columnMs: 10 * SECOND, rows: 50 });
	assert.deepEqual(layoutFor(2 * 60 * MINUTE, 1), { columnMs: MINUTE, rows: 60 });
	assert.deepEqual(layoutFor(15 * MINUTE, 10_100), { columnMs: MINUTE, rows: 6 });
	assert.deepEqual(layoutFor(15 * MINUTE, 1, SECOND), { columnMs: SECOND, rows: 50 });
	for (let span = SECOND; span < 400 * 86_400_000; span *= 1.7)
		for (const known of [0, 1, 9_900, 10_000, 60_000, 3_600_000]) {
			const { columnMs, rows } = layoutFor(span, known);
			assert.ok(rows >= 1 && rows <= 200 && Number.isInteger(columnMs / rows), `${span} ${known}`);
			assert.ok(span / columnMs <= COLUMNS_MAX || columnMs === 86_400_000);
		}
	assert.deepEqual(columnChoices(15 * MINUTE).map(({ value }) => value), ["1s", "10s", "1m", "10m"]);
});

type Cell = [column: number, row: number, value: number, reports: number];
const answer = {
	from_ms: 100 * SECOND, to_ms: 103 * SECOND, column_ms: SECOND, rows: 50, times: true, resolution_ms: 1,
	cells: [[0, 0, 5, 1], [0, 49, 7, 1], [1, 0, 11, 1], [2, 49, 1, 1], [9, 0, 1000, 1]] as Cell[],
};

test("a stretch of cells goes on in the next column, and its sum is that of its cells", () => {
	const map = heatmapOf(answer);
	assert.equal(map.total, 24, "what is outside of the range is not there");
	const span = cellSpan(map, 50, 49);
	assert.deepEqual(span, { fromMs: 100_980, toMs: 101_020 });
	assert.deepEqual(cellsOf(map, span), [49, 51]);
	assert.equal(sumOf(map, [span]), 18);
	assert.equal(sumOf(map, [cellSpan(map, 0, 149)]), map.total);
	assert.deepEqual(cellsOf(map, { fromMs: 0, toMs: 1e15 }), [0, 150]);
});

test("one outlier leaves the others their colours", () => {
	const cells = Array.from({ length: 400 }, (_, at) =>
		[at >> 1, at & 1, 10, 1] as Cell);
	cells[7]![2] = 5_000;
	const map = heatmapOf({ ...answer, rows: 2, to_ms: 300 * SECOND, cells });
	assert.equal(heatStep(map, 10), HEAT_STEPS);
	assert.equal(heatStep(map, 5_000), HEAT_STEPS);
	assert.equal(heatStep(map, 0), 0);
	assert.equal(map.max, 5_000);
});

test("chosen moments survive the link; nonsense in it is left out", () => {
	const spans = parseCells("300-400,100-200,200-250,x,9-5,-3-4,1e3-2e3");
	assert.equal(formatCells(spans), "100-250,300-400");
	assert.equal(lengthOf(spans), 250);
	const place = { ...START, type: "a:b:c:d:e", view: "heatmap" as const, cells: "100-250,300-400", times: "0",
		column: "1m" };
	assert.deepEqual(parsePlace(formatPlace(place)).place, place);
	const { place: odd, problems } = parsePlace("?view=callgraph&cells=;&column=<b>&functions=1e9&times=7");
	assert.deepEqual([odd.cells, odd.column, odd.functions, odd.times, problems.length], ["", "", 40, "", 2]);
});

const base = folded("main 1").header;
const points = (...values: number[]) =>
	values.map((value, at) => [at * 10_000, value, value / 10, 1] as [number, number, number, number]);
const series: SeriesAnswer = {
	type: "t", unit: "count", period: 1, period_unit: "", delta: true, step_ms: 10_000,
	series: [
		{ labels: { cpu: "10" }, points: points(1, 2, 0) }, { labels: { cpu: "9" }, points: points(5, 0, 5) },
		{ labels: {}, points: points(0, 1, 0) }, { labels: { cpu: "3" }, points: points(0, 0, 0) },
	],
};
const span = { fromMs: 0, toMs: 30_000 };

test("lanes are what has a value, the largest first; numbers keep their order", () => {
	const lanes = lanesOf(series, "cpu", span, "");
	assert.deepEqual(lanes.list.map(({ name, total, open }) => [name, total, open]),
		[["cpu 9", 10, true], ["cpu 10", 3, false], ["(no cpu)", 1, false]]);
	assert.deepEqual([lanes.total, lanes.most, lanes.bars], [14, 5, 3]);
	const numbers = lanesOf({ ...series, series: series.series.slice(0, 2) }, "cpu", span, "=10");
	assert.deepEqual(numbers.list.map(({ name, open }) => [name, open]), [["cpu 9", false], ["cpu 10", true]]);
	/* Of a host the programs, of one program its threads. */
	assert.equal(laneLabel(["comm", "node", "thread_name"]), "comm");
	assert.equal(laneLabel(["comm", "node", "thread_name"], 'comm="java"'), "thread_name");
	assert.equal(laneLabel(["comm", "thread_name"], 'comm=~"java|node", node!="a"'), "comm");
	assert.equal(stepsFor({ fromMs: 0, toMs: 15 * MINUTE }), 10_000);
	assert.equal(stepsFor({ fromMs: 0, toMs: 12_000 }), 100);
});

function assertSound(profile: Profile): void {
	for (let row = 1; row < profile.rows; row++)
		for (let node = profile.rowStart[row]!; node < profile.rowStart[row + 1]!; node++) {
			const parent = profile.parent[node]!;
			assert.ok(parent < node && profile.start[node]! >= profile.start[parent]!);
			if (node > profile.rowStart[row]!)
				assert.ok(profile.start[node]! >= profile.start[node - 1]! + profile.total[node - 1]!);
		}
}

test("boxes stand below their lane and their caller, gaps between them are empty", () => {
	const lanes = lanesOf(series, "cpu", span, "=9");
	const chart = chartOf(lanes, {
		from_ms: 0, to_ms: 30_000, step_ms: 10_000, resolution_ms: 10_000, total: 10, lanes_left_out: 0,
		functions: ["total", "main", "parse", "json"].map((name) => ({ name, kind: "native" })),
		lanes: [{
			name: "9", total: 10, boxes: [
				[0, 0, 10_000, 1, 5], [1, 0, 4_000, 2, 2], [1, 4_000, 6_000, 3, 3],
				[0, 20_000, 10_000, 1, 5],
				[1, 25_000, 5_000, 3, 2],
			],
		}],
	}, base);
	assertSound(chart.profile);
	assert.equal(nodeName(chart.profile, chart.nodes[0]!), "cpu 9");
	assert.equal(chart.profile.flags[chart.nodes[1]!], GROUP);
	const json = nodeAt(chart.profile, 3, 27_000);
	assert.equal(nodeName(chart.profile, json), "json");
	assert.equal(nodeName(chart.profile, chart.profile.parent[json]!), "main");
	assert.equal(chart.profile.start[chart.profile.parent[json]!], 20_000);
	assert.equal(nodeAt(chart.profile, 2, 15_000), -1, "nothing ran then");
	assert.deepEqual([laneOf(chart, json), laneOf(chart, chart.nodes[2]!), laneOf(chart, 0)], [0, 2, -1]);
	assert.equal(chart.profile.functionSelf[1], 3);
	assert.equal(chartOf(lanes, null, base).profile.rows, 4, "the rows are there before the boxes");
});
