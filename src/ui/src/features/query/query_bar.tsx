// SPDX-License-Identifier: Apache-2.0
/*
 * query_bar - one line of matchers with completion from the server (ARIA combobox). The text is an
 * ordinary input; its colours come from an underlay with the same text.
 */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { fetchLabelValues, fetchLabels, fetchSeries } from "../../data/api";
import { formatRate } from "../../model/quantity";
import {
	type Completion, OPERATORS, type Token, completionAt, parseMatchers, quote, quoteName, tokenise,
} from "../../model/selector";
import { type TimeRange, resolveRange } from "../../model/timerange";
import { place } from "../../state/place";
import { unit } from "../../state/session";
import { Icon } from "../../kit/icons";

const SHOWN_MAX = 200;
const NEAR_MAX = 5;
const KEPT_MS = 30_000;

/* What can be offered, or what it will come with. */
type Answer = readonly string[] | Promise<readonly string[]>;

/* Answers by query, for as long as the page lives; a place has few labels. */
const answers = new Map<string, Answer>();

function offered(want: Completion): Answer {
	const { type, range } = place.value;
	if (want.want === "op")
		return OPERATORS;
	if (want.want === "comma")
		return [];
	const key = JSON.stringify([type, range.from, range.to, want.want, want.label]);
	const known = answers.get(key);
	if (known)
		return known;
	const asked = want.want === "name" ? fetchLabels(type, range) : fetchValuesByWeight(want.label, type, range);
	const coming = asked.then((all) => {
		answers.set(key, all);
		return all;
	}, () => {
		answers.delete(key);
		return [];
	});
	answers.set(key, coming);
	setTimeout(() => answers.delete(key), KEPT_MS);
	return coming;
}

/* Values, those that most is spent in first; of a label with very many only by name. */
async function fetchValuesByWeight(label: string, type: string, range: TimeRange): Promise<readonly string[]> {
	const { fromMs, toMs } = resolveRange(range, Date.now());
	const [values, weighed] = await Promise.all([
		fetchLabelValues(label, type, range),
		fetchSeries(type, range, Math.max(1_000, toMs - fromMs), label).catch(() => null),
	]);
	const sums = new Map(weighed?.series.map(({ labels, points }) =>
		[labels[label] ?? "", points.reduce((sum, point) => sum + point[1], 0)]));
	const seconds = (toMs - fromMs) / 1000;
	for (const [value, sum] of sums)
		weights.set(`${label}=${value}`, formatRate(unit.peek(), sum, seconds));
	return values.slice().sort((a, b) => (sums.get(b) ?? 0) - (sums.get(a) ?? 0));
}

/* What was spent in a value, in words, by "label=value". */
const weights = new Map<string, string>();

/* One letter wrong, missing, added or swapped with its neighbour. */
function isNear(typed: string, item: string): boolean {
	if (typed.length < 3 || Math.abs(typed.length - item.length) > 1)
		return false;
	let from = 0;
	while (from < typed.length && typed[from] === item[from])
		from++;
	const rest = (text: string, skipped: number) => text.slice(from + skipped);
	return rest(typed, 1) === rest(item, 1) ||
		rest(typed, 0) === rest(item, 1) || rest(typed, 1) === rest(item, 0) ||
		(typed[from] === item[from + 1] && typed[from + 1] === item[from] && rest(typed, 2) === rest(item, 2));
}

function narrowed(all: readonly string[], typed: string): string[] {
	const wanted = typed.toLowerCase();
	const starts = all.filter((item) => item.toLowerCase().startsWith(wanted));
	const contains = all.filter((item) => !item.toLowerCase().startsWith(wanted) &&
		item.toLowerCase().includes(wanted));
	const found = [...starts, ...contains].slice(0, SHOWN_MAX);
	return found.length ? found : all.filter((item) => isNear(wanted, item.toLowerCase())).slice(0, NEAR_MAX);
}

/* The text after taking a suggestion, and where the caret goes. */
function complete(text: string, want: Completion, item: string): { text: string; caret: number } {
	const insert = want.want === "value" ? quote(item) : want.want === "name" ? quoteName(item) + "=" : item;
	let { to } = want;
	if (want.want === "name") {
		const operator = /^\s*(=~|!~|!=|=)/.exec(text.slice(to));
		to += operator?.[0].length ?? 0;
	}
	const result = text.slice(0, want.from) + insert + text.slice(to);
	return { text: result, caret: want.from + insert.length };
}

function Underlay({ text, wrongAt, scroll }: { text: string; wrongAt: number; scroll: number }): JSX.Element {
	const layer = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		layer.current!.scrollLeft = scroll;
	});
	const isWrong = (token: Token) => token.at <= wrongAt && wrongAt < token.at + token.text.length;
	return (
		<div class="query-underlay" ref={layer} aria-hidden="true">
			{tokenise(text).map((token) => (
				<span key={token.at}
					class={`token-${token.kind}${isWrong(token) ? " token-error" : ""}`}>
					{token.text}
				</span>
			))}
			{wrongAt >= text.length && text && <span class="token-error">{"\u00a0"}</span>}
		</div>
	);
}

interface Properties {
	id: string;
	label: string;
	matchers: string;
	onApply(matchers: string): void;
}

export function QueryBar({ id, label, matchers, onApply }: Properties): JSX.Element {
	const itemId = (index: number) => `${id}-item-${index}`;
	const input = useRef<HTMLInputElement>(null);
	const text = useSignal(matchers);
	const scroll = useSignal(0);
	const want = useSignal<Completion | null>(null);
	const items = useSignal<string[]>([]);
	const active = useSignal(-1);
	const note = useSignal("");
	/* Keys of a reader who is faster than the list that they are for; null when no list is coming. */
	const ahead = useRef<string[] | null>(null);
	const told = useRef(matchers);
	const parsed = parseMatchers(text.value);
	const applied = text.value.trim() === matchers.trim();
	const isOpen = () => want.value !== null && items.value.length > 0;
	const open = isOpen();

	useEffect(() => {
		told.current = matchers;
		if (document.activeElement !== input.current)
			text.value = matchers;
	}, [matchers]);

	const suggest = () => {
		const at = input.current!.selectionStart ?? text.value.length;
		const found = completionAt(text.value, at);
		const offer = (all: readonly string[]) => {
			items.value = narrowed(all, found.typed);
			const keys = ahead.current ?? [];
			ahead.current = null;
			keys.forEach(press);
		};
		want.value = found;
		active.value = -1;
		ahead.current = null;
		const answer = offered(found);
		if (!(answer instanceof Promise)) {
			offer(answer);
			return;
		}
		items.value = [];
		ahead.current = [];
		void answer.then((all) => want.value === found && offer(all));
	};
	const close = () => {
		want.value = null;
		items.value = [];
		ahead.current = null;
	};
	const apply = () => {
		const state = parseMatchers(text.value);
		if (!state.ok) {
			note.value = `Column ${state.column + 1}: ${state.reason}.`;
			return;
		}
		note.value = "";
		close();
		const inner = text.value.trim().replace(/^\{/, "").replace(/\}$/, "").trim();
		if (inner === told.current)
			return;
		told.current = inner;
		onApply(inner);
	};
	const take = (item: string) => {
		const chosen = want.value!;
		const next = complete(text.value, chosen, item);
		text.value = next.text;
		input.current!.value = next.text;
		input.current!.setSelectionRange(next.caret, next.caret);
		input.current!.focus();
		if (chosen.want === "value" && parseMatchers(next.text).ok)
			apply();
		else
			suggest();
	};
	/* False when it is none of the field's keys. */
	const press = (name: string): boolean => {
		const { length } = items.value;
		const waiting = ahead.current;
		const steps = name === "ArrowDown" || name === "ArrowUp";
		const chosen = isOpen() ? items.value[active.value] : undefined;
		if (waiting && (steps || (name === "Enter" && waiting.length))) {
			waiting.push(name);
		} else if ((name === "Enter" || name === "Tab") && chosen !== undefined) {
			take(chosen);
		} else if (name === "Enter") {
			apply();
		} else if (steps) {
			const up = length + (active.value < 0 ? 0 : -1);
			if (!isOpen())
				suggest();
			else
				active.value = (active.value + (name === "ArrowDown" ? 1 : up)) % length;
		} else if (name === "Escape" && (waiting || isOpen())) {
			close();
		} else if (name === "Escape") {
			text.value = matchers;
			note.value = "";
			input.current!.blur();
		} else {
			return false;
		}
		return true;
	};
	const key = (event: KeyboardEvent) => {
		if (event.isComposing || !press(event.key))
			return;
		event.preventDefault();
		event.stopPropagation();
	};
	const typed = () => {
		text.value = input.current!.value;
		scroll.value = input.current!.scrollLeft;
		note.value = "";
		suggest();
	};
	const clear = () => {
		text.value = "";
		note.value = "";
		close();
		onApply("");
	};
	const leave = () => {
		close();
		apply();
	};

	const activeId = open && active.value >= 0 ? itemId(active.value) : undefined;
	const wrongAt = parsed.ok || note.value === "" ? -1 : parsed.column;
	return (
		<div class={`query-bar${note.value ? " invalid" : ""}`}>
			<Icon name="filter" />
			<div class="query-field">
				<Underlay text={text.value} wrongAt={wrongAt} scroll={scroll.value} />
				<input ref={input} id={id} class="query-input" type="text" role="combobox"
					spellcheck={false} autocomplete="off"
					aria-label={label}
					aria-expanded={open} aria-controls={`${id}-suggestions`}
					aria-autocomplete="list" aria-invalid={note.value !== ""}
					aria-activedescendant={activeId}
					placeholder='Filter by label:  comm="nginx", node=~"web-.+"' value={text.value}
					onInput={typed} onKeyDown={key} onFocus={suggest}
					onBlur={leave} onClick={suggest}
					onScroll={() => (scroll.value = input.current!.scrollLeft)} />
			</div>
			{!applied && !note.value && <kbd class="query-hint">Enter</kbd>}
			{text.value && (
				<button type="button" class="icon-button"
					aria-label="Clear the matchers" title="Clear the matchers"
					onPointerDown={(event) => event.preventDefault()} onClick={clear}>
					<Icon name="close" />
				</button>
			)}
			{note.value && <p class="query-note" role="alert">{note.value}</p>}
			<ul id={`${id}-suggestions`} class="options query-suggestions" role="listbox"
				aria-label="Suggestions" hidden={!open}>
				{items.value.map((item, index) => (
					<li key={item} id={itemId(index)} class={index === active.value ? "active" : ""}
						role="option" aria-selected={index === active.value}
						onPointerDown={(event) => event.preventDefault()}
						onClick={() => take(item)}>
						<span class="mono">{item || '""'}</span>
						{want.value?.want === "value" && (
							<span class="hint number">
								{weights.get(`${want.value.label}=${item}`)}
							</span>
						)}
					</li>
				))}
			</ul>
		</div>
	);
}
