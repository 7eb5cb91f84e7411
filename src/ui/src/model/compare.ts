// SPDX-License-Identifier: Apache-2.0
/*
 * compare - two profiles in one tree, A (the baseline) and B (the new one), and what changed.
 *
 * Two frames are the same if their names are equal: builds of one program differ in everything else.
 * A box is as wide as both sides together, so that new and vanished frames are both visible. Sides
 * of different duration are compared per second.
 */
import { GROUP, TRIMMED, type Functions, type Profile, type Side, type Sides, functionName } from "./profile";
import { sumFunctions } from "./top";
import { TreeBuilder } from "./tree_builder";

/* How values are compared: per second, as a share of their side, or as they are. */
export type Mode = "rate" | "share" | "raw";

export function secondsOf({ header }: Profile): number {
	if (!header.delta)
		return 0;
	const range = header.to_ms - header.from_ms;
	return (header.duration_ms > 0 ? Math.min(header.duration_ms, range) : range) / 1000;
}

const COLUMNS = ["name", "file", "mapping", "buildId", "systemName", "unresolved"] as const;

/* Functions by name, and for each profile which of them its own are. */
function mergeFunctions(sources: readonly Profile[]): { functions: Functions; maps: Uint32Array[] } {
	const most = sources.reduce((sum, source) => sum + source.functions.count, 0);
	const strings: string[] = [""];
	const ids = new Map<string, number>([["", 0]]);
	const id = (text: string) => {
		let found = ids.get(text);
		if (found === undefined)
			ids.set(text, (found = strings.push(text) - 1));
		return found;
	};
	const functions: Functions = {
		count: 0, strings,
		name: new Uint32Array(most), file: new Uint32Array(most), mapping: new Uint32Array(most),
		buildId: new Uint32Array(most), kind: new Uint8Array(most), startLine: new Uint32Array(most),
		systemName: new Uint32Array(most), unresolved: new Uint32Array(most),
	};
	const byName = new Map<number, number>();
	const maps = sources.map((source) => {
		const own = source.functions;
		return Uint32Array.from({ length: own.count }, (_, fn) => {
			const name = id(own.strings[own.name[fn]!]!);
			let merged = fn === 0 ? 0 : byName.get(name);
			if (merged === undefined || functions.count === 0) {
				merged = functions.count++;
				if (fn)
					byName.set(name, merged);
				for (const column of COLUMNS)
					functions[column][merged] = id(own.strings[own[column][fn]!]!);
				functions.kind[merged] = own.kind[fn]!;
				functions.startLine[merged] = own.startLine[fn]!;
			}
			return merged;
		});
	});
	return { functions, maps };
}

function addProfile(builder: TreeBuilder, source: Profile, map: Uint32Array, column: number): void {
	const nodes = new Uint32Array(source.count);
	builder.add(0, source.self[0]!, column);
	for (let node = 1; node < source.count; node++) {
		const flags = source.flags[node]! & (GROUP | TRIMMED);
		nodes[node] = builder.child(nodes[source.parent[node]!]!, map[source.func[node]!]!, flags);
		builder.add(nodes[node]!, source.self[node]!, column);
	}
}

/* Sums of one side over the merged functions. */
function functionsOf(merged: Profile, side: { self: Float64Array; total: Float64Array }): Float64Array[] {
	const count = merged.functions.count;
	const view: Profile = {
		...merged, self: side.self, total: side.total,
		functionSelf: new Float64Array(count), functionTotal: new Float64Array(count),
	};
	sumFunctions(view);
	return [view.functionSelf, view.functionTotal];
}

export function compareProfiles(a: Profile, b: Profile): Profile {
	const sources = [a, b];
	const { functions, maps } = mergeFunctions(sources);
	const builder = new TreeBuilder(2);
	sources.forEach((source, column) => addProfile(builder, source, maps[column]!, column));
	const seconds = sources.map(secondsOf);
	/* Widths in B's terms: A as if it had lasted as long. */
	const weights = seconds[0]! > 0 && seconds[1]! > 0 ? [seconds[1]! / seconds[0]!, 1] : [1, 1];
	const header = {
		...b.header,
		partial: a.header.partial || b.header.partial,
		parts_unreadable: Math.max(a.header.parts_unreadable, b.header.parts_unreadable),
		pending: Math.max(a.header.pending, b.header.pending),
		trimmed: a.header.trimmed + b.header.trimmed,
		functions: functions.count,
	};
	const { profile, sides } = builder.finish(header, functions, weights);
	profile.header.total = profile.total[0]!;
	profile.header.nodes_total = profile.header.nodes = profile.count;
	sumFunctions(profile);
	profile.sides = sides.map((side, index) => {
		const [functionSelf, functionTotal] = functionsOf(profile, side);
		const { reports, trimmed } = sources[index]!.header;
		return { ...side, functionSelf, functionTotal, seconds: seconds[index]!, reports, trimmed };
	}) as Sides;
	return profile;
}

/* What values of a side are divided by in the terms of a mode. */
export function divisorOf(side: Side, mode: Mode): number {
	if (mode === "share")
		return side.total[0]! > 0 ? side.total[0]! : Infinity;
	return mode === "rate" && side.seconds > 0 ? side.seconds : 1;
}

export interface Change {
	a: number;
	b: number;
	delta: number;
	/* delta / a; Infinity for what is new, 0 when nothing changed. */
	ratio: number;
}

export function changeOf([sideA, sideB]: Sides, valueA: number, valueB: number, mode: Mode): Change {
	const a = valueA / divisorOf(sideA, mode);
	const b = valueB / divisorOf(sideB, mode);
	return { a, b, delta: b - a, ratio: ratioOf(a, b) };
}

/* (b - a) / a; Infinity for what is new, 0 when nothing changed. */
export function ratioOf(a: number, b: number): number {
	return a > 0 ? (b - a) / a : b > 0 ? Infinity : 0;
}

/* Upper ends of the steps of a change's colour, as ratios. */
export const STEPS = [0.02, 0.1, 0.25, 0.5, 1] as const;

/* -5..5: how much less or more; 0 for what changed by next to nothing. */
export function stepOf(ratio: number): number {
	const size = ratio < 0 ? -ratio : ratio;
	if (size <= STEPS[0])
		return 0;
	let step = 1;
	/* A half less is as much as twice more. */
	const grown = ratio < 0 ? (size >= 1 ? Infinity : size / (1 - size)) : size;
	while (step < 5 && grown > STEPS[step]!)
		step++;
	return ratio < 0 ? -step : step;
}

/* "▲ +12 %", "▼ −8 %", "new", "gone", or "" where nothing is to be said. */
export function changeWords(change: Change): string {
	if (change.a === 0 && change.b === 0)
		return "";
	if (change.a === 0)
		return "new";
	if (change.b === 0)
		return "gone";
	const percent = Math.abs(100 * change.ratio);
	if (percent < 0.05)
		return "=";
	const text = percent >= 1000 ? `×${(1 + change.ratio).toFixed(0)}`
		: `${change.ratio > 0 ? "+" : "−"}${percent.toFixed(percent < 10 ? 1 : 0)} %`;
	return `${change.ratio > 0 ? "▲" : "▼"} ${text}`;
}

export interface FunctionChange {
	fn: number;
	name: string;
	self: Change;
	total: Change;
}

/* A row per function that either side has. */
export function functionChanges(profile: Profile, mode: Mode): FunctionChange[] {
	const sides = profile.sides!;
	const [a, b] = sides;
	const rows: FunctionChange[] = [];
	for (let fn = 1; fn < profile.functions.count; fn++) {
		if (!(a.functionTotal[fn]! > 0 || b.functionTotal[fn]! > 0))
			continue;
		rows.push({
			fn, name: functionName(profile, fn),
			self: changeOf(sides, a.functionSelf[fn]!, b.functionSelf[fn]!, mode),
			total: changeOf(sides, a.functionTotal[fn]!, b.functionTotal[fn]!, mode),
		});
	}
	return rows;
}

/* The function with the largest change of its own into the direction of the whole. */
export function mainCause(rows: readonly FunctionChange[], delta: number): FunctionChange | null {
	let most: FunctionChange | null = null;
	for (const row of rows)
		if (row.self.delta * delta > 0 && (!most || Math.abs(row.self.delta) > Math.abs(most.self.delta)))
			most = row;
	return most;
}
