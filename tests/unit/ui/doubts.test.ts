// SPDX-License-Identifier: Apache-2.0
/* What is said of numbers that are not all there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareProfiles } from "../../../src/ui/src/model/compare";
import { type Sender, doubtsOf } from "../../../src/ui/src/model/doubts";
import type { ProfileHeader } from "../../../src/ui/src/model/profile";
import { unitOf } from "../../../src/ui/src/model/quantity";
import { parseMatchers } from "../../../src/ui/src/model/selector";
import { type Box, profileOf } from "./encode";

const SAMPLES = { unit: "count", period: 10_000_000, period_unit: "nanoseconds", delta: true };
const MARKER = 14;

const rootOf = (children: Box[]): Box => ({ name: "total", children });

function told(boxes: Box[], header: Partial<ProfileHeader> = {}, senders: Sender[] = [], matchers = "") {
	const profile = profileOf(rootOf(boxes), { ...SAMPLES, ...header });
	const parsed = parseMatchers(matchers);
	return doubtsOf(profile, unitOf(profile.header), senders, parsed.ok ? parsed.matchers : []);
}

const enough: Box[] = [{ name: "main", self: 1000 }];

test("of numbers that are all there nothing is said", () => assert.deepEqual(told(enough), []));

test("parts that could not be read are counted, and lead to the status", () => {
	const [one] = told(enough, { partial: true, parts_unreadable: 3 });
	assert.match(one!.full, /^3 parts of the store could not be read/);
	assert.equal(one!.page, "status");
	assert.match(told(enough, { partial: true })[0]!.full, /^Part of the store/);
});

test("few samples are thin, of whatever unit, and on either side of a comparison", () => {
	assert.equal(told([{ name: "main", self: 12 }])[0]!.brief, "only 12 samples");
	assert.equal(told([{ name: "main", self: 1 }])[0]!.brief, "only 1 sample");
	assert.equal(told([{ name: "main", self: 29e7 }], { unit: "nanoseconds" })[0]!.brief, "only 29 samples");
	assert.deepEqual(told([{ name: "main", self: 30e7 }], { unit: "nanoseconds" }), []);
	assert.deepEqual(told([{ name: "main", self: 3 }], { unit: "bytes", period: 0 }), [], "bytes are no samples");
	const few = profileOf(rootOf([{ name: "main", self: 7 }]), SAMPLES);
	const both = compareProfiles(profileOf(rootOf(enough), SAMPLES), few);
	assert.match(doubtsOf(both, unitOf(both.header), [], [])[0]!.full, /7 samples on one side/);
});

test("cut stacks are summed up, with their reasons", () => {
	const cut = (why: string, self: number): Box =>
		({ name: `[truncated: ${why}]`, kind: MARKER, children: [{ name: "leaf", self }] });
	const [all] = told([...enough, cut("too deep", 40), cut("no frame pointer", 210), cut("unreadable stack", 0)]);
	assert.equal(all!.brief, "20.0 % of stacks are cut");
	assert.match(all!.full, /no frame pointer \(16\.8 %\), too deep \(3\.2 %\)\.$/);
	assert.deepEqual(told([...enough, { name: "[truncated: so a program calls it]", self: 9 }]), []);
});

test("samples that senders lost are told when they lost them in this range, and may be in the query", () => {
	const range = { from_ms: 1_000_000, to_ms: 1_600_000 };
	const lossy = (more: Partial<Sender>): Sender =>
		({ labels: { node: "a" }, peer: "10.0.0.1", lost: 1234, lost_ms: 1_300_000, ...more });
	const [one] = told(enough, range, [lossy({}), lossy({ lost: 5, labels: { node: "b" } })]);
	assert.equal(one!.full, "a lost samples in this range: 1\u202f234 since it started. So did 1 more.");
	assert.equal(one!.page, "targets");
	for (const none of [lossy({ lost: 0 }), lossy({ lost_ms: 999_999 }), lossy({ lost_ms: 1_660_001 })])
		assert.deepEqual(told(enough, range, [none]), []);
	assert.deepEqual(told(enough, range, [lossy({})], 'node="b"'), []);
	assert.deepEqual(told(enough, range, [lossy({})], 'node!="a"'), []);
	assert.equal(told(enough, range, [lossy({})], 'node="a", comm="x"').length, 1);
});

test("names that are still to come are told, and that symbols lack", () => {
	const reasons = [{ code: "no_file", text: "", mapping: "", build_id: "", value: 250, leaf: 100 }];
	const list = told(enough, { pending: 3, unresolved: { value: 250, leaf: 100, reasons_total: 1, reasons } });
	const unnamed = "Leaf unnamed 10.0 %, some frame unnamed 25.0 %";
	assert.deepEqual(list.map(({ brief }) => brief), [unnamed, "reading symbols…"]);
	assert.match(list[1]!.full, /^The symbols of 3 frames/);
});
