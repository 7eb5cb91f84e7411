// SPDX-License-Identifier: Apache-2.0
/* tools - views, search, grouping, colours; below them the path to the zoomed frame and the legend. */
import { signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { fetchLabels } from "../../data/api";
import type { ColourBy, Demangle, View } from "../../model/place";
import { counted, formatPercent, formatRate, formatSamples, formatValue } from "../../model/quantity";
import { shorten } from "../../model/shortname";
import { largestOf } from "../../model/top";
import { go, place, selector } from "../../state/place";
import { paneOpen } from "../../state/preferences";
import { canShow, isLocal, shown as shownFile } from "../../state/local";
import { colouring, focus, highlighted, matches, pattern, walkMatches, zoomTo } from "../../state/reading";
import { labelOption, loadLabelWords } from "../../state/label_words";
import { profile, seconds, unit } from "../../state/session";
import { toggleInverted, toggleUpright } from "../../state/transforms";
import { AddFilter } from "../filters/filter_row";
import { Icon } from "../../kit/icons";
import { lazy } from "../../kit/lazy";
import { Picker } from "../../kit/picker";
import { Popover } from "../../kit/popover";
import { Share } from "../share/share_button";

export const VIEWS: { view: View; title: string; key: string }[] = [
	{ view: "flame", title: "Flame graph", key: "1" },
	{ view: "table", title: "Table", key: "2" },
	{ view: "sandwich", title: "Sandwich", key: "3" },
	{ view: "compare", title: "Compare", key: "4" },
	{ view: "timeline", title: "Timeline", key: "5" },
	{ view: "heatmap", title: "Heatmap", key: "6" },
	{ view: "callgraph", title: "Call graph", key: "7" },
];

const Crumbs = lazy(() => import("./crumbs").then((view) => view.Crumbs));
const CompareSummary = lazy(() => import("../compare/compare").then((view) => view.CompareSummary));

const COLOURS: { value: ColourBy; label: string }[] = [
	{ value: "binary", label: "Binary" },
	{ value: "package", label: "Package" },
	{ value: "file", label: "Source file" },
	{ value: "kind", label: "Language" },
	{ value: "function", label: "Function" },
];

const NAMES: { value: Demangle; label: string; hint?: string }[] = [
	{ value: "full", label: "Full", hint: "box<int>::put(int)" },
	{ value: "templates", label: "No parameters", hint: "box<int>::put" },
	{ value: "simple", label: "Simple", hint: "box::put" },
	{ value: "none", label: "As in the binary", hint: "_ZN3boxIiE3putEi" },
];

/* A comparison's tree is another one: a zoom into it means nothing elsewhere. */
export function showView(view: View): void {
	if (!canShow(view))
		return;
	const other = (view === "compare") !== (place.value.view === "compare");
	go(other ? { view, zoom: "" } : { view });
}

function ViewTabs(): JSX.Element {
	return (
		<div class="tabs" role="group" aria-label="View">
			{VIEWS.map(({ view, title, key }) => (
				<button key={view} type="button" disabled={!canShow(view)}
					title={canShow(view) ? `${title} (${key})`
						: `${title} needs a server: a file has neither times nor binaries`}
					aria-pressed={place.value.view === view} onClick={() => showView(view)}>
					{title}
				</button>
			))}
		</div>
	);
}

function SearchResult(): JSX.Element | null {
	const compiled = pattern.value;
	if (compiled.kind === "invalid")
		return <span class="search-result wrong" role="alert">{compiled.reason}</span>;
	const found = matches.value;
	if (!found || !profile.value)
		return null;
	if (!found.nodeCount)
		return <span class="search-result muted" role="status">no match</span>;
	return (
		<span class="search-result" role="status" title="Stacks with a match, each counted once">
			<b class="number">{formatPercent(found.value, profile.value.total[0]!)}</b>
		</span>
	);
}

/* What the search found, where there is room for it. */
function Found(): JSX.Element | null {
	const found = matches.value;
	if (!found?.nodeCount)
		return null;
	return (
		<span class="found number" title="Stacks with a match, each counted once">
			{counted(found.functionCount, "function")} in {counted(found.nodeCount, "frame")}
			{" "}
			<span class="muted">{found.nodeCount === 1 ? "matches" : "match"}: </span>
			<b>{formatPercent(found.value, profile.value!.total[0]!)}</b>
		</span>
	);
}

function Search(): JSX.Element {
	const input = useRef<HTMLInputElement>(null);
	const { search } = place.value;
	const key = (event: KeyboardEvent) => {
		if (event.isComposing)
			return;
		if (event.key === "Enter") {
			const node = walkMatches(event.shiftKey ? -1 : 1);
			if (node >= 0)
				zoomTo(node);
		} else if (event.key === "Escape") {
			go({ search: "" }, "replace");
			input.current!.blur();
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	};
	const none = !matches.value?.nodeCount;
	return (
		<div class={`search${pattern.value.kind === "invalid" ? " invalid" : ""}`} role="search">
			<Icon name="search" />
			<input ref={input} id="search" type="text" placeholder="Search, or /regex/"
				aria-label="Search functions" spellcheck={false} autocomplete="off"
				value={search} onKeyDown={key}
				onInput={(event) => go({ search: event.currentTarget.value }, "replace")} />
			<SearchResult />
			{search && <>
				<button type="button" class="icon-button" aria-label="Previous match"
					title="Previous match (N)" disabled={none} onClick={() => walkMatches(-1)}>
					<Icon name="up" />
				</button>
				<button type="button" class="icon-button" aria-label="Next match"
					title="Next match (n)" disabled={none} onClick={() => walkMatches(1)}>
					<Icon name="down" />
				</button>
				<button type="button" class="icon-button" aria-label="Clear the search"
					onClick={() => go({ search: "" }, "replace")}>
					<Icon name="close" />
				</button>
			</>}
		</div>
	);
}

let ungroupedZoom = "";

function GroupBy(): JSX.Element {
	const labels = useSignal<string[]>([]);
	const load = () => {
		loadLabelWords();
		if (isLocal.value) {
			labels.value = shownFile.value?.facts.labels ?? [];
			return;
		}
		fetchLabels(selector.value, place.value.range).then((all) => (labels.value = all), () => undefined);
	};
	const { groupBy, zoom } = place.value;
	/* A zoom is of one grouping; back without any, it is the former one again. */
	const change = (chosen: string[]) => {
		if (!groupBy.length)
			ungroupedZoom = zoom;
		go({ groupBy: chosen, zoom: chosen.length ? "" : ungroupedZoom });
	};
	const options = [...new Set([...groupBy, ...labels.value])].sort().map(labelOption);
	return (
		<Picker label="Group by" showLabel multiple options={options} chosen={groupBy} none="none" class="quiet"
			empty={isLocal.value ? "The file has no labels." : "No labels in this range."} onOpen={load}
			onChange={change} />
	);
}

function Direction(): JSX.Element | null {
	const { view, inverted, upright } = place.value;
	if (view === "sandwich")
		return null;
	return (
		<>
			{view !== "compare" && (
				<button type="button" class="icon-button" aria-pressed={inverted} aria-label="Invert"
					title="Invert: functions first, their callers below (i)"
					onClick={toggleInverted}>
					<Icon name="invert" />
				</button>
			)}
			{view !== "table" && (
				<button type="button" class="icon-button"
					aria-pressed={upright} aria-label="Roots at the bottom"
					title="Roots at the bottom (u)" onClick={toggleUpright}>
					<Icon name="upright" />
				</button>
			)}
		</>
	);
}

/* There when an interpreter's frames are folded, or are shown because the reader wants them. */
function Runtimes(): JSX.Element | null {
	const { runtimes } = place.value;
	if (!runtimes && !profile.value?.folded)
		return null;
	return (
		<button type="button" class="control"
			aria-pressed={runtimes}
			title="Interpreters' own frames; hidden, their cost counts for what they run"
			onClick={() => go({ runtimes: !runtimes, zoom: "" })}>
			C frames
		</button>
	);
}

function ColourPicker(): JSX.Element {
	return (
		<Picker label="Colour" showLabel options={COLOURS} chosen={[place.value.colourBy]}
			class="quiet colour-picker"
			onChange={([chosen]) => go({ colourBy: chosen as ColourBy }, "replace")} />
	);
}

/* Boxes are found again by their names: another mode is another picture. */
function NamesPicker(): JSX.Element {
	return (
		<Picker label="Names" showLabel options={NAMES} chosen={[place.value.demangle]}
			class="quiet names-picker"
			onChange={([chosen]) => go({ demangle: chosen as Demangle, zoom: "" })} />
	);
}

/* A window so narrow has no room for what is not used all the time. */
const NARROW = matchMedia("(max-width: 520px)");
const narrow = signal(NARROW.matches);
NARROW.addEventListener("change", () => (narrow.value = NARROW.matches));

function Controls(): JSX.Element {
	return (
		<>
			<GroupBy />
			<AddFilter />
			<Runtimes />
			<Direction />
			{place.value.view !== "compare" && <ColourPicker />}
			{!isLocal.value && <NamesPicker />}
			<Share />
			<button type="button" class="icon-button pane-toggle" aria-pressed={paneOpen.value}
				aria-label="Side pane" title="Side pane (p)"
				onClick={() => (paneOpen.value = !paneOpen.value)}>
				<Icon name="pane" />
			</button>
		</>
	);
}

function FoldedControls(): JSX.Element {
	const [open, setOpen] = useState(false);
	const close = useCallback(() => setOpen(false), []);
	return (
		<Popover open={open} onClose={close} class="tools-fold" button={
			<button type="button" class="control" id="tools-fold" aria-haspopup="dialog"
				aria-expanded={open} onClick={() => setOpen(!open)}>
				Tools<Icon name="chevron" />
			</button>
		}>
			<div class="tools-folded" role="dialog" aria-label="Tools"><Controls /></div>
		</Popover>
	);
}

export function Tools(): JSX.Element {
	return (
		<div class="tools">
			<ViewTabs />
			<Search />
			{narrow.value ? <FoldedControls /> : <span class="tools-end"><Controls /></span>}
		</div>
	);
}

function Sum(): JSX.Element {
	const current = profile.value!;
	const value = current.total[focus.value]!;
	const parts = [
		formatRate(unit.value, value, seconds.value),
		formatValue(unit.value, value),
		formatSamples(unit.value, value),
		focus.value ? formatPercent(value, current.total[0]!) : "",
	];
	return (
		<span class="sum number">
			{parts.filter(Boolean).map((part, index) =>
				index ? <span key={index}>{part}</span> : <b key={index}>{part}</b>)}
		</span>
	);
}

/* What the whole is made of, before anything is zoomed to. */
function Largest(): JSX.Element {
	const parts = largestOf(profile.value!);
	const whole = profile.value!.total[0]!;
	return (
		<span class="largest" title={parts.map(({ name }) => name).join(", ")}>
			{parts.length > 0 && <span class="muted">mostly </span>}
			{parts.map(({ name, value }, index) => (
				<span key={name}>
					{index > 0 && ", "}<b>{shorten(name, 28)}</b>
					{" "}<span class="number muted">{formatPercent(value, whole)}</span>
				</span>
			))}
		</span>
	);
}

function LegendItems({ of: total }: { of: number }): JSX.Element {
	return (
		<>
			{colouring.value!.categories.map((category, index) => (
				<li key={category.key} title={category.key.replace(/^\w+:/, "")}
					onPointerEnter={() => (highlighted.value = index)}
					onPointerLeave={() => (highlighted.value = -1)}>
					<span class={`swatch frame-${category.slot}`} />
					<span class="legend-name">{category.label}</span>
					<span class="number muted">{formatPercent(category.value, total)}</span>
				</li>
			))}
		</>
	);
}

/* The heaviest, as many as have room in one row; a button says how many have none, and lists them all. */
function Legend(): JSX.Element | null {
	const colours = colouring.value;
	const row = useRef<HTMLUListElement>(null);
	const [hidden, setHidden] = useState(0);
	const [open, setOpen] = useState(false);
	const close = useCallback(() => setOpen(false), []);
	const isShown = colours && colours.categories.length > 0 && place.value.view === "flame";
	useLayoutEffect(() => {
		const list = row.current;
		if (!list)
			return;
		const count = () => {
			const items = [...list.children] as HTMLElement[];
			setHidden(items.filter(({ offsetTop }) => offsetTop > items[0]!.offsetTop).length);
		};
		count();
		const watch = new ResizeObserver(count);
		watch.observe(list);
		return () => watch.disconnect();
	}, [colours, isShown]);
	if (!isShown)
		return null;
	const total = profile.value!.total[0]!;
	const title = `Colours by ${COLOURS.find(({ value }) => value === colours.by)!.label.toLowerCase()}`;
	return (
		<>
			<ul class="legend" ref={row} aria-label={`${title}, with the share of self time`}>
				<LegendItems of={total} />
			</ul>
			{hidden > 0 && (
				<Popover open={open} onClose={close} button={
					<button type="button" class="legend-more number" aria-expanded={open}
						aria-label={`All colours: ${hidden} more`} title="All colours"
						onClick={() => setOpen(!open)}>
						+{hidden}
					</button>
				}>
					<ul class="legend-all" aria-label={`All ${title.toLowerCase()}`}>
						<LegendItems of={total} />
					</ul>
				</Popover>
			)}
		</>
	);
}

export function PathRow(): JSX.Element {
	const compared = profile.value?.sides;
	return (
		<div class="path-row">
			{profile.value && profile.value.total[0] !== 0 && !compared && (
				<>
					<Sum />
					{focus.value ? <Crumbs /> : !matches.value?.nodeCount && <Largest />}
					<Found />
					<Legend />
				</>
			)}
			{compared && <>{focus.value > 0 && <Crumbs />}<CompareSummary /></>}
		</div>
	);
}
