// SPDX-License-Identifier: Apache-2.0
/*
 * profile - a merged call tree in typed arrays, in the order in which the views need it.
 *
 * Nodes are row-major: all of depth 0, then all of depth 1, each row from left to right. Therefore
 * the children of a node are neighbours in the next row, a parent always comes before its children,
 * and binary search finds the visible part of a row. Positions and sizes are in the profile's unit
 * (samples, nanoseconds, bytes): a box covers [start, start + total).
 */

/* Why functions of one binary have no names: `value` is of the stacks with any, `leaf` of those that end in one. */
export interface UnresolvedReason {
	code: string;
	text: string;
	mapping: string;
	build_id: string;
	value: number;
	leaf?: number;
}

export interface ProfileHeader {
	type: string;
	unit: string;
	period: number;
	period_unit: string;
	delta: boolean;
	from_ms: number;
	to_ms: number;
	duration_ms: number;
	total: number;
	nodes: number;
	nodes_total: number;
	depth: number;
	functions: number;
	trimmed: number;
	/* Value of what filters hide. */
	filtered: number;
	reports: number;
	partial: boolean;
	/* Parts of the store that could not be read; 0 with `partial`: the server did not say. */
	parts_unreadable: number;
	/* Frames whose symbols the server is still reading. */
	pending: number;
	/* The largest reasons; `reasons_total` counts all, and `value` and `leaf` are of all together. */
	unresolved: { value: number; leaf?: number; reasons_total: number; reasons: UnresolvedReason[] };
}

/* Flags of a node. */
export const INLINED = 1;
export const GROUP = 2;
export const TRIMMED = 4;

/* Parallel arrays, one entry per function; texts are indexes into `strings`. */
export interface Functions {
	count: number;
	strings: string[];
	name: Uint32Array;
	file: Uint32Array;
	mapping: Uint32Array;
	buildId: Uint32Array;
	kind: Uint8Array;
	startLine: Uint32Array;
	/* As the binary has it, "" when it is the name; and why there is no name, "" when there is. */
	systemName: Uint32Array;
	unresolved: Uint32Array;
}

/* Values of one side of a comparison, per node and per function of the merged tree. */
export interface Side {
	self: Float64Array;
	total: Float64Array;
	functionSelf: Float64Array;
	functionTotal: Float64Array;
	/* Seconds that its data covers; 0 when values are not per time. */
	seconds: number;
	reports: number;
	/* Below this value a node may have been left out of what was sent. */
	trimmed: number;
}

export type Sides = [Side, Side];

export interface Profile {
	header: ProfileHeader;
	functions: Functions;
	count: number;
	/* rowStart[d] is the first node of depth d; rowStart[rows] is count. */
	rows: number;
	rowStart: Uint32Array;
	parent: Uint32Array;
	func: Uint32Array;
	flags: Uint8Array;
	start: Float64Array;
	total: Float64Array;
	self: Float64Array;
	/* Per function; a function that calls itself counts once per stack in its total. */
	functionSelf: Float64Array;
	functionTotal: Float64Array;
	/* How many frames of interpreters were folded into the functions that they work for. */
	folded?: number;
	/* Of a comparison: the values of A and B; `total` above is then the width of both together. */
	sides?: Sides;
}

export const KINDS = [
	"unknown", "native", "kernel", "go", "rust", "jvm", "python", "ruby", "node", "php", "perl",
	"dotnet", "beam", "lua", "marker", "cpython-runtime", "v8-runtime", "ruby-runtime",
	"dotnet-runtime", "php-runtime", "beam-runtime", "perl-runtime", "lua-runtime",
	"wasm",
] as const;

export const KERNEL = 2;

export function functionName(profile: Profile, fn: number): string {
	return profile.functions.strings[profile.functions.name[fn]!] || "(no name)";
}

/* What a box is called: the root, a trimmed rest and functions all have a name to show. */
export function nodeName(profile: Profile, node: number): string {
	if (node === 0)
		return "total";
	if (profile.flags[node]! & TRIMMED)
		return "(too narrow to draw)";
	return functionName(profile, profile.func[node]!);
}

export function functionFile(profile: Profile, fn: number): string {
	const { strings, file, startLine } = profile.functions;
	const path = strings[file[fn]!]!;
	return path && startLine[fn] ? `${path}:${startLine[fn]}` : path;
}

/* Whether a function of this name is called by itself, at whatever distance. */
export function isRecursive(profile: Profile, name: string): boolean {
	const { func, parent } = profile;
	const named = new Uint8Array(profile.functions.count);
	for (let fn = 1; fn < named.length; fn++)
		named[fn] = functionName(profile, fn) === name ? 1 : 0;
	for (let node = 1; node < profile.count; node++) {
		const fn = func[node]!;
		if (!named[fn])
			continue;
		for (let up = parent[node]!; up > 0; up = parent[up]!)
			if (func[up] === fn)
				return true;
	}
	return false;
}

export function functionMapping(profile: Profile, fn: number): string {
	return profile.functions.strings[profile.functions.mapping[fn]!]!;
}

export function functionBuildId(profile: Profile, fn: number): string {
	return profile.functions.strings[profile.functions.buildId[fn]!]!;
}

export function functionSystemName(profile: Profile, fn: number): string {
	return profile.functions.strings[profile.functions.systemName[fn]!]!;
}

/* Why the function is called by its address, with the remedy; "" when it has a name. */
export function functionUnresolved(profile: Profile, fn: number): string {
	return profile.functions.strings[profile.functions.unresolved[fn]!]!;
}

export function kindName(profile: Profile, fn: number): string {
	return KINDS[profile.functions.kind[fn]!] ?? "unknown";
}

/* The row of a node: the last one that starts at or before it. */
export function depthOf(profile: Profile, node: number): number {
	let low = 0;
	let high = profile.rows - 1;
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if (profile.rowStart[middle]! <= node)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Nodes from the root to `node`, both included. */
export function pathOf(profile: Profile, node: number): number[] {
	const path = [node];
	for (let at = node; at !== 0; ) {
		at = profile.parent[at]!;
		path.push(at);
	}
	return path.reverse();
}

/* First node in [low, high) that ends after `value`; high when there is none. */
export function firstEndingAfter(profile: Profile, low: number, high: number, value: number): number {
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (profile.start[middle]! + profile.total[middle]! > value)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The node of row `depth` that covers `value`, or -1. */
export function nodeAt(profile: Profile, depth: number, value: number): number {
	if (depth < 0 || depth >= profile.rows)
		return -1;
	const end = profile.rowStart[depth + 1]!;
	const node = firstEndingAfter(profile, profile.rowStart[depth]!, end, value);
	return node < end && profile.start[node]! <= value ? node : -1;
}

/* The children of a node as [first, end); depth is the node's own. */
export function childrenOf(profile: Profile, node: number, depth: number): [number, number] {
	if (depth + 1 >= profile.rows)
		return [0, 0];
	const rowEnd = profile.rowStart[depth + 2]!;
	const { parent } = profile;
	let low = profile.rowStart[depth + 1]!;
	let high = rowEnd;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (parent[middle]! < node)
			low = middle + 1;
		else
			high = middle;
	}
	let end = low;
	while (end < rowEnd && parent[end] === node)
		end++;
	return [low, end];
}
