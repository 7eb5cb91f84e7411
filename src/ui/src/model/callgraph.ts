// SPDX-License-Identifier: Apache-2.0
/*
 * callgraph - functions and calls laid out in layers, callers above callees.
 *
 * Layering reverses calls back to a caller. Calls over several layers pass through invisible nodes in
 * the layers between. The order within a layer follows the mean position of the neighbours, and each
 * node is as close to that mean as the order and the minimum distances allow.
 */
import type { CallGraphAnswer, FunctionAnswer } from "./answers";

export interface CallNode {
	fn: FunctionAnswer;
	flat: number;
	cum: number;
	/* Value of its calls to itself. */
	recursion: number;
	/* The middle of the box. */
	x: number;
	y: number;
	layer: number;
	/* Place within the layer. */
	rank: number;
}

export interface CallEdge {
	caller: number;
	callee: number;
	value: number;
	/* From the caller's lower side to the callee's upper side; other way round for calls back. */
	points: { x: number; y: number }[];
	back: boolean;
}

export interface CallGraph {
	nodes: CallNode[];
	edges: CallEdge[];
	layers: number[][];
	hiddenFunctions: number;
	hiddenEdges: number;
	total: number;
	width: number;
	height: number;
}

export const NODE_WIDTH = 190;
export const NODE_HEIGHT = 38;
const GAP_X = 24;
const GAP_Y = 46;
const BEND_WIDTH = 12;
const SWEEPS = 12;
/* Calls of less than this share are left out, unless a function would have no caller. */
const EDGE_SHARE_MIN = 0.002;

/* A node of the layout: a function, or a bend of a call that passes a layer. */
interface Place {
	layer: number;
	x: number;
	width: number;
	up: [place: number, weight: number][];
	down: [place: number, weight: number][];
}

function chooseEdges(answer: CallGraphAnswer): { edges: CallEdge[]; recursion: Float64Array; hidden: number } {
	const recursion = new Float64Array(answer.functions.length);
	const heaviest = new Map<number, number>();
	for (const [caller, callee, value] of answer.edges)
		if (caller === callee)
			recursion[caller] = value;
		else
			heaviest.set(callee, Math.max(heaviest.get(callee) ?? 0, value));
	const calls = answer.edges.filter(([caller, callee]) => caller !== callee);
	const kept = calls.filter(([, callee, value]) =>
		value >= answer.total * EDGE_SHARE_MIN || value === heaviest.get(callee));
	const edges = kept.map(([caller, callee, value]) => ({ caller, callee, value, points: [], back: false }))
		.sort((a, b) => b.value - a.value);
	return { edges, recursion, hidden: calls.length - kept.length };
}

/* Marks the calls that go back to a function on the way: without them there is no circle. */
function markBack(count: number, edges: readonly CallEdge[]): void {
	const out: CallEdge[][] = Array.from({ length: count }, () => []);
	const called = new Uint8Array(count);
	for (const edge of edges) {
		out[edge.caller]!.push(edge);
		called[edge.callee] = 1;
	}
	const state = new Uint8Array(count); // 1: on the way, 2: done
	const visit = (root: number) => {
		const way: [node: number, next: number][] = [[root, 0]];
		state[root] = 1;
		while (way.length) {
			const top = way.at(-1)!;
			const edge = out[top[0]]![top[1]++];
			if (!edge) {
				state[top[0]] = 2;
				way.pop();
			} else if (state[edge.callee] === 1) {
				edge.back = true;
			} else if (!state[edge.callee]) {
				state[edge.callee] = 1;
				way.push([edge.callee, 0]);
			}
		}
	};
	for (const callers of [0, 1])
		for (let node = 0; node < count; node++)
			if (!state[node] && called[node] === callers)
				visit(node);
}

const upper = (edge: CallEdge) => (edge.back ? edge.callee : edge.caller);
const lower = (edge: CallEdge) => (edge.back ? edge.caller : edge.callee);

/* The longest way from the top; then those that nobody calls move down to what they call. */
function giveLayers(count: number, edges: readonly CallEdge[]): number[] {
	const layers = new Array<number>(count).fill(0);
	const waiting = new Array<number>(count).fill(0);
	const out: number[][] = Array.from({ length: count }, () => []);
	for (const edge of edges) {
		waiting[lower(edge)]!++;
		out[upper(edge)]!.push(lower(edge));
	}
	const tops = waiting.map((callers) => callers === 0);
	const ready = layers.map((_, node) => node).filter((node) => tops[node]);
	for (let node = ready.pop(); node !== undefined; node = ready.pop())
		for (const callee of out[node]!) {
			layers[callee] = Math.max(layers[callee]!, layers[node]! + 1);
			if (--waiting[callee]! === 0)
				ready.push(callee);
		}
	for (let node = 0; node < count; node++)
		if (tops[node] && out[node]!.length)
			layers[node] = Math.min(...out[node]!.map((callee) => layers[callee]!)) - 1;
	return layers;
}

/* Places of functions come first, in their order; then the bends. */
function placesOf(layers: readonly number[], edges: readonly CallEdge[]): { places: Place[]; chains: number[][] } {
	const places: Place[] = layers.map((layer) => ({ layer, x: 0, width: NODE_WIDTH, up: [], down: [] }));
	const chains = edges.map((edge) => {
		const chain = [upper(edge)];
		for (let layer = layers[upper(edge)]! + 1; layer < layers[lower(edge)]!; layer++)
			chain.push(places.push({ layer, x: 0, width: BEND_WIDTH, up: [], down: [] }) - 1);
		chain.push(lower(edge));
		for (let at = 1; at < chain.length; at++) {
			const [a, b] = [chain[at - 1]!, chain[at]!];
			/* Bends of one call stay above each other. */
			const bends = Number(a >= layers.length) + Number(b >= layers.length);
			const weight = (1 + edge.value) * [1, 2, 8][bends]!;
			places[a]!.down.push([b, weight]);
			places[b]!.up.push([a, weight]);
		}
		return chain;
	});
	return { places, chains };
}

function meanOf(places: readonly Place[], neighbours: Place["up"]): number {
	let [sum, weights] = [0, 0];
	for (const [place, weight] of neighbours) {
		sum += places[place]!.x * weight;
		weights += weight;
	}
	return weights ? sum / weights : NaN;
}

/* The places closest to `wanted` that keep order and distance: neighbours in each other's way share a mean. */
function spread(row: readonly Place[], wanted: readonly number[]): void {
	let offset = 0;
	const blocks: { mean: number; weight: number; offsets: number[] }[] = [];
	row.forEach((place, index) => {
		if (index)
			offset += (row[index - 1]!.width + place.width) / 2 + GAP_X;
		let block = { mean: wanted[index]! - offset, weight: 1, offsets: [offset] };
		while (blocks.length && blocks.at(-1)!.mean > block.mean) {
			const last = blocks.pop()!;
			const weight = last.weight + block.weight;
			const mean = (last.mean * last.weight + block.mean * block.weight) / weight;
			block = { mean, weight, offsets: [...last.offsets, ...block.offsets] };
		}
		blocks.push(block);
	});
	const xs = blocks.flatMap(({ mean, offsets }) => offsets.map((at) => mean + at));
	row.forEach((place, index) => (place.x = xs[index]!));
}

function arrange(places: Place[]): Place[][] {
	const rows: Place[][] = [];
	for (const place of places)
		(rows[place.layer] ??= []).push(place);
	for (const row of rows)
		spread(row, row.map(() => 0));
	for (let sweep = 0; sweep < 2 * SWEEPS; sweep++) {
		const down = sweep % 2 === 0;
		for (const row of down ? rows : rows.slice().reverse()) {
			const means = new Map(row.map((place) => {
				const mean = meanOf(places, down ? place.up : place.down);
				return [place, Number.isNaN(mean) ? place.x : mean];
			}));
			/* Later sweeps only move what has its order. */
			if (sweep < SWEEPS)
				row.sort((a, b) => means.get(a)! - means.get(b)!);
			spread(row, row.map((place) => means.get(place)!));
		}
	}
	return rows;
}

/* Parts of the graph that do not call each other come as close together as their rows allow. */
function closeUp(places: readonly Place[]): void {
	const seen = new Set<Place>();
	const parts = places.flatMap((start) => {
		if (seen.has(start))
			return [];
		const part = [start];
		seen.add(start);
		for (const place of part)
			for (const [next] of [...place.up, ...place.down])
				if (!seen.has(places[next]!)) {
					seen.add(places[next]!);
					part.push(places[next]!);
				}
		return [part];
	});
	const leftOf = (part: readonly Place[]) => Math.min(...part.map(({ x }) => x));
	/* Of each row, where the next part may begin. */
	const free: number[] = [];
	for (const part of parts.sort((a, b) => leftOf(a) - leftOf(b))) {
		const shift = Math.max(...part.map(({ layer, x, width }) => (free[layer] ?? 0) - (x - width / 2)));
		for (const place of part)
			place.x += shift;
		for (const { layer, x, width } of part)
			free[layer] = Math.max(free[layer] ?? 0, x + width / 2 + GAP_X);
	}
}

export function layOut(answer: CallGraphAnswer): CallGraph {
	const count = answer.functions.length;
	const { edges, recursion, hidden } = chooseEdges(answer);
	markBack(count, edges);
	const layers = giveLayers(count, edges);
	const top = Math.min(...layers, 0);
	const { places, chains } = placesOf(layers.map((layer) => layer - top), edges);
	const rows = arrange(places);
	closeUp(places);
	rows.forEach((row) => row.sort((a, b) => a.x - b.x));
	const left = Math.min(0, ...places.map((place) => place.x - place.width / 2));
	const right = Math.max(0, ...places.map((place) => place.x + place.width / 2));
	const yOf = (place: Place) => place.layer * (NODE_HEIGHT + GAP_Y) + NODE_HEIGHT / 2;
	const nodes = answer.functions.map((fn, index) => {
		const place = places[index]!;
		return {
			fn, flat: fn.flat, cum: fn.cum, recursion: recursion[index]!, x: place.x - left, y: yOf(place),
			layer: place.layer, rank: 0,
		};
	});
	edges.forEach((edge, index) => {
		edge.points = chains[index]!.map((at, step, all) => ({
			x: places[at]!.x - left,
			y: yOf(places[at]!) + (step === 0 ? NODE_HEIGHT / 2 : step === all.length - 1
				? -NODE_HEIGHT / 2 : 0),
		}));
		if (edge.back)
			edge.points.reverse();
	});
	const numbers = new Map(places.map((place, index) => [place, index]));
	const order = rows.map((row) => row.map((place) => numbers.get(place)!).filter((place) => place < count));
	order.forEach((row) => row.forEach((node, rank) => (nodes[node]!.rank = rank)));
	return {
		nodes, edges, layers: order, hiddenFunctions: answer.left_out, hiddenEdges: hidden, total: answer.total,
		width: right - left, height: rows.length * (NODE_HEIGHT + GAP_Y) - GAP_Y,
	};
}

/* A smooth line through the points, as an SVG path. */
export function pathOf({ points }: CallEdge): string {
	const [first, ...rest] = points;
	let [x, y] = [first!.x, first!.y];
	let path = `M${x.toFixed(1)} ${y.toFixed(1)}`;
	for (const next of rest) {
		const middle = (y + next.y) / 2;
		path += `C${[x, middle, next.x, middle, next.x, next.y].map((each) => each.toFixed(1)).join(" ")}`;
		[x, y] = [next.x, next.y];
	}
	return path;
}

/* Where an arrow key leads from a node: the heaviest caller or callee, the neighbour beside it. */
export function neighbourOf(graph: CallGraph, node: number, key: string): number {
	const { layer, rank } = graph.nodes[node]!;
	if (key === "ArrowLeft" || key === "ArrowRight")
		return graph.layers[layer]![rank + (key === "ArrowRight" ? 1 : -1)] ?? node;
	const up = key === "ArrowUp";
	const edge = graph.edges.find(({ caller, callee, back }) => !back && (up ? callee : caller) === node);
	return edge ? (up ? edge.caller : edge.callee) : node;
}
