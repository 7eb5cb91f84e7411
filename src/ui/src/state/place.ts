// SPDX-License-Identifier: Apache-2.0
/*
 * place - the signal with the page's current place, kept in sync with the URL. Steps of the reader
 * are history entries (Back undoes them); typing replaces the current one.
 */
import { computed, signal } from "@preact/signals";
import { type Base, type Place, formatPlace, parsePlace } from "../model/place";
import { formatSelector } from "../model/selector";
import { earlier, endsNow, resolveRange } from "../model/timerange";
import { page, pageOf, root } from "./pages";

const first = parsePlace(page.value ? "" : location.search);

export const place = signal<Place>(first.place);
export const problems = signal<string[]>(first.problems);

export const selector = computed(() => formatSelector(place.value.type, place.value.matchers));

/* What is compared to; unless the reader chose, the time before, as long. */
export const base = computed<Base>(() => {
	const { base: chosen, matchers, range } = place.value;
	if (chosen)
		return chosen;
	const now = Date.now();
	const { fromMs, toMs } = resolveRange(range, now);
	return { matchers, range: earlier(range, toMs - fromMs, now) };
});

export const baseSelector = computed(() => formatSelector(place.value.type, base.value.matchers));

interface Entry {
	/* Zoom steps since the page was loaded that Back would undo one by one. */
	zooms: number;
}

function entry(): Entry {
	return (history.state as Entry | null) ?? { zooms: 0 };
}

export function go(change: Partial<Place>, how: "push" | "replace" = "push"): void {
	const next = { ...place.value, ...change };
	if (change.range)
		next.live = change.live ?? endsNow(change.range);
	const url = root + formatPlace(next);
	const zoomed = change.zoom !== undefined && Object.keys(change).length === 1;
	if (page.value && how === "replace") {
		place.value = next;
		return;
	}
	undoing = 0;
	if (how === "push")
		history.pushState({ zooms: zoomed ? entry().zooms + 1 : 0 }, "", url);
	else
		history.replaceState(history.state, "", url);
	page.value = "";
	place.value = next;
}

/* From a page back to the profiles, as they were. */
export const showProfiles = () => go({});

/* Steps back that were asked for: the browser takes one at a time, and says later when it has. */
let undoing = 0;

/* One step back in zooming; false when the last step was something else. */
export function undoZoom(): boolean {
	if (entry().zooms <= undoing)
		return undoing > 0;
	if (!undoing++)
		history.back();
	return true;
}

addEventListener("popstate", () => {
	undoing = Math.max(0, undoing - 1);
	if (undoing)
		history.back();
	if (pageOf(location.pathname))
		return;
	const { place: there, problems: wrong } = parsePlace(location.search);
	place.value = { ...there, type: there.type || place.value.type };
	problems.value = wrong;
});
