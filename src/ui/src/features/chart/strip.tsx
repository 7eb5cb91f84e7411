// SPDX-License-Identifier: Apache-2.0
/* strip - the value over time; dragging over it sets the range. */
import { computed, signal, useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { fetchLabels } from "../../data/api";
import { type Chart, chartOf } from "../../model/chart";
import { secondsOf } from "../../model/compare";
import { type Unit, digits, formatBytes, formatCount } from "../../model/quantity";
import { type TimeRange, absoluteRange, clockTime, dayOf, resolveRange, snapSpan, zoneName,
	zoomOut } from "../../model/timerange";
import { labelOption, loadLabelWords } from "../../state/label_words";
import { alone, colourOf, pointed } from "../../state/lines";
import { base, go, place } from "../../state/place";
import { dark, stripOpen, toggleZone, zone } from "../../state/preferences";
import { profile, series, unit } from "../../state/session";
import { Icon } from "../../kit/icons";
import { lazy } from "../../kit/lazy";
import { Picker } from "../../kit/picker";

const LineKeys = lazy(() => import("./line_keys").then((view) => view.LineKeys));
const LineSort = lazy(() => import("./line_keys").then((view) => view.LineSort));

/* Later than this, and a tree on screen may be of another range. */
const LATER_MAX_MS = 90_000;
/* Reports are on their way for so long. */
const FRESH_MS = 30_000;

/*
 * The seconds with data, by the tree on screen: then its rate and the chart's mean agree. What is looked at live may be
 * a tree of a while before or after the chart; where data goes on coming, the difference counts.
 */
const covered = computed(() => {
	const [tree, shown] = [profile.value, series.value];
	if (!tree || !shown || tree.sides)
		return 0;
	const { from_ms: fromMs, to_ms: toMs } = tree.header;
	const { span, answer } = shown;
	const [length, later] = [span.toMs - span.fromMs, span.toMs - toMs];
	if (Math.abs(toMs - fromMs - length) > answer.step_ms || (!place.value.live && Math.abs(later) > LATER_MAX_MS))
		return 0;
	const newest = Math.max(...answer.series.map(({ points }) => points.at(-1)?.[0] ?? 0));
	const goesOn = newest > span.toMs - answer.step_ms - FRESH_MS && Math.abs(later) > answer.step_ms;
	const [most, then] = [length / 1000, secondsOf(tree)];
	return goesOn && then < most - answer.step_ms / 1000 ? Math.min(most, Math.max(1, then + later / 1000)) : then;
});

/* Of two ranges on one axis, and of what has data for nobody knows how long, a mean would say something wrong. */
const isMeanTold = computed(() => place.value.view !== "compare" && (covered.value > 0 || !unit.value.delta));

const chart = computed<Chart | null>(() =>
	series.value ? chartOf(series.value.answer, series.value.span, unit.value, covered.value) : null);

function axisValue(value: number, what: Unit): string {
	if (what.kind === "bytes")
		return formatBytes(value);
	return value < 1e5 && what.kind === "time" ? digits(value) : formatCount(value);
}

/* "5.00" -> "5" */
const plain = (text: string) => text.replace(/\.0+(?=\D|$)/, "").replace(/(\.\d*?)0+(?=\D|$)/, "$1");

export function valueLabel(value: number | null | undefined, what: Unit): string {
	if (value === null || value === undefined)
		return "no data";
	if (what.kind === "time")
		return `${axisValue(value, what)} ${value === 1 ? "core" : "cores"}`;
	return `${axisValue(value, what)}${what.suffix}${what.delta ? "/s" : ""}`;
}

function colours(element: Element): { axis: string; grid: string; accent: string; lines: string[] } {
	const style = getComputedStyle(element);
	const read = (name: string) => style.getPropertyValue(name).trim();
	return {
		axis: read("--muted"), grid: read("--grid"), accent: read("--accent"),
		lines: Array.from({ length: 8 }, (_, index) => read(`--line-${index}`)),
	};
}

/* Room for the values beside the chart; in the timeline for the names of its lanes as well. */
/* Of a chart in which there is nothing. */
const Y_MAX_MIN = 1e-9;
/* Half of what a time takes below the chart, in pixels. */
const TIME_HALF = 20;
const AXIS_WIDTH = 76;
const LANES_WIDTH = 168;
const LANES_WIDTH_NARROW = 124;
/* Half of the last time below the chart. */
const END_WIDTH = 26;
/* Below, names of lanes are without their shares. */
const LANES_WINDOW_MIN = 900;
/* Ticks for bytes are whole KiB, MiB, ... */
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/* Right edge of the view below, in pixels of the window; 0: there is none. */
const viewRight = signal(0);

/* Where views with a time axis begin and end, so that a moment stands under itself. */
function insetsOf(host: HTMLElement): { left: number; right: number } {
	const { view } = place.value;
	const timed = view === "timeline" || view === "heatmap";
	const left = view !== "timeline" ? AXIS_WIDTH
		: innerWidth < LANES_WINDOW_MIN ? LANES_WIDTH_NARROW : LANES_WIDTH;
	const over = timed && viewRight.value ? host.getBoundingClientRect().right - viewRight.value : 0;
	const right = END_WIDTH + Math.max(0, over);
	const { style } = document.documentElement;
	style.setProperty("--axis-left", `${left}px`);
	style.setProperty("--axis-right", `${right - over}px`);
	return { left, right };
}

/* The bucket that the pointer is over, and the line nearest to it there; -1 for none. */
interface Hover {
	index: number;
	near: number;
}

const NOWHERE: Hover = { index: -1, near: -1 };

/* More are told apart by pointing at them: a dot on each would hide them all. */
const DOTS_MAX = 8;

function hoverOf(plot: uPlot): Hover {
	const { idx, top = -1 } = plot.cursor;
	if (idx === null || idx === undefined)
		return NOWHERE;
	let near = -1;
	let least = Infinity;
	for (let at = 1; at < plot.series.length; at++) {
		const value = plot.data[at]![idx];
		const distance = value === null || value === undefined || !plot.series[at]!.show ? Infinity
			: Math.abs(plot.valToPos(value, "y") - top);
		if (distance < least)
			[near, least] = [at - 1, distance];
	}
	return { index: idx, near };
}

function optionsFor(host: HTMLElement, current: Chart, what: Unit, onHover: (hover: Hover) => void): uPlot.Options {
	const paint = colours(host);
	const single = current.lines.length <= 1;
	const font = `11px ${getComputedStyle(host).fontFamily}`;
	const axis = { stroke: paint.axis, font, grid: { stroke: paint.grid, width: 1 }, ticks: { show: false } };
	const { left, right } = insetsOf(host);
	const end = current.xs[current.xs.length - 1]! + current.stepMs / 1000;
	/* The uppermost says what they are of. */
	const axisValues = (plot: uPlot, splits: number[]) => splits.map((value, at) => {
		if (value > 0 && plot.scales.y!.max! < 2 * Y_MAX_MIN || axisValue(value, what).startsWith("<"))
			return "";
		const isUppermost = at > 0 && at === splits.length - 1;
		return plain(isUppermost ? valueLabel(value, { ...what, suffix: "" }) : axisValue(value, what));
	});
	return {
		width: host.clientWidth,
		height: host.clientHeight,
		legend: { show: false },
		padding: [8, right, 0, 0],
		tzDate: (at) => zone.value === "utc" ?
			uPlot.tzDate(new Date(at * 1000), "Etc/UTC") : new Date(at * 1000),
		cursor: {
			y: false,
			drag: { x: true, y: false, setScale: false, dist: 4 },
			points: current.lines.length > DOTS_MAX ? { show: false } : { size: 6, width: 1.5 },
			bind: { dblclick: () => null },
		},
		focus: { alpha: 0.15 },
		scales: {
			x: { time: true, range: [current.xs[0]!, end] },
			y: { range: (_, __, max) => [0, Math.max(max || 0, Y_MAX_MIN) * 1.12] },
		},
		axes: [
			{ ...axis, size: 22, gap: 3, space: 80, values: (plot, splits) =>
				axisTimes(splits, (plot.scales.x!.max! - plot.scales.x!.min!) /
					Math.max(1, plot.width - left - right) * TIME_HALF, plot.scales.x!.min!) },
			{ ...axis, size: left, gap: 6, space: 14, values: axisValues,
				...(what.kind === "bytes" ? { incrs: BYTE_STEPS } : {}) },
		],
		series: [
			{},
			...current.lines.map((line, index) => ({
				label: line.label,
				stroke: single ? paint.accent : paint.lines[colourOf(index)]!,
				width: 1.5,
				fill: single ? `${paint.accent}22` : undefined,
				points: {
					show: (_: uPlot, __: number, from: number, to: number) => to - from < 2,
					filter: (plot: uPlot, at: number, all: boolean) =>
						(all ? null : lonely(plot.data[at]!)),
					size: 5,
				},
			})),
		],
		hooks: {
			drawClear: [drawRanges],
			setCursor: [(plot) => onHover(hoverOf(plot))],
			setSelect: [(plot) => choose(plot, current)],
		},
	};
}

/* Points without a neighbour: no line leads to them. */
function lonely(values: ArrayLike<number | null | undefined>): number[] {
	const has = (at: number) => values[at] !== null && values[at] !== undefined;
	return Array.from(values, (_, at) => at).filter((at) => has(at) && !has(at - 1) && !has(at + 1));
}

/* What would stand under the 0 of the other axis, within `least` seconds from `begin`, is left out. */
function axisTimes(splits: number[], least: number, begin: number): string[] {
	const wide = splits.length > 1 && splits[1]! - splits[0]! >= 86400;
	const fine = splits.length > 1 && splits[1]! - splits[0]! < 60;
	return splits.map((at) => {
		const clock = clockTime(at * 1000);
		const text = fine ? clock : clock.slice(0, 5);
		if (at - begin < least)
			return "";
		return wide || text === "00:00" ? dayOf(at * 1000).slice(5) : text;
	});
}

/* The ranges of a comparison, under the lines. */
function drawRanges(plot: uPlot): void {
	if (place.value.view !== "compare")
		return;
	const style = getComputedStyle(plot.root);
	const now = Date.now();
	const { ctx, bbox } = plot;
	const sides = [["A", base.value.range, "--diff-less"], ["B", place.value.range, "--diff-more"]] as const;
	ctx.save();
	for (const [name, range, colour] of sides) {
		const { fromMs, toMs } = resolveRange(range, now);
		const left = Math.max(bbox.left, plot.valToPos(fromMs / 1000, "x", true));
		const right = Math.min(bbox.left + bbox.width, plot.valToPos(toMs / 1000, "x", true));
		ctx.fillStyle = style.getPropertyValue(colour).trim();
		ctx.globalAlpha = 0.25;
		ctx.fillRect(left, bbox.top, right - left, bbox.height);
		ctx.globalAlpha = 1;
		ctx.fillRect(left, bbox.top, right - left, 2 * devicePixelRatio);
		ctx.fillStyle = style.getPropertyValue("--text").trim();
		ctx.font = `600 ${11 * devicePixelRatio}px ${style.fontFamily}`;
		ctx.textBaseline = "top";
		ctx.fillText(name, left + 4 * devicePixelRatio, bbox.top + 4 * devicePixelRatio);
	}
	ctx.restore();
}

/* Which side's range a drag over the chart sets. */
const brushed = signal<"A" | "B">("B");

function setRange(range: TimeRange): void {
	if (place.value.view === "compare" && brushed.value === "A")
		go({ base: { matchers: base.value.matchers, range } });
	else
		go({ range });
}

function BrushChoice(): JSX.Element {
	return (
		<div class="tabs brushes" role="group" aria-label="Dragging over the chart sets the range of">
			<span class="muted">Drag sets</span>
			{(["A", "B"] as const).map((side) => (
				<button key={side} type="button" aria-pressed={brushed.value === side}
					aria-label={`Dragging sets the range of ${side}`}
					onClick={() => (brushed.value = side)}>
					{side}
				</button>
			))}
		</div>
	);
}

function choose(plot: uPlot, current: Chart): void {
	const { left, width } = plot.select;
	if (width < 4)
		return;
	const span = { fromMs: plot.posToVal(left, "x") * 1000, toMs: plot.posToVal(left + width, "x") * 1000 };
	plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
	setRange(absoluteRange(snapSpan(span, current.stepMs)));
}

function widen(): void {
	const now = Date.now();
	go({ range: absoluteRange(zoomOut(resolveRange(place.value.range, now), now)) });
}

function Plot({ onHover }: { onHover(hover: Hover): void }): JSX.Element {
	const host = useRef<HTMLDivElement>(null);
	const plot = useRef<uPlot | null>(null);
	const current = chart.value;
	const what = unit.value;
	const compared = place.value.view === "compare" && [place.value.range, base.value.range];
	const labels = current?.lines.map((line) => line.label);
	const shape = JSON.stringify([compared, labels, what.kind, dark.value, place.value.view, viewRight.value]);

	useEffect(() => {
		if (!current)
			return;
		const data = [current.xs, ...current.lines.map((line) => line.ys)] as uPlot.AlignedData;
		plot.current?.destroy();
		plot.current = new uPlot(optionsFor(host.current!, current, what, onHover), data, host.current!);
	}, [current, shape]);

	useEffect(() => {
		const lines = current?.lines ?? [];
		const only = lines.findIndex(({ label }) => label === alone.value);
		plot.current?.batch(() => lines.forEach((_, at) =>
			plot.current!.setSeries(at + 1, { show: only < 0 || at === only })));
	}, [current, shape, alone.value]);

	useEffect(() => {
		const line = current?.lines.findIndex(({ label }) => label === pointed.value) ?? -1;
		plot.current?.setSeries(line < 0 ? null : line + 1, { focus: line >= 0 });
	}, [current, shape, pointed.value]);

	useEffect(() => {
		const box = host.current!;
		const resizes = new ResizeObserver(() => {
			const { clientWidth: width, clientHeight: height } = box;
			if (plot.current && width && height)
				plot.current.setSize({ width, height });
		});
		resizes.observe(box);
		const view = document.querySelector(".view");
		const below = new ResizeObserver(() =>
			(viewRight.value = Math.round(view!.getBoundingClientRect().right)));
		if (view)
			below.observe(view);
		return () => {
			resizes.disconnect();
			below.disconnect();
			plot.current?.destroy();
			plot.current = null;
		};
	}, []);

	return <div class="plot" ref={host} onDblClick={widen} />;
}

function Keys({ hover }: { hover: Hover }): JSX.Element | null {
	const current = chart.value;
	if (!current || current.lines.length < 2)
		return null;
	const { index, near } = hover;
	return (
		<LineKeys current={current} near={near}
			valueOf={(line) => index < 0 && !isMeanTold.value ? ""
				: valueLabel(index < 0 ? line.mean : line.ys[index], unit.value)} />
	);
}

function Reading({ hover }: { hover: Hover }): JSX.Element {
	const current = chart.value;
	const lines = current?.lines ?? [];
	const only = lines.length === 1 ? lines[0]! : null;
	const at = current && hover.index >= 0 ? current.xs[hover.index]! * 1000 : 0;
	const near = at > 0 ? lines[hover.near] : undefined;
	return (
		<span class="strip-reading number">
			{near && !only && <span class={`swatch line-${colourOf(hover.near)}`} />}
			{near && !only && <span class="line-name">{near.label}</span>}
			{near && <b>{valueLabel(near.ys[hover.index], unit.value)}</b>}
			{at > 0 && <span class="muted">{clockTime(at)}</span>}
			{at === 0 && only && isMeanTold.value &&
				<span class="muted">mean {valueLabel(only.mean, unit.value)}</span>}
		</span>
	);
}

function SumBy(): JSX.Element {
	const labels = useSignal<string[]>(place.value.sumBy ? [place.value.sumBy] : []);
	const load = () => {
		loadLabelWords();
		fetchLabels(place.value.type, place.value.range).then((all) => (labels.value = all), () => undefined);
	};
	const options = useComputed(() => [
		{ value: "", label: "Total" }, ...labels.value.map(labelOption),
	]);
	return (
		<Picker label="Sum by" showLabel options={options.value} chosen={[place.value.sumBy]} class="quiet"
			onOpen={load} onChange={([sumBy]) => go({ sumBy: sumBy ?? "" })} />
	);
}

export function Strip(): JSX.Element {
	const hover = useSignal(NOWHERE);
	const open = stripOpen.value;
	return (
		<section class={`strip${open ? "" : " folded"}`} aria-label="Value over time">
			<div class="strip-head">
				<button type="button" class="icon-button fold" aria-expanded={open}
					aria-label={open ? "Fold the chart" : "Unfold the chart"}
					onClick={() => (stripOpen.value = !open)}>
					<Icon name={open ? "down" : "up"} />
				</button>
				{place.value.view === "compare" ? <BrushChoice /> : <SumBy />}
				<button type="button" class="icon-button" onClick={widen}
					aria-label="Widen the time range" title="Widen the time range">
					<Icon name="zoomout" />
				</button>
				<button type="button" class="zone" onClick={toggleZone}
					title={`Times are of ${zoneName()}; press for the other`}>
					{zone.value === "utc" ? "UTC" : "Local time"}
				</button>
				<Reading hover={hover.value} />
				{(chart.value?.lines.length ?? 0) > 1 && <LineSort current={chart.value}
					at={hover.value.index < 0 ? 0 : chart.value!.xs[hover.value.index]! * 1000} />}
			</div>
			<div class="strip-body">
				<Plot onHover={(next) => (hover.value = next)} />
				<Keys hover={hover.value} />
			</div>
		</section>
	);
}
