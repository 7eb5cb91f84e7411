// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { gzipSync, gunzipSync } from "node:zlib";
import { openFile } from "../../../src/ui/src/files/open";
import { parseFrame, parseHead } from "../../../src/ui/src/files/perf_script";
import type { Tables } from "../../../src/ui/src/files/tables";
import { type FileQuery, treeOf } from "../../../src/ui/src/files/tree";
import { foldedText, speedscopeText } from "../../../src/ui/src/model/export";
import { functionName, nodeName, type Profile } from "../../../src/ui/src/model/profile";

const tests = process.env.FIRN_TESTS ?? "";
const golden = (name: string) => readFileSync(path.join(tests, "golden/pprof", name));
const seed = (name: string) => readFileSync(path.join(tests, "fuzz/corpus/profile_text", name));

const ALL: FileQuery = { type: "", groupBy: [], filters: [], inverted: false };
const open = async (content: string | Uint8Array) => openFile(new Blob([content as BlobPart]));
const tree = (tables: Tables, query: Partial<FileQuery> = {}) => treeOf(tables, { ...ALL, ...query });

/* flat and cum by name, as `go tool pprof -top` has them. */
function top(profile: Profile): Record<string, [flat: number, cum: number]> {
	const sums: Record<string, [number, number]> = {};
	for (let fn = 1; fn < profile.functions.count; fn++) {
		const sum = (sums[functionName(profile, fn)] ??= [0, 0]);
		sum[0] += profile.functionSelf[fn]!;
		sum[1] += profile.functionTotal[fn]!;
	}
	return sums;
}

const children = (profile: Profile) =>
	Object.fromEntries(
		Array.from({ length: profile.rowStart[2]! - 1 }, (_, index) => [
			nodeName(profile, index + 1),
			profile.total[index + 1],
		]),
	);

test("a pprof has the values that go tool pprof -top prints", async () => {
	const { format, tables } = await open(golden("go_cpu.pb.gz"));
	assert.equal(format, "pprof");
	assert.deepEqual(tables.types, [
		{ type: "samples", unit: "count" },
		{ type: "cpu", unit: "nanoseconds" },
	]);
	const profile = tree(tables);
	assert.equal(profile.total[0], 700e6);
	assert.deepEqual(top(profile), {
		"main.spin": [690e6, 700e6],
		"runtime.asyncPreempt": [10e6, 10e6],
		"main.main": [0, 700e6],
		"main.main.func1": [0, 700e6],
		"main.square": [0, 700e6],
		"runtime.main": [0, 700e6],
		"runtime/pprof.Do": [0, 700e6],
	});
	const samples = tree(tables, { type: "samples:count" });
	assert.equal(samples.total[0], 70);
	assert.equal(samples.header.period, 10_000_000);
});

test("a heap profile shows what its writer chose first, and has no rate", async () => {
	const { tables } = await open(gunzipSync(golden("go_heap.pb.gz")));
	const profile = tree(tables);
	assert.equal(profile.header.type, "file:inuse_space:bytes");
	assert.equal(profile.header.delta, false);
	/* 37443kB and 512.20kB of go tool pprof -top */
	assert.deepEqual(
		["main.allocate", "runtime.malg"].map((name) => (top(profile)[name]![0] / 1024).toFixed(1)),
		["37443.0", "512.2"],
	);
});

test("folded stacks: the value is the last word, suffixes of flamegraph.pl go", async () => {
	const { format, tables } = await open("# by hand\na;b;c 3\r\na;b 1.6\n\na;k_[k] 5\n main 2");
	assert.equal(format, "folded stacks");
	const profile = tree(tables);
	assert.equal(profile.total[0], 12);
	assert.deepEqual(top(profile), { a: [0, 10], b: [2, 5], c: [3, 3], k: [5, 5], main: [2, 2] });
	const lines = foldedText(profile).trim().split("\n").sort();
	assert.deepEqual(lines, ["a;b 2", "a;b;c 3", "a;k 5", "main 2"]);
});

test("perf script: samples and clock time, labels, binaries", async () => {
	const text = seed("perf_script").toString();
	const { format, tables } = await open(text);
	assert.equal(format, "perf script");
	const heads = text.match(/cpu-clock/g)!.length;
	assert.equal(tree(tables, { type: "samples:count" }).total[0], heads);
	const periods = [...text.matchAll(/(\d+) cpu-clock/g)].reduce((sum, found) => sum + Number(found[1]), 0);
	const profile = tree(tables);
	assert.equal(profile.header.type, "file:cpu:nanoseconds");
	assert.equal(profile.total[0], periods);
	assert.deepEqual(tables.labelNames(), ["comm", "pid"]);
	const grouped = tree(tables, { groupBy: ["comm"] });
	assert.equal(grouped.total[0], periods);
	assert.ok(Object.keys(children(grouped)).every((name) => /^[a-z0-9]+$/.test(name)));
});

test("perf script: heads and frames of every shape", () => {
	const head = (line: string) => {
		const { comm, pid, period, event, rest } = parseHead(line)!;
		return [comm, pid, period, event, rest];
	};
	assert.deepEqual(head("perl  460/461 [002] 36820.148159:    5025125 cpu-clock:ppp: "), [
		"perl",
		"460",
		5025125,
		"cpu-clock:ppp",
		"",
	]);
	assert.deepEqual(head("Web Content 12 1.5: cycles:"), ["Web Content", "12", NaN, "cycles", ""]);
	assert.deepEqual(head("sh 3 [000] 1.5: 250 cycles:u:  7f00 main+0x3 (/bin/sh)")[4], "7f00 main+0x3 (/bin/sh)");
	assert.equal(parseHead("this is no head"), null);
	assert.deepEqual(parseFrame("\tffffffff81 sched (x) [y]+0x2e ([kernel.kallsyms])"), {
		name: "sched (x) [y]",
		mapping: "[kernel]",
	});
	assert.deepEqual(parseFrame("   55d0 std::f(int (*)(char))+0x13 (/opt/a (b)/c (deleted))"), {
		name: "std::f(int (*)(char))",
		mapping: "/opt/a (b)/c",
	});
	assert.deepEqual(parseFrame("   55d0 [unknown] (/usr/bin/cat)"), {
		name: "0x55d0 [cat]",
		mapping: "/usr/bin/cat",
	});
	assert.equal(parseFrame("   main+0x3 (/usr/bin/cat)"), null);
});

test("speedscope: sampled and evented profiles; times become nanoseconds", async () => {
	const { format, tables } = await open(seed("speedscope"));
	assert.equal(format, "speedscope");
	const file = JSON.parse(seed("speedscope").toString());
	const weight = file.profiles[0].weights.reduce((sum: number, value: number) => sum + value, 0);
	assert.equal(tree(tables).total[0], weight);
	const evented = await open(
		JSON.stringify({
			shared: { frames: [{ name: "a" }, { name: "b" }] },
			profiles: [
				{
					type: "evented",
					name: "main",
					unit: "milliseconds",
					startValue: 0,
					endValue: 10,
					events: [
						{ type: "O", at: 1, frame: 0 },
						{ type: "O", at: 2, frame: 1 },
						{ type: "C", at: 5, frame: 1 },
						{ type: "C", at: 10, frame: 0 },
					],
				},
			],
		}),
	);
	assert.deepEqual(top(tree(evented.tables)), { a: [6e6, 9e6], b: [3e6, 3e6] });
});

test("what is exported as speedscope reads back as the same", async () => {
	const before = tree((await open(golden("go_cpu.pb.gz"))).tables);
	const after = tree((await open(speedscopeText(before, "x"))).tables);
	assert.deepEqual(top(after), top(before));
});

const STRINGS = ["main", "work", "work.js", "idle"];
const COLUMNS = {
	stackTable: { length: 2, prefix: [null, 0], frame: [0, 1] },
	frameTable: { length: 2, func: [0, 1], address: [-1, 64] },
	funcTable: { length: 2, name: [0, 1], fileName: [null, 2], resource: [0, -1], lineNumber: [null, 7] },
	resourceTable: { length: 1, lib: [0], name: [0] },
	stringArray: STRINGS,
};
const SAMPLES = { length: 4, stack: [0, 1, null, 1], weight: null, weightType: "samples", time: [0, 1, 2, 3] };
const LIBS = [{ name: "firefox", path: "/usr/lib/firefox/firefox" }];
const META = { interval: 2, startTime: 1e12, preprocessedProfileVersion: 57 };

test("Firefox: tables of a thread and tables that all share are the same; idle samples do not count", async () => {
	const old = { meta: META, threads: [{ name: "Main", libs: LIBS, samples: SAMPLES, ...COLUMNS }] };
	const shared = {
		meta: META,
		libs: LIBS,
		shared: COLUMNS,
		threads: [{ name: "Main", processName: "web", samples: { ...SAMPLES, weight: [1, 2, 9, 3] } }],
	};
	const before = tree((await open(gzipSync(JSON.stringify(old)))).tables);
	assert.deepEqual(top(before), { main: [1, 3], work: [2, 2] });
	assert.equal(before.header.period, 2e6);
	const { tables } = await open(JSON.stringify(shared));
	const after = tree(tables, { groupBy: ["process"] });
	assert.deepEqual(
		[top(after).main, top(after).work],
		[
			[1, 6],
			[5, 5],
		],
	);
	assert.deepEqual(children(after), { web: 6 });
});

test("Firefox: what the browser itself writes", async () => {
	const file = {
		meta: { version: 24, interval: 1 },
		threads: [
			{
				name: "Main",
				stringTable: ["main (in /bin/x)", "go (https://a/b.js:3:1)"],
				frameTable: { schema: { location: 0 }, data: [[0], [1]] },
				stackTable: {
					schema: { prefix: 0, frame: 1 },
					data: [
						[null, 0],
						[0, 1],
					],
				},
				samples: {
					schema: { stack: 0, time: 1 },
					data: [
						[1, 0],
						[0, 1],
						[1, 2],
					],
				},
			},
		],
		processes: [],
	};
	const profile = tree((await open(JSON.stringify(file))).tables, {
		filters: ["show-stack file=https://a/b.js"],
	});
	assert.deepEqual(top(profile), { main: [0, 2], go: [2, 2] });
	assert.equal(profile.header.filtered, 1);
});

test("filters mean what the server means by them", async () => {
	const { tables } = await open("main;a;b 1\nmain;a;c 2\nmain;d 4\nother;a 8\n");
	const shown = (...filters: string[]) => {
		const profile = tree(tables, { filters });
		return [foldedText(profile).trim().split("\n").sort().join(", "), profile.header.filtered];
	};
	assert.deepEqual(shown("show-stack function=a"), ["main;a;b 1, main;a;c 2, other;a 8", 4]);
	assert.deepEqual(shown("show-stack function!=main"), ["other;a 8", 7]);
	assert.deepEqual(shown('hide-stack function=~"[bc]"'), ["main;d 4, other;a 8", 3]);
	assert.deepEqual(shown("show-from function=a"), ["a 8, a;b 1, a;c 2", 4]);
	assert.deepEqual(shown('hide-frame function="a"'), ["main;b 1, main;c 2, main;d 4, other 8", 0]);
	assert.deepEqual(shown("SF function=a; HS function=d"), ["a 11", 4]);
	assert.deepEqual(shown("HF function!=a,function!=d"), ["a 11, d 4", 0]);
	assert.throws(() => shown("nonsense x"), /column 1: expected show-stack/);
	assert.throws(() => shown("show-stack function=~("), /Invalid regular expression/);
});

test("upside down, totals stay", async () => {
	const profile = tree((await open("main;a 1\nmain;b;a 2\n")).tables, { inverted: true });
	assert.deepEqual(children(profile), { a: 3 });
});

async function refused(content: string | Uint8Array): Promise<string> {
	try {
		await open(content);
	} catch (error) {
		return (error as Error).message;
	}
	return "opened";
}

test("what is damaged is refused with its place", async () => {
	const cpu = golden("go_cpu.pb.gz");
	const bytes = gunzipSync(cpu);
	assert.match(
		await refused(bytes.subarray(0, bytes.length - 3)),
		new RegExp(`^pprof: field \\d+ goes past the end \\(at byte ${lastField(bytes)}\\)$`),
	);
	assert.match(await refused(cpu.subarray(0, 300)), /^gzip: it is damaged, or was cut off \(at byte 300\)$/);
	assert.equal(await refused("main 1\nmain\n"), 'folded stacks: this is not "frame;frame VALUE" (line 2)');
	assert.equal(
		await refused("x 1 1.5: 7 cycles:\n\t7f main (/x)\n\nnonsense\n"),
		"perf script: this is neither the head of a sample nor a frame (line 4)",
	);
	assert.equal(await refused('{"profiles": [1, 2,, 3]}'), "JSON: it is damaged (at byte 19)");
	assert.equal(await refused('{"é": {"a"'), "JSON: it ends too early (at byte 11)");
	assert.equal(await refused('{"a": 1}'), "JSON: this is neither a speedscope nor a Firefox profile");
	assert.equal(
		await refused(
			'{"shared":{"frames":[]},' +
				'"profiles":[{"type":"sampled","unit":"none","samples":[[0]],"weights":[1]}]}',
		),
		"speedscope: frame 0 is not there (profile 0, sample 0)",
	);
	assert.match(await refused("PERFILE2xxxx"), /perf script > perf.txt/);
	assert.match(await refused(""), /it is empty/);
	assert.match(await refused("# nothing\n"), /there is no sample in it/);
});

/* Where the last field of a message of small fields begins. */
function lastField(bytes: Uint8Array): number {
	let last = 0;
	const varint = (at: number) => {
		let value = 0;
		for (let scale = 1; ; scale *= 128) {
			const byte = bytes[at++]!;
			value += (byte & 127) * scale;
			if (byte < 128) return [value, at] as const;
		}
	};
	for (let at = 0; at < bytes.length;) {
		last = at;
		const [tag, from] = varint(at);
		const [value, next] = varint(from);
		at = (tag & 7) === 2 ? next + value : next;
	}
	return last;
}

test("no prefix and no flipped byte of a profile makes the decoder hang or fail in its own terms", async () => {
	const bytes = gunzipSync(golden("go_mutex.pb.gz"));
	for (let at = 1; at < bytes.length; at += 7) {
		const flipped = bytes.slice();
		flipped[at]! ^= 0x55;
		for (const damaged of [bytes.subarray(0, at), flipped]) {
			const said = await refused(damaged);
			assert.match(said, /^opened$|^pprof: |^folded stacks: |^This file: /, `at ${at}: ${said}`);
		}
	}
});
