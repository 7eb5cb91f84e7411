// SPDX-License-Identifier: Apache-2.0
/*
 * reading - values derived from the profile and the place: colours, search matches, the zoomed box,
 * the selection and the hovered frame. Every pane follows the selection; only the status line follows hovering.
 */
import { computed, effect, signal } from "@preact/signals";
import { type SlotMemory, colourChanges, colourProfile } from "../model/colours";
import { findFramePath, followPath, formatFramePath } from "../model/framepath";
import { type Profile, functionMapping, functionName } from "../model/profile";
import { compilePattern, findMatches, nextMatch } from "../model/search";
import { topTable } from "../model/top";
import { go, place, undoZoom } from "./place";
import { profile } from "./session";
import { verdicts } from "./verdicts";

/* Every picture of one session gives a category the same colour. */
export const slots: SlotMemory = new Map();
const colourBy = computed(() => place.value.colourBy);
const mode = computed(() => place.value.mode);
const zoom = computed(() => place.value.zoom);
const search = computed(() => place.value.search);

export const colouring = computed(() =>
	!profile.value ? null
		: profile.value.sides ? colourChanges(profile.value, mode.value, verdicts.value)
		: colourProfile(profile.value, colourBy.value, slots));

export const pattern = computed(() => compilePattern(search.value));

/* In a large profile a search waits for a pause in the typing, so that no key has to wait for one. */
const SEARCH_AT_ONCE_NODES_MAX = 100_000;
const SEARCH_PAUSE_MS = 40;
const searched = signal(search.peek());

effect(() => {
	const text = search.value;
	if (!text || (profile.peek()?.count ?? 0) <= SEARCH_AT_ONCE_NODES_MAX) {
		searched.value = text;
		return undefined;
	}
	const timer = setTimeout(() => (searched.value = text), SEARCH_PAUSE_MS);
	return () => clearTimeout(timer);
});

export const matches = computed(() => {
	const compiled = compilePattern(searched.value);
	return profile.value && compiled.kind === "match" ? findMatches(profile.value, compiled.test) : null;
});

export const top = computed(() => (profile.value ? topTable(profile.value) : null));

/* The box zoomed to: 0 is everything; when the link's box is not in this profile, 0 as well. */
export const focus = computed(() =>
	profile.value ? Math.max(0, findFramePath(profile.value, zoom.value)) : 0);

export const focusLost = computed(() =>
	profile.value !== null && zoom.value !== "" && findFramePath(profile.value, zoom.value) < 0);

export const hovered = signal(-1);
/* The box last pressed or reached by keys; -1 when only a function or nothing is selected. */
export const cursor = signal(-1);
export const selectedFunction = signal(0);
/* Key of the legend's entry under the pointer. */
export const highlighted = signal(-1);

export function selectNode(node: number): void {
	cursor.value = node;
	selectedFunction.value = profile.value && node > 0 ? profile.value.func[node]! : 0;
}

export function selectFunction(fn: number): void {
	cursor.value = -1;
	selectedFunction.value = fn;
}

export function zoomTo(node: number): void {
	if (!profile.value)
		return;
	selectNode(node);
	const path = formatFramePath(profile.value, node);
	if (path !== place.value.zoom)
		go({ zoom: path });
}

/* One step back: the view before the last zoom, else everything. */
export function zoomBack(): void {
	if (!undoZoom() && place.value.zoom)
		go({ zoom: "" });
}

/* The function's widest box. */
export function widestOf(current: Profile, fn: number): number {
	let widest = -1;
	for (let node = 1; node < current.count; node++)
		if (current.func[node] === fn && (widest < 0 || current.total[node]! > current.total[widest]!))
			widest = node;
	return widest;
}

/* Goes to the next match, or the one before; returns it, or -1. */
export function walkMatches(step: 1 | -1): number {
	searched.value = search.value;
	if (!profile.value || !matches.value)
		return -1;
	const node = nextMatch(profile.value, matches.value, Math.max(0, cursor.value), step);
	if (node >= 0)
		selectNode(node);
	return node;
}

/* The selection goes with the zoom, and follows its call path, then its name, into a new profile. */
export function followSelection(): void {
	let old: Profile | null = null;
	const loaded = computed(() => profile.value !== null);
	effect(() => {
		void zoom.value;
		if (loaded.value)
			selectNode(focus.peek() || -1);
	});
	effect(() => {
		const current = profile.value;
		if (old && current && old !== current) {
			hovered.value = -1;
			const name = selectedFunction.peek() ? functionName(old, selectedFunction.peek()) : "";
			cursor.value = cursor.peek() > 0 ? followPath(old, cursor.peek(), current) : cursor.peek();
			selectedFunction.value = name ? functionNamed(current, name) : 0;
		}
		old = current;
	});
}

/* Of several with that name the first, unless their binary says which; 0 when there is none. */
export function functionNamed(current: Profile, name: string, mapping?: string): number {
	let found = 0;
	for (let fn = 1; fn < current.functions.count; fn++) {
		if (functionName(current, fn) !== name)
			continue;
		if (mapping === undefined || functionMapping(current, fn) === mapping)
			return fn;
		found ||= fn;
	}
	return found;
}
