// SPDX-License-Identifier: Apache-2.0
/* offers - completion at the caret of the matcher field: labels, operators, and values ordered by their cost. */
import { fetchLabelValues, fetchLabels, fetchSeries } from "../../data/api";
import { formatRate } from "../../model/quantity";
import { type Completion, OPERATORS, quote, quoteName } from "../../model/selector";
import { type TimeRange, resolveRange } from "../../model/timerange";
import { loadLabelWords } from "../../state/label_words";
import { place } from "../../state/place";
import { unit } from "../../state/session";

const SHOWN_MAX = 200;
const NEAR_MAX = 5;
const KEPT_MS = 30_000;

/* What can be offered, or what it will come with. */
export type Offer = readonly string[] | Promise<readonly string[]>;

/* Answers by query, for as long as the page lives; a place has few labels. */
const answers = new Map<string, Offer>();

export function offered(want: Completion): Offer {
	const { type, range } = place.value;
	if (want.want === "op")
		return OPERATORS;
	if (want.want === "comma")
		return [];
	const key = JSON.stringify([type, range.from, range.to, want.want, want.label]);
	const known = answers.get(key);
	if (known)
		return known;
	loadLabelWords();
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

/* What was spent in a value, in words, by "label=value". */
const weights = new Map<string, string>();

export const weightOf = (label: string, value: string): string => weights.get(`${label}=${value}`) ?? "";

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

export function narrowed(all: readonly string[], typed: string): string[] {
	const wanted = typed.toLowerCase();
	const starts = all.filter((item) => item.toLowerCase().startsWith(wanted));
	const contains = all.filter((item) => !item.toLowerCase().startsWith(wanted) &&
		item.toLowerCase().includes(wanted));
	const found = [...starts, ...contains].slice(0, SHOWN_MAX);
	return found.length ? found : all.filter((item) => isNear(wanted, item.toLowerCase())).slice(0, NEAR_MAX);
}

/* The text after taking a suggestion, and where the caret goes. */
export function complete(text: string, want: Completion, item: string): { text: string; caret: number } {
	const insert = want.want === "value" ? quote(item) : want.want === "name" ? quoteName(item) + "=" : item;
	let { to } = want;
	if (want.want === "name") {
		const operator = /^\s*(=~|!~|!=|=)/.exec(text.slice(to));
		to += operator?.[0].length ?? 0;
	}
	const result = text.slice(0, want.from) + insert + text.slice(to);
	return { text: result, caret: want.from + insert.length };
}
