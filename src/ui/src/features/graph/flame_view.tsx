// SPDX-License-Identifier: Apache-2.0
/* flame_view - connects the canvas graph with the session's signals, the keyboard and the ARIA tree. */
import { effect, signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { neighbour } from "../../flame/overlay";
import { FlameGraph } from "../../flame/flame_graph";
import type { Viewport } from "../../flame/viewport";
import { changeWords } from "../../model/compare";
import { type Profile, childrenOf, depthOf, nodeName } from "../../model/profile";
import { formatPercent, formatRate, formatSamples, formatValue } from "../../model/quantity";
import { changeTexts, nodeChange } from "../../state/changes";
import { isShown, nodeVerdict } from "../../model/verdicts";
import { verdicts } from "../../state/verdicts";
import { addKeys } from "../../state/keys";
import { frameMenu } from "../../state/overlays";
import { go, place } from "../../state/place";
import { dark, minimapOpen } from "../../state/preferences";
import {
	colouring, cursor, focus, highlighted, hovered, matches, selectNode, selectedFunction,
	walkMatches, zoomBack, zoomTo,
} from "../../state/reading";
import { graphWidth, profile, seconds, unit } from "../../state/session";
import { lazy } from "../../kit/lazy";

const Minimap = lazy(() => import("./minimap").then((view) => view.Minimap));

const ROW_HEIGHT = 18;
const PAN_PIXELS = 80;

/* The graph on screen, for the test hook. */
export const graphOnScreen = signal<FlameGraph | null>(null);
/* What of the tree it shows, and the total of that tree: the next one may be larger. */
const viewOnScreen = signal<{ view: Viewport; all: number } | null>(null);
export const lastPaint = { boxes: 0, ms: 0, count: 0 };

/* Whether the graph has focus by keyboard. */
const ring = signal(false);

function bind(graph: FlameGraph): () => void {
	let shown: Profile | null = null;
	const stops = [
		effect(() => {
			const next = profile.value;
			const colours = colouring.value;
			const node = focus.value;
			if (!next || !colours)
				return;
			if (next !== shown)
				graph.setProfile(next, colours, node);
			else
				graph.setFocus(node);
			shown = next;
		}),
		effect(() => {
			if (colouring.value)
				graph.setColouring(colouring.value);
		}),
		effect(() => graph.setMatches(matches.value)),
		effect(() => graph.setUpright(place.value.upright)),
		effect(() => {
			const current = profile.value;
			void place.value.mode;
			const said = verdicts.value;
			/* What may be noise is not said in large letters. */
			const words = (node: number) => (isShown(nodeVerdict(said, current!, node))
				? changeWords(nodeChange(current!, node)) : "");
			graph.setPrefix(current?.sides ? words : null);
		}),
		effect(() => {
			void dark.value;
			requestAnimationFrame(() => graph.retheme());
		}),
		effect(() => {
			graph.setMarks({ cursor: cursor.value, ring: ring.value });
			if (cursor.value >= 0 && ring.value)
				graph.reveal(cursor.value);
		}),
		effect(() => {
			const fn = selectedFunction.value;
			const category = highlighted.value;
			const colours = colouring.value;
			if (category >= 0 && colours)
				graph.setMarks({ functions: (at) => colours.categoryOf[at] === category });
			else
				graph.setMarks({ functions: fn ? (at) => at === fn : null });
		}),
	];
	return () => stops.forEach((stop) => stop());
}

function step(direction: "up" | "down" | "left" | "right"): void {
	if (!profile.value)
		return;
	ring.value = true;
	selectNode(cursor.value < 0 ? focus.value : neighbour(profile.value, cursor.value, direction));
}

function walk(graph: FlameGraph, by: 1 | -1): void {
	const node = walkMatches(by);
	if (node >= 0)
		graph.reveal(node);
}

function graphKeys(graph: FlameGraph): () => void {
	const back = () => {
		if (graph.isFitted())
			zoomBack();
		else
			graph.setFocus(focus.value);
	};
	const all = () => {
		graph.setFocus(0);
		if (place.value.zoom)
			go({ zoom: "" });
	};
	const arrows: Record<string, "up" | "down" | "left" | "right"> = {
		ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right",
	};
	const pans: Record<string, [number, number]> = { w: [0, -1], a: [-1, 0], s: [0, 1], d: [1, 0] };
	const toNeighbour = (key: string) => step(arrows[key]!);
	const intoFrame = () => cursor.value >= 0 && zoomTo(cursor.value);
	const zoom = (key: string) => graph.zoomBy(key === "-" ? 1 / 1.5 : 1.5);
	const pan = (key: string) => graph.panBy(pans[key]![0] * PAN_PIXELS, pans[key]![1] * PAN_PIXELS);
	const toMatch = (key: string) => walk(graph, key === "n" ? 1 : -1);
	return addKeys("Flame graph", [
		{ keys: Object.keys(arrows), does: "Caller, callee, neighbours", where: "graph", run: toNeighbour },
		{ keys: ["Enter"], does: "Zoom to the frame", where: "graph", run: intoFrame },
		{ keys: ["Escape"], does: "Back to the view before", where: "page", run: back },
		{ keys: ["0"], does: "Show everything", where: "page", run: all },
		{
			keys: ["+", "-", "="], does: "Zoom in, out", where: "page", run: zoom,
			commands: ["Zoom in", "Zoom out"],
		},
		{ keys: Object.keys(pans), does: "Pan", where: "page", run: pan },
		{
			keys: ["n", "N"], does: "Next, previous match", where: "page", group: "Search", run: toMatch,
			commands: ["Next match", "Previous match"],
		},
	]);
}

/* Beside the pointer, inside the graph, and never over what is hovered. */
export function placeTooltip(
	box: HTMLElement, x: number, y: number, size: { width: number; height: number },
): void {
	const left = Math.max(4, Math.min(x + 14, size.width - box.offsetWidth - 8));
	const below = y + 24;
	const above = Math.max(0, y - box.offsetHeight - 14);
	const top = below + box.offsetHeight < size.height ? below : above;
	box.style.transform = `translate(${left}px, ${top}px)`;
}

function Tooltip({ node, x, y, size }: {
	node: number; x: number; y: number; size: { width: number; height: number };
}): JSX.Element {
	const current = profile.value!;
	const place_ = useRef<HTMLDivElement>(null);
	useEffect(() => placeTooltip(place_.current!, x, y, size));
	if (current.sides)
		return (
			<div class="tooltip" ref={place_} aria-hidden="true">
				<div class="tooltip-name mono">{nodeName(current, node)}</div>
				<ChangeLines current={current} node={node} />
			</div>
		);
	const total = current.total[node]!;
	const self = current.self[node]!;
	const whole = current.total[0]!;
	const value = formatValue(unit.value, total);
	const rate = formatRate(unit.value, total, seconds.value);
	const samples = unit.value.sampled && ` · ${formatSamples(unit.value, total)}`;
	return (
		<div class="tooltip" ref={place_} aria-hidden="true">
			<div class="tooltip-name mono">{nodeName(current, node)}</div>
			<div class="number">
				<b>{formatPercent(total, whole)}</b> {rate || value}
				<span class="muted"> {value}{samples}</span>
			</div>
			<div class="number muted">self {formatPercent(self, whole)}</div>
		</div>
	);
}

function ChangeLines({ current, node }: { current: Profile; node: number }): JSX.Element {
	const { a, b, words, doubt } = changeTexts(current, node);
	return (
		<>
			<div class="number"><b>{words}</b> {doubt && <span class="muted">{doubt}</span>}</div>
			<div class="number muted">A {a} · B {b}</div>
		</>
	);
}

/* What a screen reader says of a frame. */
function spoken(current: Profile, node: number): string {
	if (current.sides) {
		const { a, b, words, doubt } = changeTexts(current, node);
		return `${nodeName(current, node)}, ${words}, A ${a}, B ${b}${doubt && `, ${doubt}`}`;
	}
	const total = formatPercent(current.total[node]!, current.total[0]!);
	const self = formatPercent(current.self[node]!, current.total[0]!);
	return `${nodeName(current, node)}, ${total} of total, ${self} self`;
}

/* The graph for screen readers and keys: one tree item, the frame that the cursor is on. */
function TreeProxy(): JSX.Element {
	const current = profile.value;
	const node = Math.max(0, cursor.value);
	const depth = current ? depthOf(current, node) : 0;
	const [first, end] = current && node ? childrenOf(current, current.parent[node]!, depth - 1) : [0, 1];
	const [child, childEnd] = current ? childrenOf(current, node, depth) : [0, 0];
	return (
		<div class="tree-proxy" role="tree" id="graph" tabIndex={0}
			aria-label="Flame graph" aria-activedescendant="graph-frame"
			onFocus={(event) => (ring.value = event.currentTarget.matches(":focus-visible"))}
			onBlur={() => (ring.value = false)}>
			<div role="treeitem" id="graph-frame" aria-level={depth + 1}
				aria-posinset={node - first + 1} aria-setsize={end - first}
				aria-selected="true" aria-expanded={childEnd > child}>
				{current ? spoken(current, node) : "no data"}
			</div>
		</div>
	);
}

/* There once one has moved away from the beginning. */
function SmallMap(): JSX.Element | null {
	const { view, all } = viewOnScreen.value ?? { view: null, all: 0 };
	const graph = graphOnScreen.value;
	const current = profile.value;
	if (!view || !graph || !current || place.value.upright || !minimapOpen.value)
		return null;
	const whole = view.right - view.left > 0.999 * all && view.scroll < ROW_HEIGHT;
	return whole ? null : <Minimap graph={graph} view={view} rowHeight={ROW_HEIGHT} />;
}

export function FlameView(): JSX.Element {
	const host = useRef<HTMLDivElement>(null);
	const tip = useSignal<{ node: number; x: number; y: number } | null>(null);
	const dragging = useSignal(false);

	useEffect(() => {
		const graph = new FlameGraph(host.current!, {
			hover: (node, x, y) => {
				hovered.value = node;
				tip.value = node > 0 ? { node, x, y } : null;
			},
			press: (node) => {
				host.current!.querySelector<HTMLElement>(".tree-proxy")?.focus({ preventScroll: true });
				ring.value = false;
				zoomTo(node);
			},
			dragging: (on) => (dragging.value = on),
			painted: (view, boxes, ms) => {
				viewOnScreen.value = { view, all: profile.peek()?.total[0] ?? 0 };
				Object.assign(lastPaint, { boxes, ms, count: lastPaint.count + 1 });
			},
		}, ROW_HEIGHT);
		graphWidth.value = Math.round(host.current!.clientWidth * devicePixelRatio) || graphWidth.peek();
		const unbind = bind(graph);
		const unkey = graphKeys(graph);
		graphOnScreen.value = graph;
		return () => {
			unbind();
			unkey();
			graph.destroy();
			graphOnScreen.value = null;
			hovered.value = -1;
		};
	}, []);

	const menu = (event: MouseEvent) => {
		if (hovered.value <= 0)
			return;
		event.preventDefault();
		selectNode(hovered.value);
		tip.value = null;
		frameMenu.value = { x: event.clientX, y: event.clientY };
	};
	const free = !frameMenu.value && !dragging.value;
	const show = tip.value && free && profile.value && tip.value.node < profile.value.count;
	return (
		<div class={`flame-host${dragging.value ? " dragging" : ""}`} ref={host} onContextMenu={menu}>
			<TreeProxy />
			<SmallMap />
			{show && <Tooltip {...tip.value!} size={graphOnScreen.value!.size} />}
		</div>
	);
}
