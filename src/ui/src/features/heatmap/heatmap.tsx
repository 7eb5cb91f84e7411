// SPDX-License-Identifier: Apache-2.0
/* heatmap - values over time, cell by cell; the graph below shows the chosen cells. */
import { computed, effect, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { fetchHeatmap } from "../../data/api";
import type { HeatmapAnswer } from "../../model/answers";
import {
	type Heatmap, HEAT_STEPS, cellSpan, cellsOf, columnChoices, heatmapOf, layoutFor, sumOf,
} from "../../model/heatmap";
import { formatCells, lengthOf, lengthText, mergeSpans, parseCells } from "../../model/moments";
import { formatRate, formatSamples, formatValue } from "../../model/quantity";
import { type Span, absoluteRange, clockTime, dayOf, describeDuration, resolveRange } from "../../model/timerange";
import { FlameView } from "../graph/flame_view";
import { Picker } from "../../kit/picker";
import { isEmpty } from "../states/states";
import { type KeyEntry, addKeys } from "../../state/keys";
import { go, place, selector } from "../../state/place";
import { dark } from "../../state/preferences";
import { profile, reload, unit } from "../../state/session";
import { HeatmapCanvas, heatColours } from "./heatmap_canvas";
import { Empty } from "../states/empty";
import "./heatmap.css";

const answer = signal<HeatmapAnswer | null>(null);
const map = computed(() => (answer.value ? heatmapOf(answer.value) : null));
const chosen = computed(() => parseCells(place.value.cells));
/* What a drag that is going on would choose. */
const pending = signal<Span[] | null>(null);
const hovered = signal(-1);
/* The cell that the keyboard is on, and where Shift began. */
const cursor = signal(-1);
const anchor = signal(-1);
const ring = signal(false);

const columnMs = () => {
	const { fromMs, toMs } = resolveRange(place.value.range, Date.now());
	return columnChoices(toMs - fromMs).find(({ value }) => value === place.value.column)?.columnMs ?? 0;
};

async function load(aborted: AbortSignal): Promise<void> {
	const { view, range } = place.value;
	if (view !== "heatmap")
		return;
	const { fromMs, toMs } = resolveRange(range, Date.now());
	const ask = (resolutionMs: number) => {
		const layout = layoutFor(toMs - fromMs, resolutionMs, columnMs());
		return fetchHeatmap(selector.value, range, layout.columnMs, layout.rows, aborted);
	};
	let next = await ask(0);
	const wanted = layoutFor(toMs - fromMs, next.resolution_ms, columnMs());
	/* Only now is it known how exactly times are. */
	if (wanted.columnMs !== next.column_ms || wanted.rows !== next.rows)
		next = await ask(next.resolution_ms);
	if (!aborted.aborted)
		answer.value = next;
}

reload(() => place.value.view === "heatmap" && [selector.value, place.value.range, place.value.column], load);

function clock(ms: number, current: Heatmap): string {
	const text = current.columnMs >= 86_400_000 ? `${dayOf(ms)} ${clockTime(ms).slice(0, 5)}` : clockTime(ms);
	return current.cellMs < 1000 ? `${text}.${String(Math.round(ms % 1000)).padStart(3, "0")}` : text;
}

const spanText = ({ fromMs, toMs }: Span, current: Heatmap) => `${clock(fromMs, current)} – ${clock(toMs, current)}`;

/* "14 samples · 280 ms · 1.4 cores" */
function valueText(value: number, ms: number): string {
	if (!value)
		return "nothing";
	return [formatSamples(unit.value, value), formatValue(unit.value, value),
		formatRate(unit.value, value, ms / 1000)]
		.filter(Boolean).join(" · ");
}

/* Chosen moments are fixed: so is the range that they are in, from then on. */
function choose(spans: Span[], how: "push" | "replace" = "push"): void {
	const cells = formatCells(spans);
	const { from_ms: fromMs, to_ms: toMs } = answer.value!;
	if (cells === place.value.cells)
		return;
	const fixed = cells && place.value.live ? { range: absoluteRange({ fromMs, toMs }) } : {};
	go({ cells, times: answer.value!.times ? "" : "0", ...fixed }, how);
}

function drag(from: number, to: number, add: boolean, done: boolean): void {
	const current = map.value;
	if (!current || from < 0 || to < 0)
		return;
	const span = cellSpan(current, from, to);
	const only = chosen.value.length === 1 && formatCells([span]) === place.value.cells;
	pending.value = done ? null : add ? mergeSpans([...chosen.value, span]) : [span];
	anchor.value = cursor.value = to;
	ring.value = false;
	if (done)
		choose(only && from === to ? [] : add ? [...chosen.value, span] : [span]);
}

const steps = (current: Heatmap): Record<string, number> => ({
	ArrowUp: -1, ArrowDown: 1, ArrowLeft: -current.rows, ArrowRight: current.rows,
});

function key(event: KeyboardEvent): void {
	const current = map.value;
	const by = current && steps(current)[event.key];
	if (!current || event.ctrlKey || event.metaKey || event.altKey)
		return;
	if (by !== undefined && by !== null) {
		const from = cursor.value < 0 ? firstCell(current) - by : cursor.value;
		const to = Math.min(current.values.length - 1, Math.max(0, from + by));
		cursor.value = to;
		ring.value = true;
		if (event.shiftKey && anchor.value >= 0)
			choose([cellSpan(current, anchor.value, to)], chosen.value.length ? "replace" : "push");
		else
			anchor.value = to;
	} else if ((event.key === "Enter" || event.key === " ") && cursor.value >= 0) {
		choose([cellSpan(current, cursor.value)]);
	} else if (event.key === "Escape" && chosen.value.length) {
		choose([]);
	} else {
		return;
	}
	event.preventDefault();
	event.stopPropagation();
}

/* Of what is chosen, else the first that has something. */
function firstCell(current: Heatmap): number {
	const [first] = chosen.value.length ? cellsOf(current, chosen.value[0]!) : [current.values.findIndex(Boolean)];
	return Math.max(0, first!);
}

const heatKeys: KeyEntry[] = [
	{ keys: ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"], does: "Heatmap: next cell, next column",
		where: "own", commands: [], run: () => undefined },
	{ keys: ["Shift"], does: "Heatmap, with arrows: choose a stretch", where: "own", commands: [],
		run: () => undefined },
];

/* The picture for screen readers and keys: the one cell that the cursor is on. */
function Cells({ current }: { current: Heatmap }): JSX.Element {
	const cell = cursor.value >= 0 && cursor.value < current.values.length ? cursor.value : firstCell(current);
	const spoken =
		`${spanText(cellSpan(current, cell), current)}, ${valueText(current.values[cell]!, current.cellMs)}`;
	const [column, row] = [Math.floor(cell / current.rows), cell % current.rows];
	const [low, high] = [cellSpan(current, cell).fromMs, cellSpan(current, cell).toMs];
	const isChosen = chosen.value.some(({ fromMs, toMs }) => low >= fromMs && high <= toMs);
	return (
		<div class="heat-cells" role="grid" id="heatmap" tabIndex={0} aria-label="Heatmap of values over time"
			aria-multiselectable="true" aria-colcount={current.columns} aria-rowcount={current.rows}
			aria-activedescendant="heat-cell" onKeyDown={key}
			onFocus={(event) => {
				ring.value = event.currentTarget.matches(":focus-visible");
				if (cursor.value < 0 && ring.value)
					anchor.value = cursor.value = cell;
			}}
			onBlur={() => (ring.value = false)}>
			<div role="row" aria-rowindex={row + 1}>
				<div role="gridcell" id="heat-cell" aria-colindex={column + 1}
					aria-selected={isChosen}>
					{spoken}
				</div>
			</div>
		</div>
	);
}

function Host({ current }: { current: Heatmap }): JSX.Element {
	const host = useRef<HTMLDivElement>(null);
	useEffect(() => {
		const canvas = new HeatmapCanvas(host.current!, {
			hover: (cell) => (hovered.value = cell),
			drag,
		});
		const stops = [
			effect(() => {
				if (map.value)
					canvas.setMap(map.value);
			}),
			effect(() => canvas.setMarks({
				chosen: pending.value ?? chosen.value, hover: hovered.value,
				cursor: ring.value ? cursor.value : -1,
			})),
			effect(() => {
				void dark.value;
				requestAnimationFrame(() => canvas.retheme());
			}),
			addKeys("Heatmap", heatKeys),
		];
		return () => {
			stops.forEach((stop) => stop());
			canvas.destroy();
			hovered.value = -1;
			pending.value = null;
		};
	}, []);
	return <div class="heat-host" ref={host}><Cells current={current} /></div>;
}

const OFFSETS = [0, 0.25, 0.5, 0.75, 1];
const TIME_LABELS_MAX = 10;
const CHARACTER = 7;

function Axes({ current }: { current: Heatmap }): JSX.Element {
	const textOf = (column: number) =>
		clock(current.fromMs + column * current.columnMs, { ...current, cellMs: 1000 });
	const width = (document.querySelector(".view")?.clientWidth ?? innerWidth) - 100;
	const room = Math.floor(width / (CHARACTER * (textOf(0).length + 2)));
	const every = Math.ceil(current.columns / Math.min(TIME_LABELS_MAX, Math.max(1, room)));
	const columns = Array.from({ length: Math.ceil(current.columns / every) }, (_, index) => index * every)
		.filter((column) => !column || column + every * 0.8 <= current.columns); /* has room for its text */
	return (
		<div class="heat-times" aria-hidden="true">
			{columns.map((column) => (
				<span key={column} class="number"
					style={{ left: `${(100 * column) / current.columns}%` }}>
					{textOf(column)}
				</span>
			))}
		</div>
	);
}

function Legend({ current }: { current: Heatmap }): JSX.Element {
	const scale = useRef<HTMLSpanElement>(null);
	useEffect(() => {
		const colours = heatColours(scale.current!);
		[...scale.current!.children].forEach((box, step) =>
			((box as HTMLElement).style.background = colours[step]!));
	}, [dark.value]);
	const more = current.cap < current.max;
	const most = unit.value.sampled ? formatSamples(unit.value, current.cap) : formatValue(unit.value, current.cap);
	return (
		<span class="heat-legend number" role="img"
			aria-label={`Colours: from little to ${most}${more ? " and more" : ""} in a cell`}>
			<span>0</span>
			<span class="heat-scale" ref={scale}>
				{Array.from({ length: HEAT_STEPS }, (_, step) => <span key={step} />)}
			</span>
			<span>{more ? "≥ " : ""}{most}</span>
		</span>
	);
}

function Chosen({ current }: { current: Heatmap }): JSX.Element | null {
	const spans = chosen.value;
	if (!spans.length)
		return <span class="muted">Click a cell or drag over some: the graph below is of those moments.</span>;
	const length = lengthOf(spans);
	const closer = () => go({
		range: absoluteRange({ fromMs: spans[0]!.fromMs, toMs: spans.at(-1)!.toMs }), cells: "", column: "",
	});
	return (
		<span class="heat-chosen number">
			<span role="status">
				<b>{spans.length === 1 ? spanText(spans[0]!, current) : `${spans.length} stretches`}</b>
				{`, ${lengthText(length)}: ${valueText(sumOf(current, spans), length)}`}
			</span>
			<button type="button" class="chip-clear" onClick={closer}>Zoom in</button>
			<button type="button" class="chip-clear" onClick={() => choose([])}>Clear</button>
		</span>
	);
}

function Head({ current }: { current: Heatmap }): JSX.Element {
	const { fromMs, toMs } = resolveRange(place.value.range, Date.now());
	const options = [
		{ value: "", label: "Automatic" },
		...columnChoices(toMs - fromMs).map(({ value }) => ({ value, label: describeDuration(value) })),
	];
	const cell = hovered.value;
	return (
		<div class="view-head heat-head">
			<Picker label="Columns" showLabel class="quiet" options={options} chosen={[place.value.column]}
				onChange={([column]) => go({ column: column ?? "" }, "replace")} />
			<span class="muted number">
				{lengthText(current.columnMs)} wide, cells of {lengthText(current.cellMs)}
			</span>
			<span class="heat-reading number">
				{cell >= 0 && cell < current.values.length
					? <>
						<b>{valueText(current.values[cell]!, current.cellMs)}</b>
						<span class="muted"> {spanText(cellSpan(current, cell), current)}</span>
					</>
					: <Chosen current={current} />}
			</span>
			<Legend current={current} />
		</div>
	);
}

/* What limits the picture, in words. */
function notes(current: Heatmap): string[] {
	const coarse = current.resolutionMs > 1000;
	const layout = layoutFor(current.columns * current.columnMs, 0, columnMs());
	return [
		coarse && current.cellMs > layout.columnMs / layout.rows
			? `Times are known to ${lengthText(current.resolutionMs)}, the length of a report: none of ` +
				"single samples are kept for this range. Agents send them unless they run with " +
				"--no-sample-times; servers keep them for --storage-sample-times."
			: "",
		place.value.filters.length ? "The cells count all stacks; filters apply to the graph below." : "",
	].filter(Boolean);
}

function Below(): JSX.Element {
	if (!isEmpty())
		return <FlameView />;
	return place.value.cells && !profile.value?.header.filtered ? (
		<div class="state" role="status">
			<h2>Nothing in these cells</h2>
			<p>Choose darker ones: the darker, the more was measured in that moment.</p>
			<div class="state-actions">
				<button type="button" class="button primary"
					onClick={() => choose([])}>
					Show the whole range
				</button>
			</div>
		</div>
	) : <Empty />;
}

export function HeatmapView(): JSX.Element {
	const current = map.value;
	if (!current)
		return <div class="heat-view" aria-busy="true" />;
	if (!current.total)
		return <Empty />;
	return (
		<div class="heat-view">
			<Head current={current} />
			{notes(current).map((note) => <p key={note} class="heat-note" role="note">{note}</p>)}
			<div class="heat-body" style={{ gridTemplateRows: `${heightOf(current)} 20px` }}>
				<div class="heat-offsets" aria-hidden="true">
					{OFFSETS.map((share) => (
						<span key={share} class="number" style={{ top: `${share * 100}%` }}>
							+{share ? lengthText(share * current.columnMs) : "0"}
						</span>
					))}
				</div>
				<Host current={current} />
				<Axes current={current} />
			</div>
			<div class="heat-below"><Below /></div>
		</div>
	);
}

/* Rows of up to 14 pixels, together at most a third of the window. */
const heightOf = ({ rows }: Heatmap) => `min(${rows * 14}px, 240px, 32vh)`;
