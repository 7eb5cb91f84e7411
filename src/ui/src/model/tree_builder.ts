// SPDX-License-Identifier: Apache-2.0
/*
 * tree_builder - builds a call tree node by node and lays it out as a Profile. For trees made from
 * others: merged, inverted, or cut out around a function.
 */
import type { Functions, Profile, ProfileHeader } from "./profile";

/* A profile without its texts and what belongs to functions. */
export type Tree = Pick<Profile,
	"count" | "rows" | "rowStart" | "parent" | "func" | "flags" | "start" | "total" | "self">;

export interface SideValues {
	self: Float64Array;
	total: Float64Array;
}

const START = 1 << 12;

export class TreeBuilder {
	count = 1;
	private parent = new Uint32Array(START);
	private func = new Uint32Array(START);
	private flags = new Uint8Array(START);
	/* One column of self values per side of a comparison. */
	private values: Float64Array[];
	/* Open addressing over (parent, function, flags); 0 is free, since the root is nobody's child. */
	private slots = new Uint32Array(START * 2);

	constructor(columns = 1) {
		this.values = Array.from({ length: columns }, () => new Float64Array(START));
	}

	private slotOf(parent: number, fn: number, flags: number): number {
		const mask = this.slots.length - 1;
		let at = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(fn * 8 + flags, 0x85ebca6b)) >>> 0;
		at = (at ^ (at >>> 15)) & mask;
		for (;; at = (at + 1) & mask) {
			const node = this.slots[at]!;
			const { func, flags: kinds } = this;
			if (!node || (this.parent[node] === parent && func[node] === fn && kinds[node] === flags))
				return at;
		}
	}

	/* The child of `parent` that is `fn`, made when it is not there. */
	child(parent: number, fn: number, flags: number): number {
		let slot = this.slotOf(parent, fn, flags);
		if (this.slots[slot])
			return this.slots[slot]!;
		if (this.count === this.parent.length) {
			this.grow();
			slot = this.slotOf(parent, fn, flags);
		}
		const node = this.count++;
		this.parent[node] = parent;
		this.func[node] = fn;
		this.flags[node] = flags;
		return (this.slots[slot] = node);
	}

	add(node: number, value: number, column = 0): void {
		this.values[column]![node]! += value;
	}

	private grow(): void {
		const size = this.parent.length * 2;
		const wider = <T extends Uint32Array | Uint8Array | Float64Array>(old: T, fresh: T): T => {
			fresh.set(old);
			return fresh;
		};
		this.parent = wider(this.parent, new Uint32Array(size));
		this.func = wider(this.func, new Uint32Array(size));
		this.flags = wider(this.flags, new Uint8Array(size));
		this.values = this.values.map((column) => wider(column, new Float64Array(size)));
		this.slots = new Uint32Array(size * 2);
		for (let node = 1; node < this.count; node++)
			this.slots[this.slotOf(this.parent[node]!, this.func[node]!, this.flags[node]!)] = node;
	}

	/*
	 * The tree row by row, siblings by falling width; a box is as wide as its columns together,
	 * each times its weight. `sides` are the columns' self and total values.
	 */
	finish(
		header: ProfileHeader, functions: Functions, weights: readonly number[] = [1],
	): { profile: Profile; sides: SideValues[] } {
		const { tree, sides } = this.finishTree(weights);
		const profile = {
			...tree, header, functions,
			functionSelf: new Float64Array(functions.count),
			functionTotal: new Float64Array(functions.count),
		};
		return { profile, sides };
	}

	/* The same without texts: what functions are is not looked at. */
	finishTree(weights: readonly number[]): { tree: Tree; sides: SideValues[] } {
		const { count, parent } = this;
		const totals = this.values.map((column) => column.slice(0, count));
		const width = new Float64Array(count);
		for (let node = count - 1; node >= 0; node--)
			for (let side = 0; side < totals.length; side++) {
				width[node]! += totals[side]![node]! * weights[side]!;
				if (node)
					totals[side]![parent[node]!]! += totals[side]![node]!;
			}
		const { order, rowStart } = this.arrange(width);
		const tree = emptyTree(count, rowStart);
		const sides = totals.map(() => ({ self: new Float64Array(count), total: new Float64Array(count) }));
		const newIndex = new Uint32Array(count);
		for (let at = 0; at < count; at++) {
			const node = order[at]!;
			newIndex[node] = at;
			tree.parent[at] = newIndex[parent[node]!]!;
			tree.func[at] = this.func[node]!;
			tree.flags[at] = this.flags[node]!;
			tree.total[at] = width[node]!;
			for (let side = 0; side < sides.length; side++) {
				sides[side]!.self[at] = this.values[side]![node]!;
				sides[side]!.total[at] = totals[side]![node]!;
				tree.self[at]! += this.values[side]![node]! * weights[side]!;
			}
		}
		placeBoxes(tree);
		return { tree, sides };
	}

	/* New order of the nodes: rows from the root down, children below their parents. */
	private arrange(width: Float64Array): { order: Uint32Array; rowStart: Uint32Array } {
		const { count, parent } = this;
		const childCount = new Uint32Array(count + 1);
		for (let node = 1; node < count; node++)
			childCount[parent[node]! + 1]!++;
		for (let node = 0; node < count; node++)
			childCount[node + 1]! += childCount[node]!;
		const next = childCount.slice();
		const children = new Uint32Array(count);
		for (let node = 1; node < count; node++)
			children[next[parent[node]!]!++] = node;
		const order = new Uint32Array(count);
		const starts = [0];
		let end = 1;
		for (let from = 0; from < end; ) {
			const rowEnd = end;
			starts.push(rowEnd);
			for (; from < rowEnd; from++) {
				const node = order[from]!;
				const group = children.subarray(childCount[node]!, childCount[node + 1]!);
				if (group.length > 1)
					group.sort((a, b) => width[b]! - width[a]! || a - b);
				order.set(group, end);
				end += group.length;
			}
		}
		return { order, rowStart: Uint32Array.from(starts) };
	}
}

function emptyTree(count: number, rowStart: Uint32Array): Tree {
	return {
		count, rows: rowStart.length - 1, rowStart,
		parent: new Uint32Array(count), func: new Uint32Array(count), flags: new Uint8Array(count),
		start: new Float64Array(count), total: new Float64Array(count), self: new Float64Array(count),
	};
}

/* Every box at the left end of what is free below its parent. */
export function placeBoxes({ count, parent, total, start }: Pick<Tree, "count" | "parent" | "total" | "start">): void {
	const cursor = new Float64Array(count);
	for (let i = 1; i < count; i++) {
		const up = parent[i]!;
		cursor[i] = start[i] = cursor[up]!;
		cursor[up]! += total[i]!;
	}
}
