// SPDX-License-Identifier: Apache-2.0
/* encode - writes the binary flame graph of docs/formats/flamegraph.md, for the tests. */
import { decodeProfile } from "../../../src/ui/src/model/decode";
import type { Profile } from "../../../src/ui/src/model/profile";

export interface Box {
	name: string;
	self?: number;
	flags?: number;
	mapping?: string;
	file?: string; /* a.c */
	systemName?: string;
	unresolved?: string;
	kind?: number;
	children?: Box[];
}

function leb(out: number[], value: number): void {
	for (; value >= 128; value = Math.floor(value / 128))
		out.push((value % 128) | 128);
	out.push(value);
}

const zigzag = (value: number) => (value < 0 ? -2 * value - 1 : 2 * value);

class Strings {
	readonly all = [""];

	id(text: string): number {
		const found = this.all.indexOf(text);
		return found >= 0 ? found : this.all.push(text) - 1;
	}

	bytes(): Uint8Array {
		const parts = this.all.map((text) => new TextEncoder().encode(text));
		const length = parts.reduce((sum, part) => sum + part.length, 0);
		const out = new Uint8Array(4 + 4 * parts.length + length);
		const view = new DataView(out.buffer);
		view.setUint32(0, parts.length, true);
		let end = 0;
		parts.forEach((part, index) => {
			out.set(part, 4 + 4 * parts.length + end);
			end += part.length;
			view.setUint32(4 + 4 * index, end, true);
		});
		return out;
	}
}

export function sectioned(sections: [number, Uint8Array][]): ArrayBuffer {
	let offset = (12 + 12 * sections.length + 7) & ~7;
	const places = sections.map(([, bytes]) => {
		const at = offset;
		offset = (offset + bytes.length + 7) & ~7;
		return at;
	});
	const out = new Uint8Array(offset);
	const view = new DataView(out.buffer);
	out.set([..."FRNF"].map((char) => char.charCodeAt(0)));
	view.setUint32(4, 1, true);
	view.setUint32(8, sections.length, true);
	sections.forEach(([type, bytes], index) => {
		view.setUint32(12 + 12 * index, type, true);
		view.setUint32(16 + 12 * index, places[index]!, true);
		view.setUint32(20 + 12 * index, bytes.length, true);
		out.set(bytes, places[index]!);
	});
	return out.buffer;
}

export function encode(root: Box, header: Record<string, unknown> = {}): ArrayBuffer {
	const strings = new Strings();
	const keys = ["total\0\0"];
	const functions: number[] = [];
	for (const value of [strings.id("total"), 0, 0, 0, 0, 0])
		leb(functions, value);
	const details = [0, 0];
	const nodes: number[] = [];
	let count = 0;
	const write = (box: Box, depth: number) => {
		const key = depth ? `${box.name}\0${box.mapping ?? ""}\0${box.kind ?? 1}` : keys[0]!;
		let fn = box.flags === 4 ? 0 : keys.indexOf(key);
		if (fn < 0) {
			fn = keys.push(key) - 1;
			const texts = [box.name, box.file ?? "a.c", box.mapping ?? ""].map((text) => strings.id(text));
			for (const value of [...texts, 0, box.kind ?? 1, 7])
				leb(functions, value);
			for (const text of [box.systemName, box.unresolved])
				leb(details, strings.id(text ?? ""));
		}
		count++;
		leb(nodes, depth);
		leb(nodes, fn);
		leb(nodes, zigzag(box.self ?? 0));
		nodes.push(box.flags ?? 0);
	};
	const ahead: [Box, number][] = [[root, 0]];
	for (let next = ahead.pop(); next; next = ahead.pop()) {
		const [box, depth] = next;
		write(box, depth);
		for (const child of (box.children ?? []).slice().reverse())
			ahead.push([child, depth + 1]);
	}
	const json = JSON.stringify({
		type: "on_cpu:samples:count:cpu:nanoseconds:delta", unit: "count",
		period: 1e7, period_unit: "nanoseconds", delta: true,
		nodes: count, nodes_total: count, functions: keys.length, trimmed: 0, ...header,
	});
	const sections: [number, Uint8Array][] = [
		[1, new TextEncoder().encode(json)],
		[2, strings.bytes()],
		[3, Uint8Array.from(functions)],
		[4, Uint8Array.from(nodes)],
	];
	if (details.some((id) => id))
		sections.push([5, Uint8Array.from(details)]);
	return sectioned(sections);
}

export const profileOf = (root: Box, header: Record<string, unknown> = {}): Profile =>
	decodeProfile(encode(root, header));

/* Folded lines ("a;b;c 3") as a profile; children in order of appearance. */
export function folded(...lines: string[]): Profile {
	const root: Box = { name: "total", children: [] };
	for (const line of lines) {
		const [, stack, value] = /^(.*) (\d+)$/.exec(line)!;
		let at = root;
		for (const name of stack!.split(";")) {
			at.children ??= [];
			let child = at.children.find((box) => box.name === name);
			if (!child)
				at.children.push((child = { name }));
			at = child;
		}
		at.self = (at.self ?? 0) + Number(value);
	}
	return profileOf(root);
}
