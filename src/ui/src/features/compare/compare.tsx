// SPDX-License-Identifier: Apache-2.0
/* compare - the parts around the graph of a comparison: the choice of A, the summary, the table of changes. */
import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { fetchLabels, fetchSeries } from "../../data/api";
import {
	type FunctionChange, type Mode, STEPS, changeOf, changeWords, functionChanges, mainCause,
} from "../../model/compare";
import { formatPercent, formatPerSecond } from "../../model/quantity";
import { withMatcher } from "../../model/selector";
import { type Verdict, isShown, partVerdict, totalVerdict, verdictOf } from "../../model/verdicts";
import { earlier } from "../../model/timerange";
import { Icon } from "../../kit/icons";
import { Picker } from "../../kit/picker";
import { QueryBar } from "../query/query_bar";
import { RangePicker } from "../query/range_picker";
import { VirtualTable, type Column } from "../../kit/virtual_table";
import { VERDICT_WORDS, formatDelta, formatMeasured } from "../../state/changes";
import { base, baseSelector, go, place } from "../../state/place";
import { matches, selectFunction, selectedFunction, widestOf, zoomTo } from "../../state/reading";
import { profile, query, unit } from "../../state/session";
import { verdicts } from "../../state/verdicts";

const MODES: { value: Mode; label: string; hint: string }[] = [
	{ value: "rate", label: "Per second", hint: "ranges of any length" },
	{ value: "share", label: "Share of total", hint: "whatever the load" },
	{ value: "raw", label: "As recorded", hint: "ranges of one length" },
];

/* Of what does not add up over time, as memory in use: a mean of what was recorded. */
const STATE_MODES = [{ ...MODES[0]!, label: "Mean", hint: "of what was recorded" }, MODES[1]!];

const HOUR = 3600_000;
const TIMES: { value: string; label: string; ms: number | null }[] = [
	{ value: "before", label: "The time before", ms: null },
	{ value: "hour", label: "An hour before", ms: HOUR },
	{ value: "day", label: "A day before", ms: 24 * HOUR },
	{ value: "week", label: "A week before", ms: 7 * 24 * HOUR },
];

function compareToTime(ms: number | null): void {
	const { matchers, range } = place.value;
	go({ base: ms === null ? null : { matchers, range: earlier(range, ms, Date.now()) }, zoom: "" });
}

function swap(): void {
	const { matchers, range } = place.value;
	go({ matchers: base.value.matchers, range: base.value.range, base: { matchers, range }, zoom: "" });
}

const withLabel = (matchers: string, name: string, value: string) =>
	withMatcher(matchers, { name, op: "=", value });

const VERSIONS_RANGE = { from: "now-30d", to: "now" };

/* B is the value of the label that was seen last, A the one before it, each over all its time. */
async function compareVersions(label: string): Promise<void> {
	const { type, matchers } = place.value;
	const answer = await fetchSeries(query.value.query, VERSIONS_RANGE, HOUR, label);
	const seen = answer.series
		.map(({ labels, points }) => ({
			value: labels[label] ?? "",
			from: points[0]?.[0] ?? 0,
			to: (points[points.length - 1]?.[0] ?? 0) + HOUR,
		}))
		.filter(({ value }) => value)
		.sort((a, b) => b.from - a.from || b.to - a.to);
	const [newest, before] = seen;
	if (!newest || !before || type !== place.value.type) {
		note.value = `${label} has ${seen.length === 1 ? "one value" : "no values"} in the last 30 days.`;
		return;
	}
	note.value = "";
	const rangeOf = ({ from, to }: typeof newest) => ({ from: String(from), to: String(Math.min(to, Date.now())) });
	go({
		matchers: withLabel(matchers, label, newest.value), range: rangeOf(newest),
		base: { matchers: withLabel(matchers, label, before.value), range: rangeOf(before) }, zoom: "",
	});
}

const note = signal("");
const labels = signal<string[]>([]);

function Presets(): JSX.Element {
	const load = () => {
		fetchLabels(query.value.query, place.value.range)
			.then((all) => (labels.value = all), () => undefined);
	};
	const telling = (label: string) => (/version|release|revision|commit|image|build/i.test(label) ? 0 : 1);
	const options = [
		...TIMES.map(({ value, label }) => ({ value, label })),
		...labels.value.slice().sort((a, b) => telling(a) - telling(b))
			.map((label) => ({ value: `label:${label}`, label: `The ${label} before`, hint: "label" })),
	];
	const choose = ([chosen]: string[]) => {
		note.value = "";
		if (chosen!.startsWith("label:"))
			compareVersions(chosen!.slice(6)).catch((error: Error) => (note.value = error.message));
		else
			compareToTime(TIMES.find(({ value }) => value === chosen)!.ms);
	};
	return (
		<Picker label="Compare to" showLabel class="compare-to" options={options}
			chosen={place.value.base ? [] : ["before"]} none="…" onOpen={load} onChange={choose} />
	);
}

export function CompareBar(): JSX.Element {
	const { matchers, range } = base.value;
	return (
		<section class="compare-bar" aria-label="What is compared to">
			<b class="side side-a" title="What it was">A</b>
			<QueryBar id="base-query" label={`Label filter of A for ${baseSelector.value}`}
				matchers={matchers}
				onApply={(next) => go({ base: { matchers: next, range }, zoom: "" })} />
			<RangePicker id="base-range" label="Time range of A" range={range}
				onChange={(next) => go({ base: { matchers, range: next } })} />
			<Presets />
			<button type="button" class="control" onClick={swap} title="Swap A and B">
				<Icon name="swap" /><span>Swap</span>
			</button>
			<Picker label="Values" showLabel class="quiet" chosen={[place.value.mode]}
				options={unit.value.delta ? MODES : STATE_MODES}
				onChange={([mode]) => go({ mode: mode as Mode })} />
			{note.value && <span class="compare-note" role="status">{note.value}</span>}
		</section>
	);
}

const rows = computed(() =>
	profile.value?.sides ? functionChanges(profile.value, place.value.mode) : []);

const verdictOfRow = (row: FunctionChange) => verdictOf(verdicts.value, profile.value!, row.name);

function Delta({ row, part }: { row: FunctionChange; part: "self" | "total" }): JSX.Element {
	const { mode } = place.value;
	const change = row[part];
	const shown = (value: number) => formatMeasured(unit.value, mode, value);
	const direction = change.delta > 0 ? "more" : change.delta < 0 ? "less" : "same";
	const isSure = isShown(partVerdict(verdicts.value, profile.value!, row.name, part));
	return (
		<span class={isSure ? `change-${direction}` : "noise"}
			title={`A ${shown(change.a)}, B ${shown(change.b)}`}>
			{formatDelta(unit.value, mode, change.delta)}
		</span>
	);
}

/* What comes first, and what the column says; "none" says nothing: all changes are as they are. */
const SURE: Record<Verdict, { rank: number; word: string }> = {
	sure: { rank: 2, word: "yes" }, none: { rank: 2, word: "" }, pending: { rank: 2, word: "…" },
	noise: { rank: 1, word: "noise" }, untested: { rank: 0, word: "–" },
};

function Sure({ row }: { row: FunctionChange }): JSX.Element {
	const verdict = verdictOfRow(row);
	const p = verdicts.value?.byName.get(row.name)?.p;
	const why = p === undefined ? VERDICT_WORDS[verdict] : `p = ${p.toPrecision(2)}`;
	return <span class={verdict === "sure" ? "" : "muted"} title={why}>{SURE[verdict].word}</span>;
}

const columns: Column<FunctionChange>[] = [
	{
		key: "name", title: "Function", value: (row) => row.name,
		cell: (row) => <span class="mono" title={row.name}>{row.name}</span>,
	},
	{
		key: "delta-self", title: "Δ self", number: true, hint: "Change of the function's own value, B − A",
		value: (row) => Math.abs(row.self.delta),
		cell: (row) => <Delta row={row} part="self" />,
	},
	{
		key: "delta-total", title: "Δ total", number: true, hint: "Change with everything it calls, B − A",
		value: (row) => Math.abs(row.total.delta),
		cell: (row) => <Delta row={row} part="total" />,
	},
	{
		key: "ratio", title: "Change", number: true, hint: "Of the total, relative to A",
		value: (row) => (row.total.ratio === Infinity ? Number.MAX_VALUE : row.total.ratio),
		cell: (row) => changeWords(row.total),
	},
	{
		key: "certain", title: "Sure", hint: "Whether it is more than noise",
		value: (row) => SURE[verdictOfRow(row)].rank,
		cell: (row) => <Sure row={row} />,
	},
];

export function ChangesTable(): JSX.Element | null {
	const current = profile.value;
	if (!current?.sides)
		return null;
	const found = matches.value;
	const open = ({ fn }: FunctionChange) => zoomTo(widestOf(current, fn));
	return (
		<VirtualTable label="Changes" class="changes" columns={columns} sortedBy="delta-self"
			firstBy={(row) => SURE[verdictOfRow(row)].rank}
			rows={found ? rows.value.filter(({ fn }) => found.functions[fn]) : rows.value}
			keyOf={({ fn }) => fn} selected={selectedFunction.value}
			onSelect={({ fn }) => selectFunction(fn)} onOpen={open} />
	);
}

/* What of the change is in which function; with its own verdict, as the table has it. */
function Cause({ delta, mode }: { delta: number; mode: Mode }): JSX.Element | null {
	const cause = mainCause(mode === place.value.mode ? rows.value : functionChanges(profile.value!, mode), delta);
	if (!cause)
		return null;
	const part = Math.abs(cause.self.delta / delta);
	const verdict = verdictOfRow(cause);
	return (
		<>
			; {part <= 1 ? `${formatPercent(part, 1)} of it` : "most"} in <code>{cause.name}</code>
			{(verdict === "noise" || verdict === "untested") && ` (${VERDICT_WORDS[verdict]})`}
		</>
	);
}

const MOVED_MAX = 3;

/* The functions that changed for sure, though all values together may be what they were. */
function Moved(): JSX.Element | null {
	const verdict = totalVerdict(verdicts.value, profile.value!);
	if (verdict === "pending")
		return <span class="muted"> Checking what is more than noise…</span>;
	if (verdict === "none")
		return null;
	const sure = rows.value.filter((row) => verdictOfRow(row) === "sure");
	/* What a function did itself says where; only when none is sure, what it did with its callees. */
	const changed = (part: "self" | "total") => sure
		.filter((row) => partVerdict(verdicts.value, profile.value!, row.name, part) === "sure")
		.map((row) => {
			const change = row[part], words = changeWords(change);
			/* The column "Change" is of the total: what is of the function alone is called so. */
			const of = words === changeWords(row.total) ? "" : " itself";
			return { fn: row.fn, name: row.name, change, words, of };
		});
	const own = changed("self");
	const moved = (own.length ? own : changed("total"))
		.sort((a, b) => Math.abs(b.change.delta) - Math.abs(a.change.delta)).slice(0, MOVED_MAX);
	const later = verdicts.value?.isPending && <span class="muted"> Other names are still being read.</span>;
	if (!moved.length)
		return <>{!later && " No function changed by more than noise."}{later}</>;
	return (
		<>
			{" "}Surely changed:{" "}
			{moved.map(({ fn, name, of, words }, index) => (
				<span key={fn}>
					{index > 0 && ", "}<code>{name}</code>{of} {words}
				</span>
			))}
			{sure.length > moved.length && ` and ${sure.length - moved.length} more`}.{later}
		</>
	);
}

function Sentence(): JSX.Element | null {
	const current = profile.value;
	if (!current?.sides)
		return null;
	const sides = current.sides;
	const [a, b] = sides;
	const rated: Mode = place.value.mode === "share" ? "rate" : place.value.mode;
	const whole = changeOf(sides, a.total[0]!, b.total[0]!, rated);
	if (!a.total[0] || !b.total[0])
		return <span>{a.total[0] ? "B" : "A"} has no data: everything is {a.total[0] ? "gone" : "new"}.</span>;
	const size = rated === "rate" && unit.value.delta ? formatPerSecond(unit.value, Math.abs(whole.delta))
		: formatMeasured(unit.value, rated, Math.abs(whole.delta));
	if (Math.abs(whole.ratio) < 5e-4)
		return <span>A and B use the same: {formatMeasured(unit.value, rated, whole.b)}.<Moved /></span>;
	const total = totalVerdict(verdicts.value, current);
	return (
		<span>
			B uses <b>{size} {whole.delta > 0 ? "more" : "less"}</b> than A
			({formatMeasured(unit.value, rated, whole.a)} →{" "}
			{formatMeasured(unit.value, rated, whole.b)},{" "}
			{changeWords(whole)})
			{total === "noise" ? ", which may be noise" : <Cause delta={whole.delta} mode={rated} />}.
			<Moved />
		</span>
	);
}

export function CompareSummary(): JSX.Element {
	const ends = ["less", "more"] as const;
	return (
		<div class="compare-summary">
			<p class="sentence"><Sentence /></p>
			<ul class="legend change-legend" tabIndex={0} aria-label="Colours: change from A to B">
				{ends.map((end) => (
					<li key={end}>
						<span class={`swatch diff-${end}`} />
						<span>{end === "more" ? "▲ more" : "▼ less"}</span>
					</li>
				))}
				<li>
					<span class="swatch diff-same" />
					<span>within {100 * STEPS[0]} %, noise, or not tested</span>
				</li>
				<li><span class="swatch diff-hatched" /><span>new, gone</span></li>
			</ul>
		</div>
	);
}
