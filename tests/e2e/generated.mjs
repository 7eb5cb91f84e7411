// SPDX-License-Identifier: Apache-2.0
/*
 * generated - pprof files whose contents are known, the same for the same arguments.
 *
 *	node generated.mjs NODES FUNCTIONS > FILE    a tree of so many nodes, as programs have it: stacks share their
 *	                                             beginnings, few functions are called everywhere; and one function
 *	                                             that was seen once, rare::the_one_sample
 *
 * pprof({ stacks, ... }) writes stacks that the caller thought of; deepAnswer(LEVELS) what a server would answer that
 * keeps stacks of any depth (ours cuts them at 512).
 */
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

/* Protocol buffers, as far as profiles need them. */
export class Message {
	#bytes = Buffer.alloc(1 << 12);
	#length = 0;

	#room(more) {
		if (this.#length + more <= this.#bytes.length)
			return;
		const larger = Buffer.alloc(Math.max(2 * this.#bytes.length, this.#length + more));
		this.#bytes.copy(larger, 0, 0, this.#length);
		this.#bytes = larger;
	}

	varint(value) {
		this.#room(10);
		let rest = value;
		for (; rest >= 128; rest = Math.floor(rest / 128))
			this.#bytes[this.#length++] = (rest % 128) | 128;
		this.#bytes[this.#length++] = rest;
		return this;
	}

	number(field, value) {
		this.varint(field << 3);
		this.varint(value);
		return this;
	}

	bytes(field, value) {
		this.varint((field << 3) | 2);
		this.varint(value.length);
		return this.raw(value);
	}

	raw(bytes) {
		this.#room(bytes.length);
		bytes.copy(this.#bytes, this.#length);
		this.#length += bytes.length;
		return this;
	}

	message(field, inner) {
		return this.bytes(field, inner.done());
	}

	packed(field, values) {
		const inner = new Message();
		for (const value of values)
			inner.varint(value);
		return this.bytes(field, inner.done());
	}

	done() {
		return this.#bytes.subarray(0, this.#length);
	}
}

const PERIOD_NS = 10_000_000;

/*
 * A CPU profile: `functions` are { name, file, line, binary }, `stacks` are { path, samples } with functions' indexes
 * from the root to the leaf; recorded at `at_ms` for `seconds`. Of other `types`, [name, unit], stacks have `values`.
 */
export function pprof({ functions, stacks, at_ms, seconds, types }) {
	const strings = new Map([["", 0]]);
	const text = (value) => {
		if (!strings.has(value))
			strings.set(value, strings.size);
		return strings.get(value);
	};
	const profile = new Message();
	const type = (name, unit) => new Message().number(1, text(name)).number(2, text(unit));
	for (const [name, unit] of types ?? [["samples", "count"], ["cpu", "nanoseconds"]])
		profile.message(1, type(name, unit));
	for (const { path, samples, values = [samples, samples * PERIOD_NS] } of stacks) {
		const locations = path.map((fn) => fn + 1).reverse();
		profile.message(2, new Message().packed(1, locations).packed(2, values));
	}
	const binaries = [...new Set(functions.map(({ binary }) => binary))];
	binaries.forEach((binary, index) => profile.message(3, new Message().number(1, index + 1)
		.number(2, 4096 * (index + 1) * 4096).number(3, 4096 * (index + 2) * 4096).number(5,
			text(binary)).number(7, 1)));
	functions.forEach(({ name, file = "", line = 0, binary }, fn) => {
		profile.message(4, new Message().number(1, fn + 1).number(2, binaries.indexOf(binary) + 1)
			.number(3, 4096 * (binaries.indexOf(binary) + 1) * 4096 + 16 * fn)
			.message(4, new Message().number(1, fn + 1).number(2, line + 3)));
		profile.message(5, new Message().number(1, fn + 1).number(2, text(name)).number(3, text(name))
			.number(4, text(file)).number(5, line));
	});
	profile.number(9, at_ms * 1e6).number(10, seconds * 1e9);
	if (!types)
		profile.message(11, type("cpu", "nanoseconds")).number(12, PERIOD_NS);
	for (const value of strings.keys())
		profile.bytes(6, Buffer.from(value));
	return gzipSync(profile.done(), { level: 1 });
}

/* Numbers in [0, 1) that look random (mulberry32). */
export function randomNumbers(seed) {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
	};
}

const WORDS = ["parse", "json", "http", "request", "buffer", "write", "read", "index", "query", "cache", "decode",
	"encode",
	"value", "token", "stream", "handle", "merge", "sort", "hash", "lookup", "page", "frame", "block", "row"];
const DEPTH_MAX = 120;

function namedFunctions(count, random) {
	const word = () => WORDS[Math.floor(random() * WORDS.length)];
	return Array.from({ length: count }, (_, index) => {
		const binary = index % 7 ? `/usr/lib/lib${WORDS[index % 11]}.so` : "/usr/bin/server";
		return { name: `${word()}::${word()}_${word()}_${index}`, file: `src/part_${index % 97}.cc`, line: 1 +
			(index % 900), binary };
	});
}

/* Grows a tree by stacks that leave earlier ones at a random depth, until it has `nodes` nodes with the root. */
function grownStacks(nodes, functions, random) {
	const stacks = [];
	let path = [0];
	const callees = new Map();
	/* A function calls few others, so that stacks meet again. */
	const calleeOf = (fn) => {
		if (!callees.has(fn))
			callees.set(fn, Array.from({ length: 3 + Math.floor(random() * 6) },
				() => Math.floor(random() ** 2 * functions)));
		const list = callees.get(fn);
		return list[Math.floor(random() ** 2 * list.length)];
	};
	const seen = new Map();
	let count = 1;
	while (count < nodes) {
		path = path.slice(0, 1 + Math.floor(random() ** 0.4 * Math.max(1, path.length - 1)));
		const depth = 20 + Math.floor((DEPTH_MAX - 20) * random());
		while (path.length < depth && random() > 0.02)
			path.push(calleeOf(path.at(-1)));
		let at = seen;
		for (let depth = 0; depth < path.length; depth++) {
			if (!at.has(path[depth])) {
				if (count === nodes) {
					path = path.slice(0, depth);
					break;
				}
				at.set(path[depth], new Map());
				count++;
			}
			at = at.get(path[depth]);
		}
		stacks.push({ path: path.slice(), samples: 1 + Math.floor(1 / (0.002 + random())) });
	}
	return stacks;
}

const RARE = { name: "rare::the_one_sample", file: "src/rare.cc", line: 1, binary: "/usr/bin/server" };

export function grownProfile(nodes, count) {
	const random = randomNumbers(1);
	const functions = namedFunctions(count, random);
	const stacks = grownStacks(nodes - 1, count, random);
	const longest = stacks.reduce((a, b) => (a.path.length > b.path.length ? a : b)).path;
	return { functions: [...functions, RARE], stacks: [...stacks, { path: [...longest, count], samples: 1 }] };
}

/* In docs/formats/flamegraph.md's form: one stack of so many functions. */
export const deepAnswer = (levels) => treeAnswer(Array.from({ length: levels }, (_, level) =>
	({ name: `level_${level}`, depth: level + 1, self: level + 1 === levels ? 1e9 : 0 })));

/* What a server would answer: `nodes` from the root's first child on, in the order of a walk. */
export function treeAnswer(nodes) {
	const levels = nodes.length;
	const header = {
		type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", unit: "nanoseconds", period: PERIOD_NS,
		period_unit: "nanoseconds", delta: true, from_ms: 0, to_ms: 60_000, duration_ms: 60_000, total: 1e9,
			filtered: 0,
		nodes: levels + 1, nodes_total: levels + 1,
		depth: nodes.reduce((most, { depth }) => Math.max(most, depth), 0), functions: levels + 1,
		trimmed: 0, reports: 1,
		partial: false, pending: 0, unresolved: { value: 0, reasons_total: 0, reasons: [] },
	};
	const names = ["", "total", ...nodes.map(({ name }) => name)].map((name) =>
		Buffer.from(name));
	const ends = Buffer.alloc(4 + 4 * names.length);
	ends.writeUInt32LE(names.length);
	names.reduce((end, name, index) => ends.writeUInt32LE(end + name.length, 4 + 4 * index) && end + name.length,
		0);
	const numbers = (list) => list.reduce((out, value) => out.varint(value), new Message()).done();
	const each = (entry) => numbers(Array.from({ length: levels + 1 }, (_, index) => entry(index)).flat());
	const sections = [
		Buffer.from(JSON.stringify(header)), Buffer.concat([ends, ...names]),
		each((index) => [index + 1, 0, 0, 0, nodes[index - 1]?.kind ?? 1, 0]),
			each((index) => [nodes[index - 1]?.depth ?? 0, index, 2 * (nodes[index - 1]?.self ?? 0), 0]),
	];
	const head = Buffer.alloc(16 + 12 * sections.length);
	head.write("FRNF");
	[1, sections.length].forEach((value, index) => head.writeUInt32LE(value, 4 + 4 * index));
	const parts = [head];
	let offset = head.length;
	sections.forEach((bytes, index) => {
		[index + 1, offset, bytes.length].forEach((value, at) =>
			head.writeUInt32LE(value, 12 + 12 * index + 4 * at));
		parts.push(bytes, Buffer.alloc(-bytes.length & 7));
		offset += bytes.length + (-bytes.length & 7);
	});
	return Buffer.concat(parts);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
	const [nodes, functions] = process.argv.slice(2).map(Number);
	process.stdout.write(pprof({ ...grownProfile(nodes, functions), at_ms: Date.now() - 60_000, seconds: 10 }));
}
