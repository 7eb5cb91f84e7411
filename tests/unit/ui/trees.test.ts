// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	changeWords, compareProfiles, functionChanges, mainCause,
} from "../../../src/ui/src/model/compare";
import { filterText } from "../../../src/ui/src/model/filters";
import { asProfiles, invertProfile, sandwich } from "../../../src/ui/src/model/invert";
import type { Significance } from "../../../src/ui/src/model/answers";
import { type Profile, functionName, nodeName, pathOf } from "../../../src/ui/src/model/profile";
import {
	type Verdicts, isShown, nodeVerdict, stepsOf, totalVerdict, verdictOf, verdictsOf,
} from "../../../src/ui/src/model/verdicts";
import { folded } from "./encode";

/* Values that cannot be tested: every change is shown. */
const UNTESTABLE: Verdicts = { method: "none", isPending: false, total: null, byName: new Map() };

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
		assert.ok(stepsOf(merged, mode, UNTESTABLE).every((step) => step === 0));
		for (const row of functionChanges(merged, mode))
			assert.deepEqual([row.self.delta, row.total.delta, row.total.ratio], [0, 0, 0], row.name);
	}
});

test("half as much again in one leaf is found there, and nowhere beside it", () => {
	const merged = compareProfiles(
		folded(...A), folded("main;parse;json 100", "main;parse 20", "main;deflate 600"));
	const rows = functionChanges(merged, "raw")
		.sort((x, y) => Math.abs(y.self.delta) - Math.abs(x.self.delta));
	assert.equal(rows[0]!.name, "deflate");
	assert.equal(changeWords(rows[0]!.self), "▲ +50 %");
	assert.ok(rows.slice(1).every((row) => row.self.delta === 0));
	assert.equal(mainCause(rows, 200)!.name, "deflate");
	const steps = stepsOf(merged, "raw", UNTESTABLE);
	for (let node = 0; node < merged.count; node++)
		if (["parse", "json"].includes(nodeName(merged, node)))
			assert.equal(steps[node], 0);
		else
			assert.ok(steps[node]! > 0, nodeName(merged, node));
});

test("what one side lacks is new or gone, never a number that is none", () => {
	const merged = compareProfiles(folded("main;old 50"), folded("main;fresh 50"));
	const words = new Map(functionChanges(merged, "share").map((row) => [row.name, changeWords(row.total)]));
	assert.deepEqual(words, new Map([["main", "="], ["old", "gone"], ["fresh", "new"]]));
	const empty = compareProfiles(folded("main 5"), folded());
	for (const mode of ["rate", "share", "raw"] as const)
		for (const row of functionChanges(empty, mode)) {
			assert.equal(changeWords(row.total), "gone");
			assert.ok(Number.isFinite(row.total.delta) && row.total.delta < 0);
		}
});

test("swapped, every change has the other sign", () => {
	const b = ["main;parse;json 10", "main;deflate 700", "main;x 3"];
	const there = new Map(functionChanges(compareProfiles(folded(...A), folded(...b)), "rate")
		.map((row) => [row.name, row.self.delta]));
	for (const row of functionChanges(compareProfiles(folded(...b), folded(...A)), "rate"))
		assert.equal(row.self.delta + there.get(row.name)!, 0, row.name);
});

const tested = (self: boolean | null, total: boolean | null) => {
	const of = (significant: boolean | null) => significant === null ? null
		: { share: 0, base_share: 0, low: 0, high: 0, p: significant ? 0.001 : 0.7, significant };
	return { self: of(self), total: of(total) };
};

test("until the test has answered nothing is coloured, afterwards what is more than noise", () => {
	const before = folded("main;f 10000", "main;g 900");
	const merged = compareProfiles(before, folded("main;f 14000", "main;g 1500"));
	const steps = (verdicts: Verdicts) => Array.from(stepsOf(merged, "raw", verdicts), (step, node) =>
		[nodeName(merged, node), Math.sign(step)]).filter(([, step]) => step !== 0).map(([name]) => name);
	assert.deepEqual(steps(null), []);
	const answer: Significance = {
		pending: 0,
		significance: { method: "blocks", total: { rate: 1, base_rate: 1, p: 0.5, significant: false } },
		functions: [
			{ name: "main", change: tested(null, false) }, { name: "f", change: tested(true, true) },
			{ name: "g" },
		],
	};
	const said = verdictsOf(answer);
	assert.deepEqual(steps(said), ["f"]);
	assert.deepEqual(["main", "f", "g"].map((name) => verdictOf(said, merged, name)),
		["noise", "sure", "untested"]);
	assert.equal(totalVerdict(said, merged), "noise");
	/* What is named later may be tested later; what came while it was tested has no verdict at all. */
	const early = verdictsOf({ ...answer, pending: 3, functions: answer.functions.slice(0, 2) });
	assert.deepEqual(["main", "f", "g"].map((name) => verdictOf(early, merged, name)),
		["noise", "sure", "pending"]);
	assert.equal(verdictsOf({ pending: 3, functions: [] }), null);
	const oneSided = compareProfiles(folded(), folded("main 7"));
	assert.equal(verdictOf(null, oneSided, "main"), "none", "all of it is new, and no test is needed");
});

test("of fifty pairs, graph and table agree on every frame, before and after the test", () => {
	let seed = 7;
	const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
	for (let pair = 0; pair < 50; pair++) {
		const lines = () => Array.from({ length: 40 }, () =>
			`main;f${random(6)};f${random(12)};f${random(20)} ${1 + random(500)}`);
		const merged = compareProfiles(folded(...lines()), folded(...lines()));
		const choices = [true, false, null];
		const functions = Array.from({ length: 20 }, (_, fn) => ({
			name: `f${fn}`, change: tested(choices[random(3)]!, choices[random(3)]!),
		}));
		const said = verdictsOf({ pending: 0, significance: { method: "counts", total: null }, functions });
		for (const verdicts of [null, said]) {
			const steps = stepsOf(merged, "rate", verdicts);
			for (let node = 1; node < merged.count; node++) {
				const verdict = verdictOf(verdicts, merged, nodeName(merged, node));
				assert.equal(nodeVerdict(verdicts, merged, node), verdict);
				assert.ok(isShown(verdict) || steps[node] === 0, `${node} is ${verdict}`);
			}
		}
	}
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
	const { callers, callees } = asProfiles(sandwich(source, walk), source);
	assert.equal(callers.total[0], 9);
	assert.equal(callees.total[0], 9);
	assert.deepEqual(stacks(callers), ["walk;main 5", "walk;other 4"]);
	assert.deepEqual(stacks(callees), ["walk 2", "walk;leaf 4", "walk;walk;leaf 3"]);
});

test("a filter's value is quoted, whatever it has in it", () => {
	const written = filterText("hide-stack", "function", "=", 'a, "b"; \\c');
	assert.equal(written, 'hide-stack function="a, \\"b\\"; \\\\c"');
});
