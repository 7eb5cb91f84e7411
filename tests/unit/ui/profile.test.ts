// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { FormatError, decodeProfile } from "../../../src/ui/src/model/decode";
import { findFramePath, followPath, formatFramePath } from "../../../src/ui/src/model/framepath";
import {
	childrenOf, depthOf, functionSystemName, functionUnresolved, isRecursive, nodeAt, nodeName, pathOf,
} from "../../../src/ui/src/model/profile";
import { compilePattern, findMatches, nextMatch } from "../../../src/ui/src/model/search";
import { sortTop, topTable } from "../../../src/ui/src/model/top";
import { colourProfile, OTHER } from "../../../src/ui/src/model/colours";
import { encode, folded, profileOf, sectioned } from "./encode";

const named = (profile: ReturnType<typeof folded>, name: string) => {
	for (let node = 0; node < profile.count; node++)
		if (nodeName(profile, node) === name)
			return node;
	throw new Error(`no ${name}`);
};

test("nodes are laid out row by row, children side by side below their parent", () => {
	const p = folded("a;b 2", "a;c 3", "d 5", "a 1");
	const rows = Array.from({ length: p.rows }, (_, d) => {
		const [first, end] = [p.rowStart[d]!, p.rowStart[d + 1]!];
		return Array.from({ length: end - first }, (_node, i) => nodeName(p, first + i));
	});
	assert.deepEqual(rows, [["total"], ["a", "d"], ["b", "c"]]);
	assert.deepEqual(Array.from(p.total), [11, 6, 5, 2, 3]);
	assert.deepEqual(Array.from(p.start), [0, 0, 6, 0, 2]);
	assert.deepEqual(Array.from(p.parent), [0, 0, 0, 1, 1]);
});

test("a point is found in the box that covers it, and not beside it", () => {
	const p = folded("a;b 2", "a;c 3", "d 5", "a 1");
	assert.equal(nodeName(p, nodeAt(p, 2, 1.9)), "b");
	assert.equal(nodeName(p, nodeAt(p, 2, 2)), "c");
	assert.equal(nodeAt(p, 2, 5.5), -1, "self time of a has nothing below");
	assert.equal(nodeAt(p, 1, 11), -1);
	assert.equal(nodeAt(p, 9, 1), -1);
	assert.deepEqual(childrenOf(p, named(p, "a"), 1), [3, 5]);
	const [first, end] = childrenOf(p, named(p, "d"), 1);
	assert.equal(end - first, 0);
	assert.deepEqual(pathOf(p, named(p, "c")).map((node) => nodeName(p, node)), ["total", "a", "c"]);
	assert.equal(depthOf(p, named(p, "c")), 2);
});

test("a stack of ten thousand frames is laid out", () => {
	const p = folded(`${Array.from({ length: 10_000 }, (_, i) => `f${i % 7}`).join(";")} 4`);
	assert.equal(p.rows, 10_001);
	assert.equal(p.total[0], 4);
	assert.equal(p.total[p.count - 1], 4);
});

test("names keep unicode, and values beyond 32 bits", () => {
	const p = profileOf({ name: "total", children: [{ name: "größe<日本>", self: 2 ** 45 + 1 }] });
	assert.equal(nodeName(p, 1), "größe<日本>");
	assert.equal(p.total[0], 2 ** 45 + 1);
});

const SMALL = { name: "total", children: [{ name: "a", self: 300, children: [{ name: "b", self: 5 }] }] };

test("any cut of the bytes is an error with an offset, never anything else", () => {
	const whole = encode(SMALL);
	for (let length = 0; length < whole.byteLength; length++) {
		try {
			decodeProfile(whole.slice(0, length));
		} catch (error) {
			assert.ok(error instanceof FormatError, `${length}: ${String(error)}`);
			assert.match(error.message, /at byte \d+/);
		}
	}
});

test("any changed byte gives a profile or a FormatError", () => {
	const whole = new Uint8Array(encode(SMALL));
	for (let at = 0; at < whole.length; at++)
		for (const value of [0, 1, 127, 128, 255]) {
			const bytes = whole.slice();
			bytes[at] = value;
			try {
				decodeProfile(bytes.buffer);
			} catch (error) {
				assert.ok(error instanceof FormatError, `byte ${at}=${value}: ${String(error)}`);
			}
		}
});

test("sections of unknown type are skipped, missing ones named", () => {
	assert.throws(() => decodeProfile(sectioned([[9, new Uint8Array(3)]])), /section 1 is missing/);
});

test("the share of a search counts recursion once", () => {
	const p = folded("a;json;json;x 4", "a;json 1", "a;y 5");
	const pattern = compilePattern("json");
	assert.equal(pattern.kind, "match");
	const found = findMatches(p, (pattern as { test(name: string): boolean }).test);
	assert.deepEqual([found.functionCount, found.nodeCount, found.value], [1, 2, 5]);
});

test("a trimmed rest matches nothing", () => {
	const p = profileOf({ name: "total", children: [{ name: "a", self: 1 }, { name: "", self: 2, flags: 4 }] });
	assert.equal(findMatches(p, () => true).value, 1);
});

test("plain text ignores case until it has a capital, slashes make a regular expression", () => {
	const hits = (text: string, name: string) => {
		const pattern = compilePattern(text);
		return pattern.kind === "match" && pattern.test(name);
	};
	assert.ok(hits("json", "parseJSON"));
	assert.ok(!hits("Json", "parseJSON"));
	assert.ok(hits("/json.*parse/i", "JSON::Parse"));
	assert.ok(!hits("/json.*parse/", "JSON::Parse"));
	assert.ok(hits("a.b", "xa.by") && !hits("a.b", "axb"));
	assert.equal(compilePattern("/(/").kind, "invalid");
	assert.equal(compilePattern("").kind, "none");
	assert.equal(compilePattern("//").kind, "none");
});

test("walking the matches goes round in both directions", () => {
	const p = folded("a;m 1", "b;m 1", "c 1");
	const found = findMatches(p, (name) => name === "m");
	const first = nextMatch(p, found, 0, 1);
	const second = nextMatch(p, found, first, 1);
	assert.notEqual(first, second);
	assert.equal(nextMatch(p, found, second, 1), first);
	assert.equal(nextMatch(p, found, first, -1), second);
	assert.equal(nextMatch(p, findMatches(p, () => false), 0, 1), -1);
});

test("the top table counts a recursive function once per stack, as pprof does", () => {
	const p = folded("a;r;r;b 4", "a;r 1", "b 2", "r;a;r 3");
	const top = topTable(p);
	const row = (name: string) => {
		const fn = p.func[named(p, name)]!;
		return [top.self[fn], top.total[fn]];
	};
	assert.deepEqual(row("r"), [4, 8]);
	assert.deepEqual(row("a"), [0, 8]);
	assert.deepEqual(row("b"), [6, 6]);
	const names = (table: typeof top) => Array.from(table.rows, (fn) => p.functions.strings[p.functions.name[fn]!]);
	assert.deepEqual(names(sortTop(p, top, "self", true)), ["b", "r", "a"]);
	assert.deepEqual(names(sortTop(p, top, "total", true)), ["a", "r", "b"], "ties go by name");
	assert.deepEqual(names(sortTop(p, top, "name", false)), ["a", "b", "r"]);
});

test("a frame path is found again in another profile, whatever else changed", () => {
	const old = folded("a;b;c 2", "a;x 3");
	const fresh = folded("new 9", "a;x 1", "a;b;q 1", "a;b;c 7");
	const link = formatFramePath(old, named(old, "c"));
	assert.equal(findFramePath(fresh, link), named(fresh, "c"));
	assert.equal(findFramePath(fresh, ""), 0);
	assert.equal(findFramePath(folded("a;b 1"), link), -1);
	assert.equal(findFramePath(fresh, "no such thing"), -1);
	assert.equal(findFramePath(fresh, "999999.abc"), -1);
	assert.ok(link.length < 20);
});

test("following a path stops at the last frame that is still there", () => {
	const old = folded("a;b;c 2");
	const fresh = folded("z 9", "a;b;d 1");
	assert.equal(nodeName(fresh, followPath(old, named(old, "c"), fresh)), "b");
	assert.equal(followPath(old, named(old, "c"), folded("q 1")), 0);
});

test("the kernel has the same colour everywhere, also when it comes late", () => {
	const memory = new Map<string, number>();
	const app = { name: "f", mapping: "/bin/app", self: 9 };
	const slot = (children: (typeof app & { kind?: number })[]) =>
		colourProfile(profileOf({ name: "total", children }), "binary", memory)
			.categories.find(({ label }) => label === "kernel")?.slot;
	assert.equal(slot([app]), undefined);
	assert.equal(slot([app, { name: "schedule", mapping: "[kernel]", kind: 2, self: 1 }]), 0);
});

test("the heaviest eight binaries have a colour, and keep it", () => {
	const boxes = (order: number[]) => profileOf({
		name: "total",
		children: order.map((id, rank) => ({ name: `f${id}`, mapping: `/lib/${id}.so`, self: 100 - rank })),
	});
	const memory = new Map<string, number>();
	const before = colourProfile(boxes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), "binary", memory);
	const after = colourProfile(boxes([9, 1, 0, 2, 3, 4, 5, 6, 7, 8]), "binary", memory);
	const slot = (colouring: typeof before, label: string) =>
		colouring.categories.find((category) => category.label === label)?.slot;
	assert.equal(new Set(before.categories.slice(0, 8).map((category) => category.slot)).size, 8);
	assert.equal(before.categories[8]!.slot, OTHER);
	for (const kept of [0, 1, 2, 3, 4, 5, 6])
		assert.equal(slot(after, `${kept}.so`), slot(before, `${kept}.so`));
	assert.equal(slot(after, "9.so"), slot(before, "7.so"), "a newcomer takes the slot that became free");
});

test("details of functions are optional, and tell system names and why there is no name", () => {
	const p = profileOf({ name: "total", children: [
		{ name: "box<int>::put", systemName: "_ZN3boxIiE3putEi", self: 1 },
		{ name: "0x1 [a]", unresolved: "no debuginfo", self: 1 },
	] });
	const [put, address] = [p.func[1]!, p.func[2]!];
	assert.equal(functionSystemName(p, put), "_ZN3boxIiE3putEi");
	assert.equal(functionUnresolved(p, put), "");
	assert.equal(functionUnresolved(p, address), "no debuginfo");
	const without = folded("a 1");
	assert.equal(functionSystemName(without, without.func[1]!), "");
	assert.deepEqual(without.header.unresolved.reasons, []);
});

test("details that name no string are refused", () => {
	const bytes = encode({ name: "total", children: [{ name: "a", systemName: "b", self: 1 }] });
	const view = new DataView(bytes);
	new Uint8Array(bytes)[view.getUint32(12 + 12 * 4 + 4, true) + 2] = 99;
	assert.throws(() => decodeProfile(bytes), FormatError);
});

test("a function is recursive that is its own caller, near or far, and no other", () => {
	const p = folded("main;a;b;a;c 2", "main;b;d 3", "main;d;d 1");
	const all = ["main", "a", "b", "c", "d"].filter((name) => isRecursive(p, name));
	assert.deepEqual(all, ["a", "d"]);
	assert.equal(isRecursive(p, "nosuch"), false);
});
