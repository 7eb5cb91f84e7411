// SPDX-License-Identifier: Apache-2.0
/* callgraph - functions as boxes, calls as lines whose thickness shows their value. */
import { computed, signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { fetchCallGraph } from "../../data/api";
import type { CallGraphAnswer } from "../../model/answers";
import { attachGestures } from "../../flame/gestures";
import { type CallGraph, NODE_HEIGHT, NODE_WIDTH, layOut, neighbourOf, pathOf } from "../../model/callgraph";
import { functionMapping, functionName } from "../../model/profile";
import { counted, formatCount, formatPercent, formatValue } from "../../model/quantity";
import { shorten } from "../../model/shortname";
import { type KeyEntry, addKeys } from "../../state/keys";
import { go, place } from "../../state/place";
import { functionNamed, pattern, selectFunction, selectedFunction } from "../../state/reading";
import { profile, query, reload, unit } from "../../state/session";
import "./callgraph.css";

const FUNCTIONS_MAX = 400;
const NAME_CHARS = 25;
const MARGIN = 24;
const ZOOM = { least: 0.1, most: 3 };
const LINE_MAX = 14;

const answer = signal<CallGraphAnswer | null>(null);
const graph = computed(() => (answer.value ? layOut(answer.value) : null));
/* The functions of tree and graph are numbered differently: name and binary are what they share. */
const selected = computed(() => {
	const [current, fn] = [profile.value, selectedFunction.value];
	if (!current || !fn || !graph.value)
		return -1;
	const [name, mapping] = [functionName(current, fn), functionMapping(current, fn)];
	return graph.value.nodes.findIndex((node) => node.fn.name === name && (node.fn.mapping ?? "") === mapping);
});

reload(() => place.value.view === "callgraph" && [query.value, place.value.functions], async (aborted) => {
	if (place.value.view !== "callgraph")
		return;
	const next = await fetchCallGraph(query.value, place.value.functions, aborted);
	if (!aborted.aborted)
		answer.value = next;
});

function select(node: number): void {
	const { name, mapping } = graph.value!.nodes[node]!.fn;
	if (profile.value)
		selectFunction(functionNamed(profile.value, name, mapping ?? ""));
}

const lineWidth = (value: number, total: number) => Math.max(1, (LINE_MAX * value) / Math.max(1, total));

function Calls({ current }: { current: CallGraph }): JSX.Element {
	const chosen = selected.value;
	const nameOf = (node: number) => current.nodes[node]!.fn.name;
	return (
		<g class={`calls${chosen >= 0 ? " some" : ""}`} aria-hidden="true">
			{current.edges.map((edge) => {
				const { caller, callee, value, back, points } = edge;
				const near = caller === chosen || callee === chosen;
				const width = lineWidth(value, current.total);
				const end = points.at(-1)!;
				const share = formatPercent(value, current.total);
				const size = 3 + width / 2;
				const high = (back ? -1.5 : 1.5) * size;
				return (
					<g key={`${caller}-${callee}`} class={near ? "near" : ""}>
						<path class={`call${near ? " near" : ""}${back ? " back" : ""}`}
							d={pathOf(edge)} stroke-width={width}>
							<title>
								{`${nameOf(caller)} → ${nameOf(callee)}: ${share}`}
							</title>
						</path>
						<path class="call-head"
							d={`M${end.x} ${end.y}l${-size} ${-high}h${2 * size}z`} />
					</g>
				);
			})}
		</g>
	);
}

function Box({ current, node, tab }: { current: CallGraph; node: number; tab: boolean }): JSX.Element {
	const { fn, flat, cum, recursion, x, y } = current.nodes[node]!;
	const compiled = pattern.value;
	const matching = compiled.kind === "match" ? (compiled.test(fn.name) ? " match" : " unmatched") : "";
	const [self, total] = [formatPercent(flat, current.total), formatPercent(cum, current.total)];
	const again = recursion > 0 ? ", calls itself" : "";
	const values = `total ${total} · self ${self}${recursion > 0 ? " · ↻" : ""}`;
	const where = fn.mapping ? `\n${fn.mapping}` : "";
	return (
		<g class={`call-node${node === selected.value ? " selected" : ""}${matching}`} role="button"
			id={`call-${node}`} tabindex={tab ? 0 : -1} aria-pressed={node === selected.value}
			transform={`translate(${x - NODE_WIDTH / 2} ${y - NODE_HEIGHT / 2})`}>
			<title>{`${fn.name}, ${total} of total, ${self} self${again}${where}`}</title>
			<rect class="case" width={NODE_WIDTH} height={NODE_HEIGHT} rx="5" />
			<rect class="heat" width={NODE_WIDTH} height={NODE_HEIGHT} rx="5"
				fill-opacity={Math.min(0.5,
					Math.sqrt(Math.max(0, flat) / Math.max(1, current.total)) * 0.6)} />
			<text x="8" y="16">{shorten(fn.name, NAME_CHARS)}</text>
			<text class="call-values" x="8" y="31">{values}</text>
		</g>
	);
}

interface View {
	x: number;
	y: number;
	scale: number;
}

/* All of the graph, in the middle. */
function fitted(current: CallGraph, host: HTMLElement): View {
	const [width, height] = [host.clientWidth - 2 * MARGIN, host.clientHeight - 2 * MARGIN];
	const whole = Math.min(width / Math.max(1, current.width), height / Math.max(1, current.height), 1);
	const scale = Math.max(whole, ZOOM.least);
	const x = (host.clientWidth - current.width * scale) / 2;
	return { x, y: Math.max(MARGIN, (host.clientHeight - current.height * scale) / 2), scale };
}

/* The box there, or -1. */
function boxAt({ x: left, y: top, scale }: View, current: CallGraph, x: number, y: number): number {
	const [px, py] = [(x - left) / scale, (y - top) / scale];
	return current.nodes.findIndex((each) =>
		Math.abs(each.x - px) <= NODE_WIDTH / 2 && Math.abs(each.y - py) <= NODE_HEIGHT / 2);
}

/* Moves as little as needed for a box to be in sight. */
function revealed(view: View, current: CallGraph, node: number, host: HTMLElement): View {
	const { x, y } = current.nodes[node]!;
	const shift = (at: number, half: number, room: number) =>
		Math.max(0, MARGIN + half - at) - Math.max(0, at + half + MARGIN - room);
	const dx = shift(view.x + x * view.scale, (NODE_WIDTH / 2) * view.scale, host.clientWidth);
	const dy = shift(view.y + y * view.scale, (NODE_HEIGHT / 2) * view.scale, host.clientHeight);
	return { ...view, x: view.x + dx, y: view.y + dy };
}

const graphKeys: KeyEntry[] = [
	{ keys: ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"], does: "Call graph: caller, callee, neighbours",
		where: "own", commands: [], run: () => undefined },
];

/* The part of the graph on screen, and the ways to move it. */
function useView(current: CallGraph) {
	const host = useRef<HTMLDivElement>(null);
	const view = useSignal<View>({ x: 0, y: 0, scale: 1 });
	const shown = useRef(current);
	shown.current = current;

	const zoom = (x: number, y: number, factor: number) => {
		const old = view.value;
		const scale = Math.min(ZOOM.most, Math.max(ZOOM.least, old.scale * factor));
		const grown = scale / old.scale;
		view.value = { x: x - (x - old.x) * grown, y: y - (y - old.y) * grown, scale };
	};
	const middle = (factor: number) => zoom(host.current!.clientWidth / 2, host.current!.clientHeight / 2, factor);
	const pan = (dx: number, dy: number) =>
		(view.value = { ...view.value, x: view.value.x - dx, y: view.value.y - dy });
	const all = () => (view.value = fitted(shown.current, host.current!));
	return { host, view, shown, zoom, middle, pan, all };
}

function Picture({ current }: { current: CallGraph }): JSX.Element {
	const { host, view, shown, zoom, middle, pan, all } = useView(current);
	const dragging = useSignal(false);
	const pointer = useRef(0);

	useEffect(() => {
		const press = (x: number, y: number) => {
			const node = boxAt(view.value, shown.current, x, y);
			if (node >= 0)
				select(node);
		};
		const stops = [
			attachGestures(host.current!, {
				hover: (_, y) => (pointer.current = y), leave: () => undefined, press, pan,
				zoom: (x, factor) => zoom(x, pointer.current, factor),
				dragging: (on) => (dragging.value = on),
			}),
			addKeys("Call graph", [
				{ keys: ["+", "=", "-"], does: "Zoom in, out", where: "page",
					run: (key) => middle(key === "-" ? 1 / 1.3 : 1.3) },
				{ keys: ["0"], does: "Show everything", where: "page", run: all },
				...graphKeys,
			]),
		];
		return () => stops.forEach((stop) => stop());
	}, []);

	/* Refreshed numbers leave the reader where they are; another graph is shown from its top. */
	const shape = current.nodes.map(({ fn }) => fn.name).join("\n");
	useEffect(() => void all(), [shape]);

	const key = (event: KeyboardEvent) => {
		const from = selected.value >= 0 ? selected.value : -1;
		const target = (event.target as Element).id.match(/^call-(\d+)$/);
		const at = target ? Number(target[1]) : from;
		if (event.ctrlKey || event.metaKey || event.altKey || at < 0)
			return;
		if (event.key.startsWith("Arrow")) {
			const to = neighbourOf(current, at, event.key);
			select(to);
			view.value = revealed(view.value, current, to, host.current!);
			host.current!.querySelector<SVGGElement>(`#call-${to}`)?.focus({ preventScroll: true });
		} else if (event.key === "Enter" || event.key === " ") {
			select(at);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	};
	const { x, y, scale } = view.value;
	const first = selected.value >= 0 ? selected.value : current.layers[0]?.[0] ?? 0;
	return (
		<div class={`callgraph-host${dragging.value ? " dragging" : ""}`} ref={host}
			onPointerMove={(event) => (pointer.current =
				event.clientY - host.current!.getBoundingClientRect().top)}>
			<svg role="group" aria-label="Call graph: callers above, callees below" onKeyDown={key}>
				<g transform={`translate(${x} ${y}) scale(${scale})`}>
					<Calls current={current} />
					{current.nodes.map((node, index) =>
						<Box key={node.fn.name + index} current={current} node={index}
							tab={index === first} />)}
				</g>
			</svg>
		</div>
	);
}

/* The same as a list: for screen readers, and for names in full. */
function List({ current }: { current: CallGraph }): JSX.Element {
	const nameOf = (node: number) => current.nodes[node]!.fn.name;
	const at = selected.value;
	const lines = (title: string, rows: [node: number, value: number][]) => rows.length > 0 && (
		<>
			<li class="muted">{title}</li>
			{rows.slice(0, 20).map(([node, value]) => (
				<li key={node}>
					<button type="button" onClick={() => select(node)}>
						<span class="number">{formatPercent(value, current.total)}</span>
						<span class="mono callee-name">{nameOf(node)}</span>
					</button>
				</li>
			))}
		</>
	);
	const callers = current.edges.filter(({ callee }) => callee === at).map(({ caller, value }) => [caller, value]);
	const callees = current.edges.filter(({ caller }) => caller === at).map(({ callee, value }) => [callee, value]);
	return (
		<details class="nearest callgraph-list">
			<summary>As a list</summary>
			<ul>
				{at >= 0 && lines(`Callers of ${shorten(nameOf(at), 40)}`,
					callers as [number, number][])}
				{at >= 0 && lines("It calls", callees as [number, number][])}
				<li class="muted">All functions shown, by total</li>
				{current.nodes.map(({ fn, cum, flat }, node) => (
					<li key={node}>
						<button type="button" onClick={() => select(node)}>
							<span class="number">{formatPercent(cum, current.total)}</span>
							<span class="mono callee-name">{fn.name}</span>
							<span class="number muted">
								self {formatValue(unit.value, flat)}
							</span>
						</button>
					</li>
				))}
			</ul>
		</details>
	);
}

function Hidden({ current }: { current: CallGraph }): JSX.Element {
	const shown = current.nodes.length;
	const next = Math.min(FUNCTIONS_MAX, place.value.functions * 2);
	const hidden = [
		current.hiddenFunctions ? `${counted(current.hiddenFunctions, "function")} with less` : "",
		current.hiddenEdges ? `${counted(current.hiddenEdges, "call")} below 0.2 %` : "",
	].filter(Boolean).join(" and ");
	return (
		<span class="number">
			<b>{formatCount(shown)}</b> functions, those with the largest totals.
			{hidden && <span class="muted"> Not shown: {hidden}. </span>}
			{current.hiddenFunctions > 0 && next > place.value.functions && (
				<button type="button" class="chip-clear"
					onClick={() => go({ functions: next })}>
					Show {next}
				</button>
			)}
		</span>
	);
}

export function CallGraphView(): JSX.Element {
	const current = graph.value;
	if (!current)
		return <div class="callgraph" aria-busy="true" />;
	return (
		<div class="callgraph">
			<div class="view-head callgraph-head">
				<Hidden current={current} />
				<span class="muted">
					Lines are as thick as what a call costs,
					boxes as warm as a function's own share. Ctrl and the wheel, or +, zoom in.
				</span>
				<List current={current} />
			</div>
			<Picture current={current} />
		</div>
	);
}
