// SPDX-License-Identifier: Apache-2.0
/* tree - the call tree of a file's tables, for one value type, grouped and filtered as by the server. */
import { invertProfile } from "../model/invert";
import { GROUP, type Profile, type ProfileHeader } from "../model/profile";
import { sumFunctions } from "../model/top";
import { TreeBuilder } from "../model/tree_builder";
import { applyFilters } from "./filter_apply";
import type { Tables, ValueType } from "./tables";

export interface FileQuery {
	/* "cpu:nanoseconds", as typeName says it; what is not there means the file's first choice. */
	type: string;
	groupBy: readonly string[];
	filters: readonly string[];
	inverted: boolean;
}

export const typeName = ({ type, unit }: ValueType) => `${type}:${unit}`;

/* States are not spent: there is no rate of them. */
const isState = ({ type }: ValueType) => type.startsWith("inuse_") || /^goroutines?$/.test(type);

function headerOf(tables: Tables, index: number): ProfileHeader {
	const chosen = tables.types[index]!;
	const { period, periodUnit, timeMs, durationMs } = tables;
	const sampled = chosen.unit === "count" && chosen.type === "samples";
	return {
		type: `file:${typeName(chosen)}`,
		unit: chosen.unit,
		period: sampled ? period : 0,
		period_unit: sampled ? periodUnit : "",
		delta: !isState(chosen),
		from_ms: timeMs,
		to_ms: timeMs + durationMs,
		duration_ms: durationMs,
		total: 0,
		nodes: 0,
		nodes_total: 0,
		depth: 0,
		functions: 0,
		trimmed: 0,
		filtered: 0,
		reports: 0,
		partial: false,
		parts_unreadable: 0,
		pending: 0,
		unresolved: { value: 0, reasons_total: 0, reasons: [] },
	};
}

/* Group of every label set: the values of the labels asked for, or "(none)". */
function groupsOf(tables: Tables, groupBy: readonly string[]): { names: string[]; ofLabels: number[] } {
	const known = new Map<string, number>();
	const ofLabels = tables.labelSets.map((set) => {
		const name = groupBy
			.map(
				(wanted) =>
					set
						.filter(([label]) => label === wanted)
						.map(([, value]) => value)
						.join(",") || "(none)",
			)
			.join(", ");
		const group = known.get(name) ?? known.size;
		known.set(name, group);
		return group;
	});
	return { names: [...known.keys()], ofLabels };
}

class Grower {
	readonly builder = new TreeBuilder();
	/* Node of a stack in the group at hand. */
	private readonly nodes: Uint32Array;
	private readonly stamps: Uint32Array;
	private readonly applied;
	private stamp = 0;
	private top = 0;

	constructor(
		private readonly tables: Tables,
		filters: readonly string[],
	) {
		const { count } = tables.stacks;
		this.nodes = new Uint32Array(count);
		this.stamps = new Uint32Array(count);
		this.applied = filters.length ? applyFilters(tables, filters) : null;
	}

	group(top: number): void {
		this.top = top;
		this.stamp++;
	}

	shows(stack: number): boolean {
		return this.applied?.showsStack(stack) ?? true;
	}

	nodeOf(stack: number): number {
		const { a: above, b: functions } = this.tables.stacks;
		const trail: number[] = [];
		let at = stack;
		for (; at && this.stamps[at] !== this.stamp; at = above[at]!) trail.push(at);
		let node = at ? this.nodes[at]! : this.top;
		for (let next = trail.pop(); next !== undefined; next = trail.pop()) {
			if (!this.applied || this.applied.showsFrame[next])
				node = this.builder.child(node, functions[next]!, 0);
			this.nodes[next] = node;
			this.stamps[next] = this.stamp;
		}
		return node;
	}
}

/* The rows by their group. */
function rowsByGroup(tables: Tables, ofLabels: readonly number[], count: number): number[][] {
	const lists: number[][] = Array.from({ length: count }, () => []);
	for (let row = 1; row < tables.rows.count; row++) lists[ofLabels[tables.rows.b[row]!]!]!.push(row);
	return lists;
}

export function treeOf(tables: Tables, query: FileQuery): Profile {
	const asked = tables.types.findIndex((each) => typeName(each) === query.type);
	const type = asked >= 0 ? asked : tables.chosen;
	const grower = new Grower(tables, query.filters);
	const { names, ofLabels } = groupsOf(tables, query.groupBy);
	const isGrouped = query.groupBy.length > 0;
	const functions = tables.columns(isGrouped ? names : []);
	let filtered = 0;
	rowsByGroup(tables, ofLabels, names.length).forEach((rows, group) => {
		const sum = (some: readonly number[]) => some.reduce((all, row) => all + tables.value(row, type), 0);
		const counted = rows.filter((row) => tables.value(row, type) > 0);
		const shown = counted.filter((row) => grower.shows(tables.rows.a[row]!));
		filtered += sum(counted) - sum(shown);
		if (!shown.length) return;
		grower.group(isGrouped ? grower.builder.child(0, tables.functions.length + group, GROUP) : 0);
		for (const row of shown)
			grower.builder.add(grower.nodeOf(tables.rows.a[row]!), tables.value(row, type));
	});
	const { profile } = grower.builder.finish(headerOf(tables, type), functions);
	sumFunctions(profile);
	Object.assign(profile.header, {
		total: profile.total[0]!,
		filtered,
		nodes: profile.count,
		nodes_total: profile.count,
		depth: profile.rows - 1,
		functions: functions.count,
	});
	return query.inverted ? invertProfile(profile) : profile;
}
