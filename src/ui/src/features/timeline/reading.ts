// SPDX-License-Identifier: Apache-2.0
/* reading - the reader's interaction with the timeline: hovering, presses, keys, zoom. */
import { effect, signal } from "@preact/signals";
import { FlameGraph } from "../../flame/flame_graph";
import { neighbour } from "../../flame/overlay";
import type { Viewport } from "../../flame/viewport";
import { type Profile, functionMapping, functionName } from "../../model/profile";
import { type Chart, laneOf } from "../../model/timeline";
import { type KeyEntry, addKeys } from "../../state/keys";
import { dark } from "../../state/preferences";
import { functionNamed, selectedFunction } from "../../state/reading";
import { profile } from "../../state/session";
import { ROW_HEIGHT, paintLanes } from "./lane_rows";
import { isLane, openLane, selectBox } from "./lane_words";
import { chart, colouring, found } from "./lanes";

const PAN_PIXELS = 80;

const timelineKeys: KeyEntry[] = [
	{ keys: ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"], does: "Timeline: caller, callee, earlier, later",
		where: "own", commands: [], run: () => undefined },
	{ keys: ["Enter"], does: "Timeline: open the lane, zoom to the box", where: "own", commands: [],
		run: () => undefined },
];

/* Ties the graph to what is loaded, selected and searched. */
function bind(graph: FlameGraph): () => void {
	let shown: Profile | null = null;
	const stops = [
		effect(() => {
			const [current, colours] = [chart.value, colouring.value];
			if (!current || !colours)
				return;
			if (current.profile !== shown)
				graph.setProfile(current.profile, colours, 0);
			shown = current.profile;
		}),
		effect(() => graph.setMatches(found.value)),
		effect(() => {
			const [tree, current, selected] = [profile.value, chart.value?.profile, selectedFunction.value];
			const fn = tree && current && selected
				? functionNamed(current, functionName(tree, selected),
					functionMapping(tree, selected)) : 0;
			graph.setMarks({ functions: fn ? (at) => at === fn : null });
		}),
		effect(() => {
			void dark.value;
			requestAnimationFrame(() => graph.retheme());
		}),
	];
	return () => stops.forEach((stop) => stop());
}

const DIRECTIONS = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" } as const;
const PANS: Record<string, [number, number]> = { w: [0, -1], a: [-1, 0], s: [0, 1], d: [1, 0] };

/* Down from a lane that is closed, and up from a lane, go to the next lane. */
function step(current: Chart, node: number, direction: "up" | "down" | "left" | "right"): number {
	const { nodes } = current;
	const lane = nodes.indexOf(node);
	if (node === 0)
		return nodes[0] ?? 0;
	if (lane >= 0 && direction === "up")
		return nodes[lane - 1] ?? node;
	const next = neighbour(current.profile, node, direction);
	return next === node && direction === "down" ? nodes.find((each) => each > node) ?? node : next;
}

export class Reading {
	readonly view = signal<Viewport>({ left: 0, right: 1, scroll: 0 });
	readonly tip = signal<{ node: number; x: number; y: number } | null>(null);
	readonly cursor = signal(0);
	readonly dragging = signal(false);
	private graph: FlameGraph | null = null;

	/* Draws into `host` until the function that it gives is called. */
	attach(host: HTMLElement, lanes: HTMLCanvasElement): () => void {
		const graph = (this.graph = new FlameGraph(host, {
			hover: (node, x, y) => (this.tip.value = node > 0 && y > ROW_HEIGHT ? { node, x, y } : null),
			press: (node) => {
				host.querySelector<HTMLElement>(".tree-proxy")?.focus({ preventScroll: true });
				if (node > 0 && node === this.cursor.value && !isLane(chart.value!, node))
					this.zoomToBox(node);
				else
					this.act(node);
			},
			dragging: (on) => (this.dragging.value = on),
			painted: (now) => {
				this.view.value = now;
				paintLanes(lanes, host, now);
			},
		}, ROW_HEIGHT));
		const stops = [bind(graph), this.addKeys(graph)];
		return () => {
			stops.forEach((stop) => stop());
			graph.destroy();
		};
	}

	private addKeys(graph: FlameGraph): () => void {
		return addKeys("Timeline", [
			{ keys: ["+", "=", "-"], does: "Zoom in, out", where: "page",
				run: (key) => graph.zoomBy(key === "-" ? 1 / 1.5 : 1.5) },
			{ keys: ["0"], does: "Show everything", where: "page", run: () => this.everything() },
			{ keys: Object.keys(PANS), does: "Pan", where: "page",
				run: (key) => graph.panBy(PANS[key]![0] * PAN_PIXELS, PANS[key]![1] * PAN_PIXELS) },
			{ keys: ["Escape"], does: "Back to the view before", where: "page",
				run: () => (graph.isFitted() ? history.back() : this.everything()) },
			...timelineKeys,
		]);
	}

	private act(node: number): void {
		const now = chart.value!;
		if (node <= 0)
			return;
		this.cursor.value = node;
		if (isLane(now, node))
			openLane(now.lanes[laneOf(now, node)]!);
		else
			selectBox(now, node);
		this.graph!.setMarks({ cursor: node });
	}

	private zoomToBox(node: number): void {
		const { start, total } = chart.value!.profile;
		this.graph!.showSpan(start[node]!, start[node]! + total[node]!);
	}

	private everything(): void {
		this.graph!.showSpan(0, chart.value!.profile.total[0]!);
	}

	private walk(direction: "up" | "down" | "left" | "right"): void {
		const current = chart.value!;
		const node = (this.cursor.value = step(current, this.cursor.value, direction));
		this.graph!.setMarks({ cursor: node, ring: true });
		this.graph!.reveal(node);
		if (!isLane(current, node))
			selectBox(current, node);
	}

	readonly key = (event: KeyboardEvent): void => {
		const direction = DIRECTIONS[event.key as keyof typeof DIRECTIONS];
		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (direction)
			this.walk(direction);
		else if (event.key !== "Enter" || this.cursor.value <= 0)
			return;
		else if (isLane(chart.value!, this.cursor.value))
			this.act(this.cursor.value);
		else
			this.zoomToBox(this.cursor.value);
		event.preventDefault();
		event.stopPropagation();
	};

	/* The keyboard went elsewhere. */
	readonly blur = (): void => this.graph?.setMarks({ ring: false });
}
