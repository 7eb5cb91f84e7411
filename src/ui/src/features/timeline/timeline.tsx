// SPDX-License-Identifier: Apache-2.0
/*
 * timeline - stacks over time, a lane for each value of a label: the lane's row shows how much it did,
 * step by step; open lanes show in what. Drawn by the flame graph, whose unit is time here.
 */
import { computed, effect, signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { fetchFlameChart, fetchLabels, fetchSeries } from "../../data/api";
import type { FlameChartAnswer, SeriesAnswer } from "../../model/answers";
import { FlameGraph } from "../../flame/flame_graph";
import { neighbour } from "../../flame/overlay";
import { type Viewport, rowTop } from "../../flame/viewport";
import { colourProfile } from "../../model/colours";
import { lengthText } from "../../model/moments";
import { GROUP, type Profile, depthOf, functionMapping, functionName, nodeName } from "../../model/profile";
import { formatCount, formatPercent, formatRate, formatSamples, formatValue } from "../../model/quantity";
import { findMatches } from "../../model/search";
import { formatSelector, quote, quoteName } from "../../model/selector";
import {
	type Chart, type Lane, type Lanes, type OpenLanes, barsFor, chartOf, laneLabel, laneOf, lanesOf, stepsFor,
} from "../../model/timeline";
import { type Span, absoluteRange, clockTime, resolveRange, snapSpan } from "../../model/timerange";
import { placeTooltip } from "../graph/flame_view";
import { Picker } from "../../kit/picker";
import { type KeyEntry, addKeys } from "../../state/keys";
import { go, place, selector } from "../../state/place";
import { dark } from "../../state/preferences";
import { functionNamed, pattern, selectFunction, selectedFunction, slots } from "../../state/reading";
import { profile, query, reload, unit } from "../../state/session";
import { Empty } from "../states/empty";
import "./timeline.css";

const ROW_HEIGHT = 18;
const PAN_PIXELS = 80;
/* Less room beside the bars holds no name. */
const NAMES_WIDTH_MIN = 120;
/* More together take long to lay out; the server has no more than this in one answer. */
const OPEN_MAX = 64;

const series = signal<{ answer: SeriesAnswer; label: string; span: Span } | null>(null);
const boxes = signal<FlameChartAnswer | null>(null);
const labels = signal<string[]>([]);
const openLanes = computed(() => place.value.lane as OpenLanes);

const lanes = computed<Lanes | null>(() =>
	series.value && lanesOf(series.value.answer, series.value.label, series.value.span, openLanes.value));
const chart = computed<Chart | null>(() =>
	lanes.value && profile.value && chartOf(lanes.value, boxes.value, profile.value.header));
const colouring = computed(() =>
	chart.value && colourProfile(chart.value.profile, place.value.colourBy, slots));
const found = computed(() => {
	const compiled = pattern.value;
	return chart.value && compiled.kind === "match" ? findMatches(chart.value.profile, compiled.test) : null;
});

async function loadLanes(aborted: AbortSignal): Promise<void> {
	const { view, range } = place.value;
	if (view !== "timeline")
		return;
	const span = resolveRange(range, Date.now());
	const known = await fetchLabels(selector.value, range, aborted);
	const label = place.value.lanes || laneLabel(known);
	const answer = await fetchSeries(selector.value, absoluteRange(span), barsFor(span), label, aborted);
	if (aborted.aborted)
		return;
	labels.value = known;
	series.value = { answer, label, span };
}

/* Of the open lane alone where it is one: that is fast however many there are. */
async function loadBoxes(aborted: AbortSignal): Promise<void> {
	const [current, now] = [lanes.value, series.value];
	if (place.value.view !== "timeline" || !current || !now)
		return;
	const open = current.list.filter((lane) => lane.open);
	if (!open.length)
		return;
	const only = open.length === 1 && now.label ? [`${quoteName(now.label)}=${quote(open[0]!.value)}`] : [];
	const selected = formatSelector(place.value.type, [place.value.matchers, ...only].filter(Boolean).join(", "));
	const asked = { ...query.value, query: selected, range: absoluteRange(now.span) };
	const answer = await fetchFlameChart(asked, now.label, stepsFor(now.span), aborted);
	if (!aborted.aborted)
		boxes.value = answer;
}

reload(() => place.value.view === "timeline" && [selector.value, place.value.range, place.value.lanes], loadLanes);
reload(() => place.value.view === "timeline" && [
	query.value, series.value?.label, series.value?.span,
	lanes.value?.list.filter(({ open }) => open).map(({ value }) => value),
], loadBoxes);

const clock = (ms: number, fine: boolean) =>
	`${clockTime(ms)}${fine ? `.${String(Math.floor(ms % 1000)).padStart(3, "0")}` : ""}`;

/* The lanes' rows over the graph's: a bar for each stretch of time, and the name. */
function paintLanes(canvas: HTMLCanvasElement, host: HTMLElement, view: Viewport): void {
	const [current, { nodes, profile: drawn }] = [lanes.value!, chart.value!];
	const ratio = devicePixelRatio || 1;
	const surface = { width: host.clientWidth, height: host.clientHeight, rowHeight: ROW_HEIGHT };
	const [width, height] = [Math.round(surface.width * ratio), Math.round(surface.height * ratio)];
	if (canvas.width !== width || canvas.height !== height)
		Object.assign(canvas, { width, height });
	const context = canvas.getContext("2d")!;
	const style = getComputedStyle(host);
	const read = (name: string) => style.getPropertyValue(name).trim();
	const colours = { back: read("--chrome"), bar: read("--accent"), text: read("--text") };
	const named = host.offsetLeft >= NAMES_WIDTH_MIN;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, surface.width, surface.height);
	context.font = `${read("--frame-size")} ${read("--mono")}`;
	context.textBaseline = "middle";
	current.list.forEach((lane, index) => {
		const top = rowTop(view, surface, depthOf(drawn, nodes[index]!));
		if (top > -ROW_HEIGHT && top < surface.height)
			paintLane(context, current, lane, { view, top, width: surface.width, named, colours });
	});
}

function paintLane(context: CanvasRenderingContext2D, current: Lanes, lane: Lane,
	{ view, top, width, named, colours }: {
		view: Viewport; top: number; width: number; named: boolean;
		colours: { back: string; bar: string; text: string };
	}): void {
	const scale = width / (view.right - view.left);
	const bottom = top + ROW_HEIGHT - 1;
	context.fillStyle = colours.back;
	context.fillRect(0, top, width, ROW_HEIGHT - 1);
	context.fillStyle = colours.bar;
	context.globalAlpha = 0.55;
	lane.activity.forEach((value, bar) => {
		const tall = Math.max(1, (value / Math.max(1, current.most)) * (ROW_HEIGHT - 3));
		const [x0, x1] = [bar, bar + 1].map((at) => Math.round((at * current.barMs - view.left) * scale));
		if (value > 0 && x1! > 0 && x0! < width)
			context.fillRect(x0!, bottom - tall, Math.max(1, x1! - x0! - 1), tall);
	});
	if (named)
		return;
	const text = `${lane.open ? "▾" : "▸"} ${lane.name}  ${formatPercent(lane.total, current.total)}`;
	context.fillStyle = colours.back;
	context.globalAlpha = 0.8;
	context.fillRect(0, top, context.measureText(text).width + 12, ROW_HEIGHT - 1);
	context.globalAlpha = 1;
	context.fillStyle = colours.text;
	context.fillText(text, 5, top + ROW_HEIGHT / 2);
}

/* Beside the bars; where there is no room for it, `paintLane` puts them over the bars. */
function Names({ current, view, host }: { current: Chart; view: Viewport; host: HTMLElement }): JSX.Element | null {
	if (host.offsetLeft < NAMES_WIDTH_MIN)
		return null;
	const surface = { width: host.clientWidth, height: host.clientHeight, rowHeight: ROW_HEIGHT };
	const rows = current.lanes.map((lane, index) =>
		({ lane, top: rowTop(view, surface, depthOf(current.profile, current.nodes[index]!)) }));
	return (
		<div class="timeline-names" aria-hidden="true">
			{rows.filter(({ top }) => top >= ROW_HEIGHT && top < surface.height).map(({ lane, top }) => (
				<button key={lane.value} type="button" tabIndex={-1} title={lane.name}
					style={{ top: `${top}px` }} onClick={() => openLane(lane)}>
					<span>{lane.open ? "▾" : "▸"}</span>
					<span class="lane-name">{lane.name}</span>
					<span class="number muted">
						{formatPercent(lane.total, lanes.value!.total)}
					</span>
				</button>
			))}
		</div>
	);
}

const openLane = (lane: Lane) => go({ lane: lane.open ? "none" : `=${lane.value}` });

function selectBox(current: Chart, node: number): void {
	if (profile.value)
		selectFunction(functionNamed(profile.value, nodeName(current.profile, node),
			functionMapping(current.profile, current.profile.func[node]!)));
}

const isLane = (current: Chart, node: number) => (current.profile.flags[node]! & GROUP) !== 0;

/* "main in worker-1, 12:03:20 – 12:03:30, 3.2 s" */
function spoken(current: Chart, node: number): string {
	const lane = current.lanes[laneOf(current, node)];
	const value = formatValue(unit.value, current.values[node]!);
	if (!lane)
		return `everything, ${value}`;
	if (isLane(current, node)) {
		const share = formatPercent(lane.total, lanes.value!.total);
		return `lane ${lane.name}, ${share} of all, ${value}, ${lane.open ? "open" : "closed"}`;
	}
	return `${nodeName(current.profile, node)} in ${lane.name}, ${timeOf(current, node)}, ${value}`;
}

function timeOf(current: Chart, node: number): string {
	const start = lanes.value!.fromMs + current.profile.start[node]!;
	const duration = current.profile.total[node]!;
	return `${clock(start, duration < 10_000)} – ${clock(start + duration, duration < 10_000)}`;
}

function Tooltip({ current, node, x, y, host, view }: {
	current: Chart; node: number; x: number; y: number; host: HTMLElement; view: Viewport;
}): JSX.Element {
	const box = useRef<HTMLDivElement>(null);
	useEffect(() => placeTooltip(box.current!, x, y, { width: host.clientWidth, height: host.clientHeight }));
	const lane = current.lanes[laneOf(current, node)]!;
	const ms = view.left + (x / Math.max(1, host.clientWidth)) * (view.right - view.left);
	const of = isLane(current, node) ? barOf(lane, ms) : {
		title: nodeName(current.profile, node), value: current.values[node]!,
		ms: current.profile.total[node]!, time: timeOf(current, node),
	};
	const parts = [
		formatValue(unit.value, of.value), formatSamples(unit.value, of.value),
		formatRate(unit.value, of.value, of.ms / 1000),
	];
	return (
		<div class="tooltip" ref={box} aria-hidden="true">
			<div class="tooltip-name mono">{of.title}</div>
			<div class="number"><b>{formatPercent(of.value, lane.total)}</b> of {lane.name}</div>
			<div class="number muted">{parts.filter(Boolean).join(" · ")}</div>
			<div class="number muted">{of.time}</div>
		</div>
	);
}

/* Of a lane's row, the bar under the pointer. */
function barOf(lane: Lane, ms: number): { title: string; value: number; ms: number; time: string } {
	const { fromMs, barMs, bars } = lanes.value!;
	const bar = Math.min(bars - 1, Math.max(0, Math.floor(ms / barMs)));
	const from = fromMs + bar * barMs;
	return { title: lane.name, value: lane.activity[bar]!, ms: barMs,
		time: `${clock(from, false)} – ${clock(from + barMs, false)}` };
}

const AXIS_SPACE = 110;
const AXIS_STEPS = [
	10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5,
	432e5, 864e5,
];

/* The time, above; dragging over it sets the range. */
function Axis({ view, width, onBrush }: {
	view: Viewport; width: number; onBrush(span: [number, number] | null): void;
}): JSX.Element {
	const { fromMs, barMs } = lanes.value!;
	const perPixel = (view.right - view.left) / Math.max(1, width);
	const step = AXIS_STEPS.find((each) => each / perPixel >= AXIS_SPACE) ?? AXIS_STEPS.at(-1)!;
	const first = Math.ceil((fromMs + view.left) / step) * step;
	const marks: number[] = [];
	for (let at = first; at < fromMs + view.right && marks.length < 50; at += step)
		marks.push(at);
	const start = useRef(-1);
	const xOf = (event: PointerEvent) => event.clientX - (event.currentTarget as HTMLElement)
		.getBoundingClientRect().left;
	const span = (event: PointerEvent): [number, number] =>
		[Math.min(start.current, xOf(event)), Math.max(start.current, xOf(event))];
	const finish = (event: PointerEvent) => {
		const [x0, x1] = span(event);
		const wanted = start.current >= 0 && x1 - x0 >= 4;
		start.current = -1;
		onBrush(null);
		if (!wanted)
			return;
		const msOf = (x: number) => fromMs + view.left + x * perPixel;
		const snap = Math.min(barMs, perPixel > 100 ? 1000 : 10);
		go({ range: absoluteRange(snapSpan({ fromMs: msOf(x0), toMs: msOf(x1) }, snap)) });
	};
	return (
		<div class="timeline-axis number" title="Drag over it to choose a time range"
			onPointerDown={(event) => {
				start.current = xOf(event);
				event.currentTarget.setPointerCapture(event.pointerId);
			}}
			onPointerMove={(event) => start.current >= 0 && onBrush(span(event))}
			onPointerUp={finish} onPointerCancel={() => onBrush(null)}>
			{marks.map((at) => (
				<span key={at} style={{ left: `${(at - fromMs - view.left) / perPixel}px` }}>
					{clock(at, step < 1000)}
				</span>
			))}
		</div>
	);
}

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

function Body({ current }: { current: Chart }): JSX.Element {
	const host = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const graph = useRef<FlameGraph | null>(null);
	const view = useSignal<Viewport>({ left: 0, right: 1, scroll: 0 });
	const tip = useSignal<{ node: number; x: number; y: number } | null>(null);
	const cursor = useSignal(0);
	const brush = useSignal<[number, number] | null>(null);
	const dragging = useSignal(false);

	const act = (node: number) => {
		const now = chart.value!;
		if (node <= 0)
			return;
		cursor.value = node;
		if (isLane(now, node))
			openLane(now.lanes[laneOf(now, node)]!);
		else
			selectBox(now, node);
		graph.current!.setMarks({ cursor: node });
	};
	const zoomToBox = (node: number) => {
		const { start, total } = chart.value!.profile;
		graph.current!.showSpan(start[node]!, start[node]! + total[node]!);
	};
	const everything = () => graph.current!.showSpan(0, chart.value!.profile.total[0]!);

	useEffect(() => {
		/* A graph paints once more when its place is taken away, and the references are empty by then. */
		const [element, lanes] = [host.current!, canvas.current!];
		const made = (graph.current = new FlameGraph(element, {
			hover: (node, x, y) => (tip.value = node > 0 && y > ROW_HEIGHT ? { node, x, y } : null),
			press: (node) => {
				element.querySelector<HTMLElement>(".tree-proxy")?.focus({ preventScroll: true });
				if (node > 0 && node === cursor.value && !isLane(chart.value!, node))
					zoomToBox(node);
				else
					act(node);
			},
			dragging: (on) => (dragging.value = on),
			painted: (now) => {
				view.value = now;
				paintLanes(lanes, element, now);
			},
		}, ROW_HEIGHT));
		const pans: Record<string, [number, number]> = { w: [0, -1], a: [-1, 0], s: [0, 1], d: [1, 0] };
		const stops = [
			bind(made),
			addKeys("Timeline", [
				{ keys: ["+", "=", "-"], does: "Zoom in, out", where: "page",
					run: (key) => made.zoomBy(key === "-" ? 1 / 1.5 : 1.5) },
				{ keys: ["0"], does: "Show everything", where: "page", run: everything },
				{ keys: Object.keys(pans), does: "Pan", where: "page",
					run: (key) =>
						made.panBy(pans[key]![0] * PAN_PIXELS, pans[key]![1] * PAN_PIXELS) },
				{ keys: ["Escape"], does: "Back to the view before", where: "page",
					run: () => (made.isFitted() ? history.back() : everything()) },
				...timelineKeys,
			]),
		];
		return () => {
			stops.forEach((stop) => stop());
			made.destroy();
		};
	}, []);

	const key = (event: KeyboardEvent) => {
		const direction = DIRECTIONS[event.key as keyof typeof DIRECTIONS];
		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (direction) {
			cursor.value = step(current, cursor.value, direction);
			graph.current!.setMarks({ cursor: cursor.value, ring: true });
			graph.current!.reveal(cursor.value);
			if (!isLane(current, cursor.value))
				selectBox(current, cursor.value);
		} else if (event.key === "Enter" && cursor.value > 0) {
			if (isLane(current, cursor.value))
				act(cursor.value);
			else
				zoomToBox(cursor.value);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	};
	const at = cursor.value < current.profile.count ? cursor.value : 0;
	const shown = tip.value && !dragging.value && tip.value.node < current.profile.count;
	return (
		<div class="timeline-body">
			<div class={`flame-host${dragging.value ? " dragging" : ""}`} ref={host}>
				<div class="tree-proxy" role="tree" id="timeline" tabIndex={0} aria-label="Timeline"
					aria-activedescendant="timeline-box" onKeyDown={key}
					onBlur={() => graph.current?.setMarks({ ring: false })}>
					<div role="treeitem" id="timeline-box"
						aria-selected="true">
						{spoken(current, at)}
					</div>
				</div>
				<canvas class="timeline-lanes" ref={canvas} aria-hidden="true" />
				{shown && <Tooltip current={current} {...tip.value!} host={host.current!}
					view={view.value} />}
			</div>
			{host.current && <Names current={current} view={view.value} host={host.current} />}
			<Axis view={view.value} width={host.current?.clientWidth ?? 1}
				onBrush={(span) => (brush.value = span)} />
			{brush.value && (
				<div class="timeline-brush"
					style={{ left: `${brush.value[0] + host.current!.offsetLeft}px`,
						width: `${brush.value[1] - brush.value[0]}px` }} />
			)}
		</div>
	);
}

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

function Head(): JSX.Element {
	const { label, list, leftOut, barMs } = lanes.value!;
	const options = labels.value.map((value) => ({ value, label: value }));
	const all = openLanes.value === "all";
	const { filters, cells } = place.value;
	const stepMs = stepsFor(series.value!.span);
	const counted = `${formatCount(list.length)} ${list.length === 1 ? "lane" : "lanes"}`;
	const facts = [
		leftOut ? `the largest; ${formatCount(leftOut)} more are not shown` : "",
		`bars of ${lengthText(barMs)}`,
		`stacks in steps of ${lengthText(stepMs)}: within one the order says nothing`,
		filters.length || cells ? "bars count everything, stacks what is chosen" : "",
	];
	return (
		<div class="view-head timeline-head">
			<Picker label="Lanes by" showLabel class="quiet" options={options}
				chosen={label ? [label] : []} none="nothing"
				empty="No labels in this range."
				onChange={([chosen]) => go({ lanes: chosen ?? "", lane: "" })} />
			<button type="button" class="chip-clear" disabled={list.length > OPEN_MAX && !all}
				title={list.length > OPEN_MAX ? `At most ${OPEN_MAX} lanes can be open together`
					: "Every stack of every lane: of many lanes this takes a few seconds"}
				onClick={() => go({ lane: all ? "none" : "all" })}>
				{all ? "Close all lanes" : `Open all ${counted}`}
			</button>
			<span class="number muted">{facts.filter(Boolean).join(" · ")}</span>
		</div>
	);
}

export function TimelineView(): JSX.Element {
	const current = chart.value;
	if (!current)
		return <div class="timeline" aria-busy="true" />;
	if (!current.lanes.length)
		return <Empty />;
	return (
		<div class="timeline">
			<Head />
			<Body current={current} />
		</div>
	);
}
