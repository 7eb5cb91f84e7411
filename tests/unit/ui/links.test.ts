// SPDX-License-Identifier: Apache-2.0
/* Links that were given to people stay what they are: none of these lines is ever changed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Place, START, formatPlace, parsePlace } from "../../../src/ui/src/model/place";

const CPU = "on_cpu:samples:count:cpu:nanoseconds:delta";
const DAY = { from: "1767225600000", to: "1767312000000" };
const LINKS: [string, Partial<Place>][] = [
	["", {}],
	[`?query=${CPU}`, { type: CPU }],
	[`?query=${CPU}%7Bcomm%3D%22nginx%22%7D`, { type: CPU, matchers: 'comm="nginx"' }],
	[`?query=${CPU}&from=now-1h&to=now&live=0`, { type: CPU, range: { from: "now-1h", to: "now" }, live: false }],
	[`?query=${CPU}&from=1767225600000&to=1767312000000&view=table&search=json`,
		{ type: CPU, range: DAY, live: false, view: "table", search: "json" }],
	["?zoom=4.9f3a&colour=kind&demangle=simple&invert=1&upright=1",
		{ zoom: "4.9f3a", colourBy: "kind", demangle: "simple", inverted: true, upright: true }],
	["?group_by=node,pod%252Cname&sum_by=comm", { groupBy: ["node", "pod,name"], sumBy: "comm" }],
	["?filter=hide-stack+epoll_wait&filter=show-from+function%3Dmain",
		{ filters: ["hide-stack epoll_wait", "show-from function=main"] }],
	["?view=sandwich&function=json%3A%3Aparse", { view: "sandwich", func: "json::parse" }],
	["?view=compare&base_from=now-30m&base_to=now-15m&mode=share",
		{ view: "compare", base: { matchers: "", range: { from: "now-30m", to: "now-15m" } }, mode: "share" }],
	["?view=heatmap&column=1s&cells=1767225600000-1767225600240&times=0",
		{ view: "heatmap", column: "1s", cells: "1767225600000-1767225600240", times: "0" }],
	["?view=timeline&lanes=cpu&lane=3", { view: "timeline", lanes: "cpu", lane: "3" }],
	["?view=callgraph&functions=80", { view: "callgraph", functions: 80 }],
	["?file=cpu.pb.gz&embed=1", { file: "cpu.pb.gz", live: false, embed: true }],
];

test("links of earlier forms open as they did, and without a complaint", () => {
	for (const [link, said] of LINKS) {
		const { place, problems } = parsePlace(link);
		assert.deepEqual(place, { ...START, ...said }, link);
		assert.deepEqual(problems, [], link);
		assert.deepEqual(parsePlace(formatPlace(place)).place, place, link);
	}
});

test("unknown words are ignored, wrong values said, and something is shown all the same", () => {
	assert.deepEqual(parsePlace("?later=1&utm_source=x"), { place: START, problems: [] });
	for (const [link, place] of [
		["?view=cube", START], ["?colour=9", START], ["?mode=x", START], ["?demangle=maybe", START],
		["?from=never", START], ["?base_from=x&base_to=y", START],
		["?column=wide", START], ["?column=10", START],
		["?functions=many", START], ["?functions=0", START], ["?functions=-3", START],
		["?functions=4e2", START],
		["?functions=99999", { ...START, functions: 400 }],
	] as const) {
		const parsed = parsePlace(link);
		assert.deepEqual(parsed.place, place, link);
		assert.equal(parsed.problems.length, 1, link);
	}
});
