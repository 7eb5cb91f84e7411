// SPDX-License-Identifier: Apache-2.0
/*
 * decode - bytes of format=binary (docs/formats/flamegraph.md) -> Profile.
 *
 * The bytes come from a server that may have another version, or from a file: everything is
 * checked, and an error names its byte offset.
 */
import type { Functions, Profile, ProfileHeader } from "./profile";
import { sumFunctions } from "./top";
import { type Tree, placeBoxes } from "./tree_builder";

const MAGIC = "FRNF";
const VERSION = 1;
const SECTIONS_MAX = 64;
const DEPTH_MAX = 1 << 16;
const NODE_BYTES_MIN = 4;

enum Section {
	Header = 1,
	Strings = 2,
	Functions = 3,
	Nodes = 4,
	Details = 5,
}

export class FormatError extends Error {
	constructor(what: string, offset: number) {
		super(`not a flame graph that this version reads: ${what} (at byte ${offset})`);
	}
}

class Reader {
	constructor(readonly bytes: Uint8Array, public at: number, readonly end: number) {}

	leb(): number {
		let value = 0;
		for (let scale = 1; ; scale *= 128) {
			if (this.at >= this.end)
				throw new FormatError("a number is cut short", this.at);
			const byte = this.bytes[this.at++]!;
			value += (byte & 127) * scale;
			if (byte < 128)
				return value;
			if (scale > 2 ** 56)
				throw new FormatError("a number is too long", this.at);
		}
	}

	zigzag(): number {
		const value = this.leb();
		return value % 2 ? -(value + 1) / 2 : value / 2;
	}

	byte(): number {
		if (this.at >= this.end)
			throw new FormatError("a node is cut short", this.at);
		return this.bytes[this.at++]!;
	}
}

function readSections(bytes: Uint8Array, view: DataView): Map<number, Reader> {
	if (bytes.length < 12 || String.fromCharCode(...bytes.subarray(0, 4)) !== MAGIC)
		throw new FormatError("the magic is missing", 0);
	if (view.getUint32(4, true) !== VERSION)
		throw new FormatError(`version ${view.getUint32(4, true)}`, 4);
	const count = view.getUint32(8, true);
	if (count > SECTIONS_MAX || 12 + 12 * count > bytes.length)
		throw new FormatError(`${count} sections`, 8);
	const sections = new Map<number, Reader>();
	for (let i = 0; i < count; i++) {
		const row = 12 + 12 * i;
		const offset = view.getUint32(row + 4, true);
		const length = view.getUint32(row + 8, true);
		if (offset + length > bytes.length)
			throw new FormatError("a section goes past the end", row);
		sections.set(view.getUint32(row, true), new Reader(bytes, offset, offset + length));
	}
	return sections;
}

function section(sections: Map<number, Reader>, type: Section): Reader {
	const found = sections.get(type);
	if (!found)
		throw new FormatError(`section ${type} is missing`, 12);
	return found;
}

const HEADER_DEFAULTS: ProfileHeader = {
	type: "", unit: "", period: 0, period_unit: "", delta: true, from_ms: 0, to_ms: 0,
	duration_ms: 0, total: 0, nodes: 0, nodes_total: 0, depth: 0, functions: 0, trimmed: 0, filtered: 0,
	reports: 0, partial: false, parts_unreadable: 0, pending: 0,
	unresolved: { value: 0, reasons_total: 0, reasons: [] },
};

function readHeader({ bytes, at, end }: Reader): ProfileHeader {
	try {
		const text = new TextDecoder().decode(bytes.subarray(at, end));
		return { ...HEADER_DEFAULTS, ...(JSON.parse(text) as Partial<ProfileHeader>) };
	} catch {
		throw new FormatError("the header is not JSON", at);
	}
}

function readStrings(view: DataView, { bytes, at, end }: Reader): string[] {
	const count = end - at >= 4 ? view.getUint32(at, true) : 0;
	const textAt = at + 4 + 4 * count;
	if (!count || textAt > end)
		throw new FormatError("the string table is cut short", at);
	const decoder = new TextDecoder();
	const strings = new Array<string>(count);
	let from = 0;
	for (let i = 0; i < count; i++) {
		const to = view.getUint32(at + 4 + 4 * i, true);
		if (to < from || textAt + to > end)
			throw new FormatError(`string ${i} is out of range`, at + 4 + 4 * i);
		strings[i] = from === to ? "" : decoder.decode(bytes.subarray(textAt + from, textAt + to));
		from = to;
	}
	return strings;
}

function readFunctions(reader: Reader, strings: string[], limit: number): Functions {
	const count = Math.min(limit, Math.floor((reader.end - reader.at) / 6));
	const table: Functions = {
		count,
		strings,
		name: new Uint32Array(count),
		file: new Uint32Array(count),
		mapping: new Uint32Array(count),
		buildId: new Uint32Array(count),
		kind: new Uint8Array(count),
		startLine: new Uint32Array(count),
		systemName: new Uint32Array(count),
		unresolved: new Uint32Array(count),
	};
	for (let i = 0; i < count; i++) {
		for (const column of [table.name, table.file, table.mapping, table.buildId]) {
			const id = reader.leb();
			if (id >= strings.length)
				throw new FormatError(`function ${i} names string ${id}`, reader.at);
			column[i] = id;
		}
		table.kind[i] = reader.leb();
		table.startLine[i] = reader.leb();
	}
	return table;
}

/* What older servers do not send: names as the binaries have them, and why there are none. */
function readDetails(reader: Reader, table: Functions): void {
	for (let i = 0; i < table.count; i++)
		for (const column of [table.systemName, table.unresolved]) {
			const id = reader.leb();
			if (id >= table.strings.length)
				throw new FormatError(`details of function ${i} name string ${id}`, reader.at);
			column[i] = id;
		}
}

/* The nodes as they come: pre-order. */
interface Preorder {
	count: number;
	rows: number;
	depth: Uint32Array;
	func: Uint32Array;
	self: Float64Array;
	flags: Uint8Array;
}

function readNodes(reader: Reader, functions: number, limit: number): Preorder {
	const most = Math.min(limit, Math.floor((reader.end - reader.at) / NODE_BYTES_MIN));
	const depth = new Uint32Array(most);
	const func = new Uint32Array(most);
	const self = new Float64Array(most);
	const flags = new Uint8Array(most);
	let rows = 0;
	let last = -1;
	let count = 0;
	for (; count < most && reader.at < reader.end; count++) {
		const level = reader.leb();
		if (level > last + 1 || level > DEPTH_MAX || (level === 0) !== (count === 0))
			throw new FormatError(`node ${count} has depth ${level} after ${last}`, reader.at);
		depth[count] = last = level;
		if (level >= rows)
			rows = level + 1;
		const fn = (func[count] = reader.leb());
		if (fn >= functions)
			throw new FormatError(`node ${count} names function ${fn}`, reader.at);
		self[count] = Math.max(0, reader.zigzag());
		flags[count] = reader.byte();
	}
	if (!count)
		throw new FormatError("there is no root", reader.at);
	return { count, rows, depth, func, self, flags };
}

function rowStarts(nodes: Preorder): Uint32Array {
	const starts = new Uint32Array(nodes.rows + 1);
	for (let i = 0; i < nodes.count; i++)
		starts[nodes.depth[i]! + 1]!++;
	for (let d = 0; d < nodes.rows; d++)
		starts[d + 1]! += starts[d]!;
	return starts;
}

/* Sums up totals from the last row to the first, then places boxes from the first to the last. */
function place(profile: Profile): void {
	const { count, parent, total, self } = profile;
	for (let i = count - 1; i > 0; i--) {
		total[i]! += self[i]!;
		total[parent[i]!]! += total[i]!;
	}
	total[0]! += self[0]!;
	placeBoxes(profile);
}

function layOut(header: ProfileHeader, functions: Functions, nodes: Preorder): Profile {
	const { count, rows } = nodes;
	const rowStart = rowStarts(nodes);
	const profile: Profile = {
		header, functions, count, rows, rowStart,
		parent: new Uint32Array(count),
		func: new Uint32Array(count),
		flags: new Uint8Array(count),
		start: new Float64Array(count),
		total: new Float64Array(count),
		self: new Float64Array(count),
		functionSelf: new Float64Array(functions.count),
		functionTotal: new Float64Array(functions.count),
	};
	const next = rowStart.slice();
	const path = new Uint32Array(rows);
	for (let i = 0; i < count; i++) {
		const depth = nodes.depth[i]!;
		const at = next[depth]!++;
		path[depth] = at;
		profile.parent[at] = depth ? path[depth - 1]! : 0;
		profile.func[at] = nodes.func[i]!;
		profile.flags[at] = nodes.flags[i]!;
		profile.self[at] = nodes.self[i]!;
	}
	place(profile);
	sumFunctions(profile);
	return profile;
}

export function decodeProfile(buffer: ArrayBuffer): Profile {
	const bytes = new Uint8Array(buffer);
	const view = new DataView(buffer);
	const sections = readSections(bytes, view);
	const header = readHeader(section(sections, Section.Header));
	const strings = readStrings(view, section(sections, Section.Strings));
	const functions = readFunctions(section(sections, Section.Functions), strings, header.functions);
	const details = sections.get(Section.Details);
	if (details)
		readDetails(details, functions);
	const nodes = readNodes(section(sections, Section.Nodes), functions.count, header.nodes);
	return layOut(header, functions, nodes);
}

/* The buffers to hand over between threads rather than copy. */
export function transferables(profile: Profile): ArrayBuffer[] {
	const { functions: f, functionSelf, functionTotal } = profile;
	const arrays = [
		f.name, f.file, f.mapping, f.buildId, f.kind, f.startLine, f.systemName, f.unresolved,
		functionSelf, functionTotal,
	];
	for (const side of profile.sides ?? [])
		arrays.push(side.self, side.total, side.functionSelf, side.functionTotal);
	return [...treeBuffers(profile), ...arrays.map((array) => array.buffer as ArrayBuffer)];
}

export function treeBuffers({ rowStart, parent, func, flags, start, total, self }: Tree): ArrayBuffer[] {
	return [rowStart, parent, func, flags, start, total, self].map((array) => array.buffer as ArrayBuffer);
}
