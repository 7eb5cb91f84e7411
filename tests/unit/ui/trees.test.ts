// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	changeOf, changeWords, compareProfiles, functionChanges, mainCause, stepOf, stepsOf,
} from "../../../src/ui/src/model/compare";
import { filterText } from "../../../src/ui/src/model/filters";
import { invertProfile, sandwich } from "../../../src/ui/src/model/invert";
import { type Profile, functionName, nodeName, pathOf } from "../../../src/ui/src/model/profile";
import { folded } from "./encode";

const namesOf = (profile: Profile, node: number) =>
	pathOf(profile, node).slice(1).map((at) => nodeName(profile, at));

/* "a;b 3" per node that has a value of its own. */
function stacks(profile: Profile, self = profile.self): string[] {
	const lines: string[] = [];
	for (let node = 1; node < profile.count; node++)
		if (self[node]! > 0)
			lines.push(`${namesOf(profile, node).join(";")} ${self[node]}`);
	return lines.sort();
}

const A = ["main;parse;json 100", "main;parse 20", "main;deflate 400"];

test("a profile compared to itself has not changed anywhere", () => {
	const merged = compareProfiles(folded(...A), folded(...A));
	const [a, b] = merged.sides!;
	assert.deepEqual(a.total, b.total);
	for (const mode of ["rate", "share", "raw"] as const) {
		assert.ok(stepsOf(merged, mode, true).every((step) => step === 0));
		for (const row of functionChanges(merged, mode, true))
			assert.deepEqual([row.self.delta, row.total.delta, row.total.ratio], [0, 0, 0], row.name);
	}
});

test("half as much again in one leaf is found there, and nowhere beside it", () => {
	const merged = compareProfiles(
		folded(...A), folded("main;parse;json 100", "main;parse 20", "main;deflate 600"));
	const rows = functionChanges(merged, "raw", true)
		.sort((x, y) => Math.abs(y.self.delta) - Math.abs(x.self.delta));
	assert.equal(rows[0]!.name, "deflate");
	assert.equal(changeWords(rows[0]!.self), "▲ +50 %");
	assert.ok(rows.slice(1).every((row) => row.self.delta === 0));
	assert.equal(mainCause(rows, 200)!.name, "deflate");
	const steps = stepsOf(merged, "raw", true);
	for (let node = 0; node < merged.count; node++)
		if (["parse", "json"].includes(nodeName(merged, node)))
			assert.equal(steps[node], 0);
		else
			assert.ok(steps[node]! > 0, nodeName(merged, node));
});

test("what one side lacks is new or gone, never a number that is none", () => {
	const merged = compareProfiles(folded("main;old 50"), folded("main;fresh 50"));
	const words = new Map(functionChanges(merged, "share", true).map((row) => [row.name, changeWords(row.total)]));
	assert.deepEqual(words, new Map([["main", "="], ["old", "gone"], ["fresh", "new"]]));
	const empty = compareProfiles(folded("main 5"), folded());
	for (const mode of ["rate", "share", "raw"] as const)
		for (const row of functionChanges(empty, mode, true)) {
			assert.equal(changeWords(row.total), "gone");
			assert.ok(Number.isFinite(row.total.delta) && row.total.delta < 0);
		}
});

test("swapped, every change has the other sign", () => {
	const b = ["main;parse;json 10", "main;deflate 700", "main;x 3"];
	const there = new Map(functionChanges(compareProfiles(folded(...A), folded(...b)), "rate", true)
		.map((row) => [row.name, row.self.delta]));
	for (const row of functionChanges(compareProfiles(folded(...b), folded(...A)), "rate", true))
		assert.equal(row.self.delta + there.get(row.name)!, 0, row.name);
});

test("a change that chance makes is grey, the same change of many samples is not", () => {
	const few = compareProfiles(folded("main 10"), folded("main 14"));
	const many = compareProfiles(folded("main 10000"), folded("main 14000"));
	const change = (profile: Profile) => {
		const [a, b] = profile.sides!;
		return changeOf([a, b], a.total[0]!, b.total[0]!, "raw", true);
	};
	assert.equal(stepOf(change(few)), 0);
	assert.ok(stepOf(change(many)) > 0);
});

test("inverted, stacks run from the leaf to the root and functions keep their sums", () => {
	const source = folded("main;parse;json 3", "main;json 2", "main 1");
	const inverted = invertProfile(source);
	assert.deepEqual(stacks(inverted), ["json;main 2", "json;parse;main 3", "main 1"]);
	assert.equal(inverted.total[0], 6);
	assert.deepEqual(inverted.functionSelf, source.functionSelf);
	assert.deepEqual(inverted.functionTotal, source.functionTotal);
});

test("a sandwich's callers add up to its callees and itself, recursion counted once", () => {
	const source = folded("main;walk;walk;leaf 3", "main;walk 2", "other;walk;leaf 4", "other 9");
	const walk = Uint8Array.from({ length: source.functions.count }, (_, fn) =>
		(fn && functionName(source, fn) === "walk" ? 1 : 0));
	const { callers, callees } = sandwich(source, walk);
	assert.equal(callers.total[0], 9);
	assert.equal(callees.total[0], 9);
	assert.deepEqual(stacks(callers), ["walk;main 5", "walk;other 4"]);
	assert.deepEqual(stacks(callees), ["walk 2", "walk;leaf 4", "walk;walk;leaf 3"]);
});

test("a filter's value is quoted, whatever it has in it", () => {
	const written = filterText("hide-stack", "function", "=", 'a, "b"; \\c');
	assert.equal(written, 'hide-stack function="a, \\"b\\"; \\\\c"');
});
