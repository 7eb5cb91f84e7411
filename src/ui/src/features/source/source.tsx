// SPDX-License-Identifier: Apache-2.0
/* source - a function's source or machine code, with its values per line as heat. */
import { computed, effect, signal, untracked, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import {
	ApiError, type InstructionsAnswer, type LinesAnswer, type TreeQuery, fetchInstructions, fetchLines, fetchSource,
} from "../../data/api";
import { formatPercent } from "../../model/quantity";
import { sourceRows, sourceUpload, type SourceRow } from "../../model/source";
import { type Profile, functionName, isRecursive } from "../../model/profile";
import { Copy } from "../../kit/copy";
import { Picker } from "../../kit/picker";
import { isLocal } from "../../state/local";
import { Find, foundRow, sought } from "./source_find";
import { paneOpen, paneTab } from "../../state/preferences";
import { selectedFunction } from "../../state/reading";
import { profile, query } from "../../state/session";

const LINE = 18;
const MARGIN = 12;

type What = "source" | "code";
type Heat = "self" | "total";

const NO_LINES = "The program has no debug information that says which lines of source it is made of, so this is its " +
	"machine code.";

interface Answer {
	name: string;
	lines?: LinesAnswer;
	code?: InstructionsAnswer;
}

interface Shown {
	name: string;
	what: What;
	title: string;
	rows: SourceRow[];
	/* What rows are as warm as, and the warmest, which is shown first. */
	heat: Heat;
	hot: number;
	/* What shares are of. */
	total: number;
	/* Why there is no text, with the remedy. */
	note: string;
}

const what = signal<What>("source");
/* Which of several files, or binaries, of the function. */
const chosen = signal(0);
const answer = signal<Answer | null>(null);
const shown = signal<Shown | null>(null);
const failure = signal("");

const wanted = computed(() => {
	const fn = selectedFunction.value;
	/* Nothing is asked while nobody looks. */
	if (!paneOpen.value || paneTab.value !== "source" || isLocal.value)
		return "";
	/* A new profile numbers its functions anew; the selection follows it a moment later. */
	const current = profile.peek();
	return current && fn ? functionName(current, fn) : "";
});

async function fetchAnswer(name: string, kind: What, asked: TreeQuery, stop: AbortSignal): Promise<Answer> {
	if (kind === "code")
		return { name, code: await fetchInstructions(asked, name, stop) };
	const lines = await fetchLines(asked, name, stop);
	/* Without debug information there is machine code at least. */
	const isBare = !lines.files.some(({ file }) => file);
	return isBare ? { name, lines, code: await fetchInstructions(asked, name, stop) } : { name, lines };
}

function show(next: Answer): void {
	failure.value = "";
	if (answer.peek()?.name !== next.name)
		chosen.value = 0;
	answer.value = next;
}

const request = computed(() => JSON.stringify([wanted.value, what.value, query.value]));

/*
 * Another function or query aborts what is under way. New data of the same does not: a live page
 * has new data every few seconds, and on a slow server it would never have an answer.
 */
effect(() => {
	void request.value;
	const [name, kind, asked] = untracked(() => [wanted.value, what.value, query.value] as const);
	if (!name)
		return;
	const stop = new AbortController();
	let isAsking = false;
	const ask = async (of: Profile | null) => {
		isAsking = true;
		try {
			const next = await fetchAnswer(name, kind, asked, stop.signal);
			if (!stop.signal.aborted)
				show(next);
		} catch (error) {
			if (!stop.signal.aborted)
				failure.value = (error as Error).message;
		}
		isAsking = false;
		if (!stop.signal.aborted && profile.peek() !== of)
			void ask(profile.peek());
	};
	const unsubscribe = profile.subscribe((current) => {
		if (!isAsking)
			void ask(current);
	});
	return () => {
		unsubscribe();
		stop.abort();
	};
});

const texts = new Map<string, Promise<string>>();

function textOf(buildId: string, file: string): Promise<string> {
	const key = `${buildId} ${file}`;
	let text = texts.get(key);
	if (!text) {
		text = fetchSource(buildId, file);
		text.catch(() => texts.delete(key));
		texts.set(key, text);
	}
	return text;
}

/*
 * Where a function calls itself, the call's total is nearly everything, whatever the lines below it
 * cost: such a function's heat is of what its lines do themselves, and that of instructions always.
 */
function heatOf(kind: What, name: string, rows: readonly SourceRow[]): Heat {
	const own = kind === "code" || (profile.peek() !== null && isRecursive(profile.peek()!, name));
	return own && rows.some(({ self }) => self > 0) ? "self" : "total";
}

function hottest(rows: readonly SourceRow[], heat: Heat): number {
	return rows.reduce((best, row, index) => (row[heat] > (rows[best]?.[heat] ?? 0) ? index : best), 0);
}

effect(() => {
	const current = answer.value;
	const entry = current?.lines?.files[chosen.value] ?? current?.lines?.files[0];
	if (!current?.lines || !entry || current.code)
		return;
	const { name, lines } = current;
	let stale = false;
	const base = { name, what: "source" as const, total: lines.total };
	const show = (text: string | null, note: string) => {
		if (stale)
			return;
		const rows = sourceRows(text, entry.lines);
		const heat = heatOf("source", name, rows);
		const hot = hottest(rows, heat);
		shown.value = { ...base, title: entry.file || entry.mapping, rows, heat, hot, note };
	};
	const missing = (error: Error) => {
		const command = sourceUpload(new URL(".", document.baseURI).href, entry.file, entry.mapping);
		const known = error instanceof ApiError && error.status === 404;
		const remedy = ` Build ID ${entry.build_id}. Send it: \`${command}\``;
		show(null, known ? error.message + remedy : error.message);
	};
	if (entry.file && entry.build_id)
		textOf(entry.build_id, entry.file).then((text) => show(text, ""), missing);
	else
		show(null, "The program has no debug information that says which lines it is made of.");
	return () => {
		stale = true;
	};
});

effect(() => {
	const current = answer.value;
	if (!current?.code)
		return;
	const part = current.code.parts[chosen.value] ?? current.code.parts[0];
	const rows = (part?.instructions ?? []).map((each) => ({
		line: each.address, text: each.text, self: each.self, total: each.total,
		origin: each.file && each.line ? `${each.file.slice(each.file.lastIndexOf("/") + 1)}:${each.line}` : "",
	}));
	const bare = (part?.addresses ?? [])
		.map(([line, self, total]) => ({ line, text: "", self, total, origin: "" }));
	const all = rows.length ? rows : bare;
	const reason = part ? part.reason ?? "" : "No machine code of it is known.";
	const heat = heatOf("code", current.name, all);
	shown.value = {
		name: current.name, what: "code", title: part?.mapping ?? "", rows: all, heat, hot: hottest(all, heat),
		total: current.code.total, note: current.lines ? `${NO_LINES} ${reason}` : reason,
	};
});

/* What to do is between backquotes. */
function Note({ text }: { text: string }): JSX.Element | null {
	const [before, command, after] = text.split("`");
	return text ? (
		<p class="no-symbols source-note" role="note">
			{before}{command && <><code>{command}</code><Copy text={command} what="command" /></>}{after}
		</p>
	) : null;
}

function Text({ current }: { current: Shown }): JSX.Element {
	const box = useRef<HTMLDivElement>(null);
	const scroll = useSignal(0);
	const height = useSignal(600);
	useEffect(() => {
		const element = box.current!;
		const resizes = new ResizeObserver(() => (height.value = element.clientHeight));
		resizes.observe(element);
		return () => resizes.disconnect();
	}, []);
	useEffect(() => {
		box.current!.scrollTop = Math.max(0, (current.hot - 8) * LINE);
	}, [current.name, current.title, current.what]);
	useEffect(() => {
		const element = box.current!;
		const y = foundRow.value * LINE;
		const { scrollTop, clientHeight } = element;
		if (foundRow.value >= 0 && (y < scrollTop || y + LINE > scrollTop + clientHeight))
			element.scrollTop = y - Math.floor(clientHeight / 3);
	}, [foundRow.value]);
	const { rows, total } = current;
	const { value: test } = sought;
	const mark = (row: SourceRow, index: number) =>
		(index === foundRow.value ? " found at" : test?.(row.text) ? " found" : "");
	const most = rows[current.hot]?.[current.heat] ?? 0;
	const first = Math.max(0, Math.floor(scroll.value / LINE) - MARGIN);
	const last = Math.min(rows.length, Math.ceil((scroll.value + height.value) / LINE) + MARGIN);
	const heat = ({ [current.heat]: value }: SourceRow) => (value ? Math.max(1, Math.ceil((5 * value) / most)) : 0);
	return (
		<div class={`source ${current.what}`} ref={box} tabIndex={0} role="table"
			aria-label={`${current.what === "code" ? "Machine code" : "Source"} of ${current.name}`}
			aria-rowcount={rows.length} onScroll={() => (scroll.value = box.current!.scrollTop)}>
			<div role="presentation" style={{ height: `${first * LINE}px` }} />
			{rows.slice(first, last).map((row, index) => (
				<div key={first + index} role="row" aria-rowindex={first + index + 1}
					class={`source-line heat-${heat(row)}${mark(row, first + index)}`}>
					<span class="number source-value" role="cell">
						{row.self > 0 && formatPercent(row.self, total)}
					</span>
					<span class="number source-value" role="cell">
						{row.total > 0 && formatPercent(row.total, total)}
					</span>
					<span class="number source-number" role="cell">{row.line}</span>
					<span class="source-text" role="cell">{row.text}</span>
					{row.origin && <span class="source-origin" role="cell">{row.origin}</span>}
				</div>
			))}
			<div role="presentation" style={{ height: `${(rows.length - last) * LINE}px` }} />
		</div>
	);
}

function Places(): JSX.Element | null {
	const places = answer.value?.code?.parts.map(({ mapping }) => mapping) ??
		answer.value?.lines?.files.map(({ file, mapping }) => file || mapping) ?? [];
	if (places.length < 2)
		return null;
	const options = places.map((place, index) => ({
		value: String(index), label: place.slice(place.lastIndexOf("/") + 1), hint: place,
	}));
	return (
		<Picker label="In" showLabel class="quiet" options={options} chosen={[String(chosen.value)]}
			onChange={([index]) => (chosen.value = Number(index))} />
	);
}

function Column({ name, heat }: { name: Heat; heat: Heat }): JSX.Element {
	if (name !== heat)
		return <span>{name}</span>;
	return <span class="heat-by" title="Lines are as warm as this">{name}</span>;
}

export function SourcePane(): JSX.Element {
	const current = shown.value;
	const pane = useRef<HTMLDivElement>(null);
	const key = (event: KeyboardEvent) => {
		if (!(event.ctrlKey || event.metaKey) || event.key !== "f")
			return;
		/* The browser would find only the lines on screen. */
		event.preventDefault();
		pane.current!.querySelector<HTMLInputElement>(".source-find input")?.select();
	};
	if (!wanted.value)
		return <p class="pane-note source-note">Select a function to see where in its source it spends.</p>;
	return (
		<div class="source-pane" ref={pane} onKeyDown={key}>
			<div class="source-head">
				<div class="tabs" role="group" aria-label="Show">
					{(["source", "code"] as const).map((kind) => (
						<button key={kind} type="button" aria-pressed={what.value === kind}
							onClick={() => (what.value = kind)}>
							{kind === "source" ? "Source" : "Machine code"}
						</button>
					))}
				</div>
				<Places />
				{current && current.rows.length > 0 && <Find rows={current.rows} hot={current.hot} />}
			</div>
			{failure.value && <p class="no-symbols source-note" role="alert">{failure.value}</p>}
			{current && (
				<>
					{current.title && (
						<p class="source-title mono" title={current.title}>
							<bdi>{current.title}</bdi>
						</p>
					)}
					<Note text={current.note} />
					<div class="source-columns muted" aria-hidden="true">
						<Column name="self" heat={current.heat} />
						<Column name="total" heat={current.heat} />
					</div>
					<Text current={current} />
				</>
			)}
		</div>
	);
}
