// SPDX-License-Identifier: Apache-2.0
/*
 * top - self and total per function, and the table of them. A function that calls itself counts
 * once per stack, as in `go tool pprof -top`.
 */
import { GROUP, TRIMMED, type Profile, functionName } from "./profile";

export interface TopTable {
	/* Function ids with any value, in the order asked for. */
	rows: Uint32Array;
	self: Float64Array;
	total: Float64Array;
}

export type TopColumn = "self" | "total" | "name";

/*
 * One walk in call order. `open` counts how often a function is on the path from the root, so a
 * box adds to its function's total only when the function is not on the path already.
 */
export function sumFunctions(profile: Profile): void {
	const { func, flags, self: nodeSelf, total: nodeTotal, functionSelf: self, functionTotal: total } = profile;
	const open = new Uint32Array(profile.functions.count);
	const path = new Int32Array(profile.rows).fill(-1);
	const cursor = profile.rowStart.slice(0, profile.rows);
	let depth = 0;
	while (depth >= 0) {
		const node = cursor[depth]!;
		const up = depth ? path[depth - 1]! : -1;
		const more = node < profile.rowStart[depth + 1]! && (depth === 0 || profile.parent[node] === up);
		if (!more) {
			depth--;
			if (depth >= 0)
				open[func[path[depth]!]!]!--;
			continue;
		}
		const fn = func[node]!;
		cursor[depth]!++;
		path[depth] = node;
		self[fn]! += nodeSelf[node]!;
		if (!open[fn] && !(flags[node]! & (TRIMMED | GROUP)))
			total[fn]! += nodeTotal[node]!;
		open[fn]!++;
		if (depth + 1 < profile.rows)
			depth++;
		else
			open[fn]!--;
	}
}

export function topTable(profile: Profile): TopTable {
	const rows = [];
	for (let fn = 1; fn < profile.functions.count; fn++)
		if (profile.functionTotal[fn]! > 0)
			rows.push(fn);
	return { rows: Uint32Array.from(rows), self: profile.functionSelf, total: profile.functionTotal };
}

export interface Part {
	name: string;
	value: number;
}

const LARGEST = 3;

/* What most of it is: the values that it is grouped by, else functions by what they do themselves. */
export function largestOf(profile: Profile): Part[] {
	const { flags, func, total, rowStart, rows, functionSelf } = profile;
	const parts: Part[] = [];
	if (rows > 1 && flags[rowStart[1]!]! & GROUP) {
		for (let node = rowStart[1]!; node < rowStart[2]!; node++)
			if (flags[node]! & GROUP)
				parts.push({ name: functionName(profile, func[node]!), value: total[node]! });
	} else {
		for (let fn = 1; fn < functionSelf.length; fn++)
			if (functionSelf[fn]! > 0)
				parts.push({ name: functionName(profile, fn), value: functionSelf[fn]! });
	}
	return parts.sort((a, b) => b.value - a.value).slice(0, LARGEST);
}

/* Sorted copy; ties go by name so that the order never jumps between refreshes. */
export function sortTop(profile: Profile, table: TopTable, column: TopColumn, down: boolean): TopTable {
	const name = (fn: number) => functionName(profile, fn);
	const byName = (a: number, b: number) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : a - b);
	const sign = down ? -1 : 1;
	const values = column === "name" ? null : table[column];
	const compare = values
		? (a: number, b: number) => sign * (values[a]! - values[b]!) || byName(a, b)
		: (a: number, b: number) => sign * byName(a, b);
	return { ...table, rows: table.rows.slice().sort(compare) };
}

export function filterTop(table: TopTable, functions: Uint8Array): TopTable {
	return { ...table, rows: table.rows.filter((fn) => functions[fn] === 1) };
}
