// SPDX-License-Identifier: Apache-2.0
/* lanes - the timeline's data: its queries, made from the place, and the values derived from the answers. */
import { computed, signal } from "@preact/signals";
import { fetchFlameChart, fetchLabels, fetchSeries } from "../../data/api";
import type { FlameChartAnswer, SeriesAnswer } from "../../model/answers";
import { colourProfile } from "../../model/colours";
import { findMatches } from "../../model/search";
import { formatSelector, quote, quoteName } from "../../model/selector";
import {
	type Chart, type Lanes, type OpenLanes, barsFor, chartOf, laneLabel, lanesOf, stepsFor,
} from "../../model/timeline";
import { type Span, absoluteRange, resolveRange } from "../../model/timerange";
import { place, selector } from "../../state/place";
import { pattern, slots } from "../../state/reading";
import { profile, query, reload } from "../../state/session";

/* More together take long to lay out; the server has no more than this in one answer. */
export const OPEN_MAX = 64;

export const series = signal<{ answer: SeriesAnswer; label: string; span: Span } | null>(null);
export const boxes = signal<FlameChartAnswer | null>(null);
export const labels = signal<string[]>([]);
export const openLanes = computed(() => place.value.lane as OpenLanes);

export const lanes = computed<Lanes | null>(() =>
	series.value && lanesOf(series.value.answer, series.value.label, series.value.span, openLanes.value));
export const chart = computed<Chart | null>(() =>
	lanes.value && profile.value && chartOf(lanes.value, boxes.value, profile.value.header));
export const colouring = computed(() =>
	chart.value && colourProfile(chart.value.profile, place.value.colourBy, slots));
export const found = computed(() => {
	const compiled = pattern.value;
	return chart.value && compiled.kind === "match" ? findMatches(chart.value.profile, compiled.test) : null;
});

async function loadLanes(aborted: AbortSignal): Promise<void> {
	const { view, range, matchers } = place.value;
	if (view !== "timeline")
		return;
	const span = resolveRange(range, Date.now());
	const known = await fetchLabels(selector.value, range, aborted);
	const label = place.value.lanes || laneLabel(known, matchers);
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
