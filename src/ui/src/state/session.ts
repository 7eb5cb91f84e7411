// SPDX-License-Identifier: Apache-2.0
/*
 * session - loads the server's answers for the current place, and holds them.
 *
 * There is one load at a time per kind; a newer one aborts the older, so that only the last answer
 * shows. The previous result stays until the next one has arrived. On the first load of a place, a
 * picture trimmed to the screen precedes the full tree.
 */
import { computed, effect, signal, untracked } from "@preact/signals";
import {
	ApiError, type ProfileBytes, type ProfileType, type TreeQuery, fetchProfileBytes, fetchSeries, fetchTypes,
} from "../data/api";
import type { SeriesAnswer } from "../model/answers";
import { decode } from "../data/decoder";
import { secondsOf } from "../model/compare";
import { lengthOf, parseCells } from "../model/moments";
import type { Profile } from "../model/profile";
import {
	type Span, type TimeRange, absoluteRange, isRelative, resolveRange, snapSpan, stepFor,
} from "../model/timerange";
import { unitOf } from "../model/quantity";
import { retryDelay } from "../model/retry";
import { followProgress, newQueryId } from "./progress";
import { isLocal, shown as shownFile, treeOfLocal } from "./local";
import { openPage, page } from "./pages";
import { base, baseSelector, go, place, selector } from "./place";

const REFRESH_MS = 10_000;
/* Trees that are looked at live are asked for as often as this allows within a minute, at least once in it. */
const LIVE_BYTES_MAX = 900_000;
const LIVE_SPAN_MS = 65_000;
const SLOW_MS = 150;
/* When to ask again for names that the server is still reading: soon at first, then twice as late each time. */
const PENDING_MS = 2_000;
const PENDING_WAIT_MAX_MS = 60_000;
const SERIES_POINTS = 240;
/* Above this the full tree is asked for at a very large width instead. */
const NODES_FULL_MAX = 1_000_000;
const WIDTH_LARGE = 32_768;
const TYPES_RANGE: TimeRange = { from: "now-30d", to: "now" };

export interface Failure {
	message: string;
	url: string;
	/* When it is asked again by itself; null: not before the reader says so. */
	retryAtMs: number | null;
}

export const types = signal<ProfileType[] | null>(null);
export const profile = signal<Profile | null>(null);
export const series = signal<{ answer: SeriesAnswer; span: Span } | null>(null);
/* Loading for longer than a blink. */
export const busy = signal(false);
/* What failed last of each load, and has not worked since. */
const failures = signal<ReadonlyMap<Load, Failure>>(new Map());
export const failure = computed<Failure | null>(() =>
	[...failures.value].find(([load]) => !isLocal.value || load === loadProfile)?.[1] ?? null);
/* Whether what stands beside the tree waits for names. */
export const namesAwaited = signal(false);
/* Whether what is shown lacks what is narrower than a pixel, and the rest is on its way. */
export const isFirstLook = signal(false);
/* Width of the graph in device pixels; set by the flame view. */
export const graphWidth = signal(1600);

type Load = (signal_: AbortSignal) => Promise<void>;

/* Who wants it all again: the reader, the clock, or names that were missing. */
type Wish = "reader" | "clock" | "names";

/* The last refresh; loads depend on it. */
const tick = signal<{ wish: Wish }>({ wish: "reader" });

export const unit = computed(() => {
	const header = profile.value?.header;
	if (header)
		return unitOf(header);
	const type = types.value?.find((candidate) => candidate.type === place.value.type);
	return unitOf({
		type: place.value.type, unit: type?.sample_unit ?? "count", period: type?.period ?? 0,
		period_unit: type?.period_unit ?? "", delta: type?.delta ?? true,
	});
});

/* Seconds of the profile's range that data covers: an agent may have started in the middle of it. */
export const seconds = computed(() => {
	const current = profile.value;
	const { cells } = query.value;
	return !current ? 0 : cells ? lengthOf(parseCells(cells)) / 1000 : secondsOf(current);
});

export function refresh(wish: Wish = "reader"): void {
	tick.value = { wish };
}

/* Failures in a row, and what wakes the next attempt. */
let failedRounds = 0;
let retryTimer: ReturnType<typeof setTimeout> | undefined;

/* Another time for what is to be asked again by itself, or null; what waits for it is called off. */
function planAll(atMs: number | null): void {
	clearTimeout(retryTimer);
	failures.value = new Map([...failures.value].map(([load, failed]) =>
		[load, { ...failed, retryAtMs: failed.retryAtMs && atMs }]));
}

/* All that failed is asked again at once, when the last of them may be. */
function planRetry(status: number, askedMs: number): number | null {
	const planned = Math.max(0, ...[...failures.value.values()].map(({ retryAtMs }) => retryAtMs ?? 0));
	const begun = planned > Date.now();
	const delay = retryDelay(status, askedMs, begun ? failedRounds : ++failedRounds);
	if (delay === null)
		return null;
	const atMs = begun && !askedMs ? planned : Math.max(planned, Date.now() + delay);
	clearTimeout(retryTimer);
	/* Nobody looks: it waits until somebody does. */
	retryTimer = setTimeout(() => document.hidden || retry(), atMs - Date.now());
	return atMs;
}

function report(load: Load, error: unknown): void {
	const message = error instanceof Error ? error.message : String(error);
	const answer = error instanceof ApiError ? error : null;
	const url = answer?.url ?? "";
	const retryAtMs = answer && planRetry(answer.status, answer.retryMs);
	failures.value = new Map(failures.value).set(load, { message, url, retryAtMs });
}

function worked(load: Load): void {
	if (!failures.value.has(load))
		return;
	failures.value = new Map([...failures.value].filter(([other]) => other !== load));
	if (failures.value.size)
		return;
	failedRounds = 0;
	clearTimeout(retryTimer);
}

let loads = 0;

/* Whether anything is on its way, even for a blink. */
export const isLoading = (): boolean => loads > 0;

/* Runs one load; shows progress only when it takes longer than a blink. */
async function tracked(signal_: AbortSignal, load: Load, isQuiet = false): Promise<void> {
	loads++;
	const timer = isQuiet ? undefined : setTimeout(() => (busy.value = true), SLOW_MS);
	try {
		await load(signal_);
		if (!signal_.aborted)
			worked(load);
	} catch (error) {
		if (!signal_.aborted)
			report(load, error);
	} finally {
		clearTimeout(timer);
		if (--loads === 0)
			busy.value = false;
	}
}

function chooseType(list: ProfileType[]): string {
	const onCpu = list.find((type) => type.name === "on_cpu" || type.name === "process_cpu");
	return (onCpu ?? list[0])?.type ?? "";
}

/* The agent's own, which names the program of each sample. */
const isOfHost = (type: string) => type.startsWith("on_cpu:");

/* The page was opened by its bare address: nothing says what to show. */
const isBare = !page.peek() && !location.search;

async function loadTypes(): Promise<void> {
	const answer = await fetchTypes(TYPES_RANGE);
	types.value = answer.types;
	if (!place.value.type) {
		const type = chooseType(types.value);
		/* Of a host, the program comes before where in it: `_start` and `clone3` tell a newcomer nothing. */
		if (type)
			go(isOfHost(type) ? { type, groupBy: ["comm"] } : { type }, "replace");
		/* Of several services, which of them comes before where in it. */
		if (isBare && answer.several_services && !isLocal.value)
			openPage("services", "replace");
	}
}

/* What the tree on screen is of. */
export const query = computed<TreeQuery>(() => {
	const { view, range, groupBy, demangle, filters } = place.value;
	/* What is compared to has other moments. */
	const chosen = view !== "compare" && place.value.cells;
	const [cells, times] = chosen ? [place.value.cells, place.value.times] : ["", ""];
	return { query: selector.value, range, groupBy, demangle, filters, cells, times };
});

const isComparison = computed(() => place.value.view === "compare");
const inverted = computed(() => place.value.inverted && !isComparison.value && place.value.view !== "sandwich");

/* Everything that another tree follows from. */
const treeKey = () => [
	query.value, inverted.value, place.value.runtimes, isComparison.value && [baseSelector.value, base.value.range],
	place.value.file, shownFile.value?.file.serial,
];

/* The last place that was loaded in full: a live refresh of it needs no trimmed picture first. */
let loadedKey = "";
/* What is shown of it, by the names of the answers, and what its answers weighed. */
let shownEtags: string[] = [];
let weighed: { atMs: number; bytes: number }[] = [];
/* When names that are missing may be asked for again. */
let namesWaitMs = PENDING_MS;
let namesAtMs = 0;

/* Whether one more answer like the last stays within what a minute of looking on may cost. */
function isLiveAffordable(): boolean {
	weighed = weighed.filter(({ atMs }) => atMs > Date.now() - LIVE_SPAN_MS);
	const last = weighed[weighed.length - 1];
	return !last || weighed.reduce((sum, { bytes }) => sum + bytes, last.bytes) <= LIVE_BYTES_MAX;
}

function waitForNames(isLonger: boolean): void {
	namesWaitMs = isLonger ? Math.min(2 * namesWaitMs, PENDING_WAIT_MAX_MS) : PENDING_MS;
	namesAtMs = Date.now() + namesWaitMs;
}

/* Of what place it is in full, and by which answers; "" when it is not. */
function show(next: Profile, aborted: AbortSignal, key = "", answers: readonly ProfileBytes[] = []): void {
	if (aborted.aborted)
		return;
	const isKnown = key !== "" && key === loadedKey;
	const bytes = answers.reduce((sum, { sent }) => sum + sent, 0);
	weighed = [...(isKnown ? weighed : []), { atMs: Date.now(), bytes }];
	waitForNames(isKnown);
	isFirstLook.value = key === "" && answers.length > 0;
	profile.value = next;
	loadedKey = key;
	shownEtags = answers.map(({ etag }) => etag);
}

async function loadProfile(signal_: AbortSignal): Promise<void> {
	if (isLocal.value) {
		if (shownFile.value)
			show(await treeOfLocal(shownFile.value, inverted.value), signal_);
		return;
	}
	const id = newQueryId();
	const done = new AbortController();
	signal_.addEventListener("abort", () => done.abort());
	followProgress(id, done.signal);
	try {
		await loadTree(signal_, id);
	} finally {
		done.abort();
	}
}

async function loadTree(signal_: AbortSignal, id: string): Promise<void> {
	const asked = query.value;
	const key = JSON.stringify(treeKey());
	const isKnown = key === loadedKey;
	if (isKnown && tick.peek().wish === "clock" && !isLiveAffordable())
		return;
	if (isComparison.value) {
		const answers = await askSides(asked, id, isKnown ? shownEtags : [], signal_);
		if (!answers) {
			waitForNames(true);
			return;
		}
		const [own, other] = answers.map(({ bytes }) => bytes);
		show(await decode(own!, false, place.value.runtimes, other), signal_, key, answers);
		return;
	}
	const ask = async (width: number, etag = "") => {
		const answer = await fetchProfileBytes(asked, width, id, signal_, etag);
		return answer && { answer, tree: await decode(answer.bytes, inverted.value, place.value.runtimes) };
	};
	let largest = profile.value?.header.nodes_total ?? 0;
	if (!isKnown) {
		/* Upside down, what is wide is not what was wide: nothing is trimmed to the screen first. */
		const first = (await ask(inverted.value ? WIDTH_LARGE : untracked(() => graphWidth.value)))!;
		const isAll = !first.tree.header.trimmed || inverted.value;
		show(first.tree, signal_, isAll ? key : "", [first.answer]);
		if (isAll)
			return;
		largest = first.tree.header.nodes_total;
	}
	const width = largest > NODES_FULL_MAX || inverted.value ? WIDTH_LARGE : 0;
	const all = await ask(width, isKnown ? shownEtags[0] : "");
	if (all)
		show(all.tree, signal_, key, [all.answer]);
	else
		waitForNames(true);
}

/* Both sides of a comparison; null when neither has changed. */
async function askSides(
	asked: TreeQuery, id: string, etags: readonly string[], signal_: AbortSignal,
): Promise<ProfileBytes[] | null> {
	const sides = [asked, { ...asked, query: baseSelector.value, range: base.value.range }];
	const ask = (side: number, etag = "") => fetchProfileBytes(sides[side]!, WIDTH_LARGE, id, signal_, etag);
	const answers = await Promise.all(sides.map((_, side) => ask(side, etags[side])));
	if (!answers.some((answer) => answer))
		return null;
	return Promise.all(answers.map(async (answer, side) => answer ?? (await ask(side))!));
}

/* What the strip shows: of a comparison, both ranges on one axis. */
function spanShown(now: number): Span {
	const span = resolveRange(place.value.range, now);
	if (!isComparison.value)
		return span;
	const other = resolveRange(base.value.range, now);
	return { fromMs: Math.min(span.fromMs, other.fromMs), toMs: Math.max(span.toMs, other.toMs) };
}

/* The ranges and queries of a comparison, as a key. */
const comparedSpan = computed(() =>
	isComparison.value ? JSON.stringify([base.value.range, baseSelector.value]) : "");

async function loadSeries(signal_: AbortSignal): Promise<void> {
	const { range, sumBy } = place.value;
	const span = spanShown(Date.now());
	const step = stepFor(span, SERIES_POINTS);
	if (!isComparison.value) {
		const answer = await fetchSeries(selector.value, range, step, sumBy, signal_);
		if (!signal_.aborted)
			series.value = { answer, span };
		return;
	}
	const both = absoluteRange(snapSpan(span, step));
	const answer = await fetchSeries(selector.value, both, step, "", signal_);
	const other = baseSelector.value === selector.value ? null
		: await fetchSeries(baseSelector.value, both, step, "", signal_);
	if (signal_.aborted)
		return;
	const lines = other ? [...named(other, "A"), ...named(answer, "B")] : answer.series;
	series.value = { answer: { ...answer, series: lines }, span };
}

const named = (answer: SeriesAnswer, query: string) =>
	answer.series.map((line) => ({ ...line, labels: { query } }));

const running = new Set<AbortController>();

/* Stops what is waited for; the server stops work when the connection closes. The old picture stays. */
export function cancel(): void {
	if (place.value.live)
		go({ live: false }, "replace");
	planAll(null);
	for (const controller of running)
		controller.abort();
}

/*
 * Reruns `load` when what `key` reads changes, or at a refresh; aborts the run before. Of a file of
 * the reader's own only the tree is loaded: all else would ask the server.
 */
export function reload(key: () => unknown, load: Load): void {
	const wanted = computed(() => JSON.stringify([isLocal.value, key()]));
	let last: AbortController | undefined;
	/* What it was loaded for before: what the clock wants is not shown as work. */
	let [told, was] = [tick.peek(), ""];
	effect(() => {
		void wanted.value;
		const { wish } = tick.value;
		const isQuiet = wish !== "reader" && tick.value !== told && wanted.value === was;
		[told, was] = [tick.value, wanted.value];
		last?.abort();
		if (!untracked(() => place.value.type && (!isLocal.value || load === loadProfile))) {
			untracked(() => worked(load));
			return;
		}
		const controller = (last = new AbortController());
		running.add(controller);
		untracked(() => void tracked(controller.signal, load, isQuiet)
			.finally(() => running.delete(controller)));
	});
}

export function startSession(): void {
	const none = new AbortController().signal;
	explainEmptiness();
	void tracked(none, loadTypes);
	reload(treeKey, loadProfile);
	reload(() => [
		selector.value, place.value.range, place.value.sumBy, comparedSpan.value, place.value.file,
	], loadSeries);
	setInterval(() => {
		const isAwaited = profile.value?.header.pending || namesAwaited.value;
		if (loads === 0 && !failure.value && isAwaited && Date.now() >= namesAtMs)
			refresh("names");
	}, PENDING_MS);
	setInterval(() => {
		/* A load that takes longer than the interval is let finish. */
		if (document.hidden || page.value || !place.value.live || loads > 0 || failure.value?.retryAtMs)
			return;
		if (!types.value?.length)
			void tracked(none, loadTypes);
		refresh("clock");
	}, REFRESH_MS);
	document.addEventListener("visibilitychange", () => {
		if (document.hidden)
			return;
		const planned = failure.value?.retryAtMs;
		if (planned ? planned <= Date.now() : place.value.live)
			retry();
	});
}

/* What failed goes on being shown until it works. */
export function retry(): void {
	planAll(Date.now());
	if (!isLocal.value && !types.value?.length)
		void tracked(new AbortController().signal, loadTypes);
	refresh();
}

/*
 * Whether an empty range has data of the type when the matchers are left out; null until known.
 */
export const dataWithoutMatchers = signal<boolean | null>(null);

function explainEmptiness(): void {
	let running: AbortController | undefined;
	effect(() => {
		const empty = profile.value?.total[0] === 0;
		running?.abort();
		dataWithoutMatchers.value = null;
		const { type, range } = untracked(() => place.value);
		if (!empty || untracked(() => isLocal.value))
			return;
		const { signal: aborted } = (running = new AbortController());
		fetchTypes(range, aborted).then(({ types: list }) => {
			dataWithoutMatchers.value = list.some((known) => known.type === type);
		}, () => undefined);
	});
}

/* Where the newest data of the type is, when the range shown has none. */
export function nearestData(): { newestMs: number; range: TimeRange } | null {
	const newest = types.value?.find((type) => type.type === place.value.type)?.newest_ms;
	if (!newest)
		return null;
	const { fromMs, toMs } = resolveRange(place.value.range, Date.now());
	if (newest >= fromMs && newest <= toMs)
		return null;
	const width = Math.min(toMs - fromMs, 15 * 60_000);
	const nowEnd = isRelative(place.value.range.to) && Date.now() - newest < width;
	return {
		newestMs: newest,
		range: nowEnd
			? { from: "now-15m", to: "now" }
			: absoluteRange({ fromMs: newest + 60_000 - width, toMs: newest + 60_000 }),
	};
}
