// SPDX-License-Identifier: Apache-2.0
/*
 * invert - inverted trees: functions first and their callers below (invertProfile), or one function
 * with all its callers on one side and all its callees on the other (sandwich).
 */
import { GROUP, TRIMMED, type Profile } from "./profile";
import { type Tree, TreeBuilder } from "./tree_builder";

/*
 * Each stack from its leaf to its root. Values of group-by stay on top. What functions have by
 * themselves and in total is as before.
 */
export function invertProfile(source: Profile): Profile {
	const { count, parent, func, flags, self } = source;
	const builder = new TreeBuilder();
	for (let node = 0; node < count; node++) {
		const value = self[node]!;
		if (!(value > 0))
			continue;
		let at = 0;
		for (const group of groupsAbove(source, node))
			at = builder.child(at, func[group]!, GROUP);
		for (let frame = node; frame !== 0; frame = parent[frame]!)
			if (!(flags[frame]! & GROUP))
				at = builder.child(at, func[frame]!, flags[frame]! & TRIMMED);
		builder.add(at, value);
	}
	const { profile } = builder.finish(source.header, source.functions);
	profile.header = { ...source.header, nodes: profile.count, nodes_total: profile.count };
	profile.functionSelf = source.functionSelf;
	profile.functionTotal = source.functionTotal;
	return profile;
}

function groupsAbove({ parent, flags }: Profile, node: number): number[] {
	const groups: number[] = [];
	for (let at = node; at !== 0; at = parent[at]!)
		if (flags[at]! & GROUP)
			groups.push(at);
	return groups.reverse();
}

export interface Sandwich {
	/* Both begin with the function; what calls it, and what it calls. */
	callers: Profile;
	callees: Profile;
}

/* What a sandwich is cut out of: a profile without its texts, so that it is quickly handed to another thread. */
export type Stacks = Pick<Profile, "count" | "parent" | "func" | "flags" | "self" | "total">;

export const stacksOf = ({ count, parent, func, flags, self, total }: Profile): Stacks =>
	({ count, parent, func, flags, self, total });

export interface Trees {
	callers: Tree;
	callees: Tree;
}

/*
 * `wanted` marks the functions that are the one in the middle: those of its name. A stack that
 * has the function several times counts once: its callers are those of the
 * outermost call, its callees everything below that. So callers add up to self plus callees.
 */
export function sandwich(source: Stacks, wanted: Uint8Array): Trees {
	const { count, parent, func, flags, self, total } = source;
	const middle = wanted.indexOf(1);
	const callers = new TreeBuilder();
	const callees = new TreeBuilder();
	/* Where a node of the source is among the callees; 0 when it is not below the function. */
	const below = new Uint32Array(count);
	for (let node = 1; node < count; node++) {
		const above = below[parent[node]!]!;
		const isFunction = !(flags[node]! & (GROUP | TRIMMED)) && wanted[func[node]!] === 1;
		if (above) {
			below[node] = callees.child(above, func[node]!, flags[node]! & TRIMMED);
		} else if (isFunction) {
			below[node] = callees.child(0, middle, 0);
			let at = callers.child(0, middle, 0);
			for (let up = parent[node]!; up !== 0; up = parent[up]!)
				at = callers.child(at, func[up]!, flags[up]! & GROUP);
			callers.add(at, total[node]!);
		}
		if (below[node])
			callees.add(below[node]!, self[node]!);
	}
	return { callers: callers.finishTree([1]).tree, callees: callees.finishTree([1]).tree };
}

/* The two trees as profiles of what they were cut out of. */
export function asProfiles(trees: Trees, { header, functions, functionSelf, functionTotal }: Profile): Sandwich {
	const whole = (tree: Tree): Profile => ({ ...tree, header, functions, functionSelf, functionTotal });
	return { callers: whole(trees.callers), callees: whole(trees.callees) };
}
