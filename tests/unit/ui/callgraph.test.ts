// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallGraphAnswer } from "../../../src/ui/src/model/answers";
import { type CallGraph, NODE_WIDTH, layOut, neighbourOf, pathOf } from "../../../src/ui/src/model/callgraph";

function graphOf(count: number, edges: [number, number, number][], total = 100): CallGraphAnswer {
	const functions = Array.from({ length: count },
		(_, at) => ({ name: `f${at}`, kind: "native", flat: 1, cum: total - at }));
	return { total, left_out: 3, functions, edges };
}

function assertSound(graph: CallGraph): void {
	for (const row of graph.layers)
		row.forEach((node, rank) => {
			assert.equal(graph.nodes[node]!.rank, rank);
			if (rank)
				assert.ok(graph.nodes[node]!.x - graph.nodes[row[rank - 1]!]!.x > NODE_WIDTH - 0.001,
					"boxes overlap");
		});
	for (const { caller, callee, back } of graph.edges)
		assert.equal(graph.nodes[caller]!.layer < graph.nodes[callee]!.layer, !back);
	for (const { x, y } of graph.nodes)
		assert.ok(x >= NODE_WIDTH / 2 - 0.001 && x <= graph.width - NODE_WIDTH / 2 + 0.001
			&& y <= graph.height);
}

test("callers stand above callees, also where functions call each other in a circle", () => {
	const graph = layOut(graphOf(5, [[0, 1, 60], [1, 2, 50], [2, 3, 40], [3, 1, 30], [0, 4, 20], [4, 3, 10],
		[2, 2, 7]]));
	assertSound(graph);
	assert.deepEqual(graph.edges.filter(({ back }) => back).map(({ caller, callee }) => [caller, callee]),
		[[3, 1]]);
	assert.equal(graph.nodes[2]!.recursion, 7);
	assert.equal(graph.edges.length, 6, "a call to itself is no line");
	assert.equal(graph.hiddenFunctions, 3);
});

test("small calls are hidden and counted, but none that leaves a function alone", () => {
	const graph = layOut(graphOf(4, [[0, 1, 9_000], [0, 2, 5_000], [1, 2, 3], [2, 3, 2]], 10_000));
	assert.deepEqual(graph.edges.map(({ caller, callee }) => [caller, callee]), [[0, 1], [0, 2], [2, 3]]);
	assert.equal(graph.hiddenEdges, 1);
});

test("arrow keys lead along the heaviest calls", () => {
	const graph = layOut(graphOf(4, [[0, 1, 60], [0, 2, 30], [1, 3, 5], [2, 3, 30]]));
	assert.equal(neighbourOf(graph, 0, "ArrowDown"), 1);
	assert.equal(neighbourOf(graph, 3, "ArrowUp"), 2);
	assert.equal(neighbourOf(graph, 0, "ArrowUp"), 0);
	const [left, right] = graph.layers[1]!;
	assert.equal(neighbourOf(graph, left!, "ArrowRight"), right);
	assert.equal(neighbourOf(graph, right!, "ArrowRight"), right);
});

test("400 functions that call at random are laid out soundly and soon", () => {
	let seed = 7;
	const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
	const edges = Array.from({ length: 1_500 },
		() => [random(400), random(400), 1 + random(5_000)] as [number, number, number]);
	const once = [...new Map(edges.map((edge) => [`${edge[0]} ${edge[1]}`, edge])).values()];
	const graph = layOut(graphOf(400, once, 10_000));
	assertSound(graph);
	assert.ok(graph.edges.every((edge) => !/NaN|Infinity/.test(pathOf(edge))));
});

test("nothing, and functions without calls, are graphs too", () => {
	assertSound(layOut(graphOf(0, [])));
	assertSound(layOut(graphOf(3, [])));
});
