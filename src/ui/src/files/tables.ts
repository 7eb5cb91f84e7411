// SPDX-License-Identifier: Apache-2.0
/*
 * tables - a profile file in columns: functions, a trie of stacks, and rows of values by stack and
 * labels. The decoders fill it; `tree` answers queries from it. As in the server, stacks stand
 * root first in the trie, and equal rows are one.
 */
import { type Functions, KERNEL, KINDS } from "../model/profile";

/* What a file is wrong about, and where. */
export class FileError extends Error {
	constructor(format: string, what: string, where: string) {
		super(`${format}: ${what}${where && ` (${where})`}`);
	}
}

export interface ValueType {
	type: string;
	unit: string;
}

export interface FrameText {
	name: string;
	file?: string;
	mapping?: string;
	buildId?: string;
	systemName?: string;
	startLine?: number;
	kind?: number;
}

export type Label = [name: string, value: string];

const FIRST = 1 << 10;
/* What decoders refuse to grow beyond: a file is hostile. */
export const DEPTH_MAX = 8192;
const ROWS_MAX = 1 << 26;

function wider<T extends Uint32Array | Float64Array>(old: T): T {
	const fresh = new (old.constructor as new (length: number) => T)(old.length * 2);
	fresh.set(old);
	return fresh;
}

/* Pairs of numbers and their ids, from 1 on. */
class Pairs {
	count = 1;
	a = new Uint32Array(FIRST);
	b = new Uint32Array(FIRST);
	private slots = new Uint32Array(FIRST * 2);

	private slotOf(a: number, b: number): number {
		const mask = this.slots.length - 1;
		let at = (Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b)) >>> 0;
		at = (at ^ (at >>> 15)) & mask;
		for (; ; at = (at + 1) & mask) {
			const id = this.slots[at]!;
			if (!id || (this.a[id] === a && this.b[id] === b)) return at;
		}
	}

	id(a: number, b: number): number {
		let slot = this.slotOf(a, b);
		if (this.slots[slot]) return this.slots[slot]!;
		if (this.count === this.a.length) {
			if (this.count >= ROWS_MAX)
				throw new FileError("This file", "it has more stacks than fit into memory", "");
			this.a = wider(this.a);
			this.b = wider(this.b);
			this.slots = new Uint32Array(this.a.length * 2);
			for (let id = 1; id < this.count; id++) this.slots[this.slotOf(this.a[id]!, this.b[id]!)] = id;
			slot = this.slotOf(a, b);
		}
		const id = this.count++;
		this.a[id] = a;
		this.b[id] = b;
		return (this.slots[slot] = id);
	}
}

const KIND_OF_ENDING: Record<string, (typeof KINDS)[number]> = {
	go: "go",
	rs: "rust",
	java: "jvm",
	kt: "jvm",
	scala: "jvm",
	py: "python",
	rb: "ruby",
	js: "node",
	mjs: "node",
	ts: "node",
	php: "php",
	pl: "perl",
	cs: "dotnet",
	ex: "beam",
	erl: "beam",
	lua: "lua",
};

/* What kind of code a frame is, as far as its texts say. */
function kindOf({ file = "", mapping = "" }: FrameText): number {
	if (mapping.startsWith("[kernel") || mapping.endsWith(".ko") || /^\[[a-z][\w-]*\]$/.test(mapping))
		return KERNEL;
	const ending = /\.([a-z]+)$/.exec(file)?.[1] ?? "";
	const kind = KIND_OF_ENDING[ending];
	return KINDS.indexOf(kind ?? (mapping || file ? "native" : "unknown"));
}

export class Tables {
	types: ValueType[] = [];
	/* What is shown first. */
	chosen = 0;
	period = 0;
	periodUnit = "";
	/* 0 when the file does not say. */
	timeMs = 0;
	durationMs = 0;
	/* Samples that stand for nothing visible here: what the file itself says was lost. */
	lost = 0;

	readonly strings: string[] = [""];
	private stringIds = new Map<string, number>([["", 0]]);
	private functionIds = new Map<string, number>();
	readonly functions: FrameText[] = [{ name: "total", kind: 0 }];
	/* a: the stack above, b: the function. 0 is the empty stack. */
	readonly stacks = new Pairs();
	/* a: the stack, b: the labels. */
	readonly rows = new Pairs();
	/* Per row and type. */
	private sums = new Float64Array(FIRST);
	private labelIds = new Map<string, number>([["", 0]]);
	readonly labelSets: Label[][] = [[]];

	function(frame: FrameText): number {
		const key = `${frame.name}\0${frame.file ?? ""}\0${frame.mapping ?? ""}\0${frame.startLine ?? 0}`;
		let id = this.functionIds.get(key);
		if (id === undefined) {
			id = this.functions.push({ ...frame, kind: frame.kind ?? kindOf(frame) }) - 1;
			this.functionIds.set(key, id);
		}
		return id;
	}

	/* The stack of a function called from a stack. */
	stack(above: number, fn: number): number {
		return this.stacks.id(above, fn);
	}

	labels(list: Label[]): number {
		const key = list.map(([name, value]) => `${name}\0${value}`).join("\0\0");
		let id = this.labelIds.get(key);
		if (id === undefined) this.labelIds.set(key, (id = this.labelSets.push(list) - 1));
		return id;
	}

	/* One value per type. */
	add(stack: number, labels: number, values: ArrayLike<number>): void {
		const count = this.types.length;
		const row = this.rows.id(stack, labels);
		while ((row + 1) * count > this.sums.length) this.sums = wider(this.sums);
		for (let at = 0; at < count; at++) this.sums[row * count + at]! += values[at] ?? 0;
	}

	value(row: number, type: number): number {
		return this.sums[row * this.types.length + type]!;
	}

	/* Names of all labels, in order. */
	labelNames(): string[] {
		return [...new Set(this.labelSets.flatMap((set) => set.map(([name]) => name)))].sort();
	}

	private string(text: string): number {
		let id = this.stringIds.get(text);
		if (id === undefined) this.stringIds.set(text, (id = this.strings.push(text) - 1));
		return id;
	}

	/* The functions as columns, and behind them one for each of `groups`. */
	columns(groups: readonly string[]): Functions {
		const list: FrameText[] = [...this.functions, ...groups.map((name) => ({ name, kind: 0 }))];
		const column = (text: (frame: FrameText) => string | undefined) =>
			Uint32Array.from(list, (frame) => this.string(text(frame) ?? ""));
		return {
			count: list.length,
			name: column((frame) => frame.name),
			file: column((frame) => frame.file),
			mapping: column((frame) => frame.mapping),
			buildId: column((frame) => frame.buildId),
			systemName: column((frame) => frame.systemName),
			unresolved: new Uint32Array(list.length),
			kind: Uint8Array.from(list, (frame) => frame.kind ?? 0),
			startLine: Uint32Array.from(list, (frame) => frame.startLine ?? 0),
			strings: this.strings.slice(),
		};
	}
}
