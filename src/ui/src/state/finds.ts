// SPDX-License-Identifier: Apache-2.0
/* finds - the palette's results besides commands: functions, label values, profile types. */
import { signal } from "@preact/signals";
import { fetchLabelValues, fetchLabels } from "../data/api";
import { functionMapping, functionName } from "../model/profile";
import { typeTitle } from "../model/quantity";
import { type Matcher, withMatcher } from "../model/selector";
import { isLocal } from "./local";
import { page } from "./pages";
import { go, place } from "./place";
import { selectFunction, widestOf, zoomTo } from "./reading";
import { profile, types } from "./session";
import type { Command } from "./keys";

/* Of each kind, so that all kinds stay in sight. */
const OFFERED_MAX = 20;
/* A label with more values is one to search for in the matchers. */
const VALUES_MAX = 2000;
const LABELS_MAX = 30;
const TYPED_MIN = 2;

const values = signal<readonly Matcher[]>([]);

/* Reads the values of all labels of what is shown; the palette is open meanwhile. */
export async function loadValues(): Promise<void> {
	values.value = [];
	const { type, range } = place.peek();
	if (isLocal.peek() || page.peek() || !type)
		return;
	const labels = (await fetchLabels(type, range)).slice(0, LABELS_MAX);
	const all = await Promise.all(labels.map(async (name) => {
		const found = await fetchLabelValues(name, type, range).catch(() => []);
		return found.slice(0, VALUES_MAX).map((value): Matcher => ({ name, op: "=", value }));
	}));
	values.value = all.flat();
}

function showFunction(fn: number): void {
	const current = profile.value!;
	if (place.value.view === "flame")
		zoomTo(widestOf(current, fn));
	else
		selectFunction(fn);
}

function functions(fits: (title: string) => boolean): Command[] {
	const current = profile.value;
	if (!current)
		return [];
	const found: number[] = [];
	for (let fn = 1; fn < current.functions.count; fn++)
		if (current.functionTotal[fn]! > 0 && fits(functionName(current, fn)))
			found.push(fn);
	found.sort((a, b) => current.functionTotal[b]! - current.functionTotal[a]!);
	const shown = found.slice(0, OFFERED_MAX);
	const count = new Map<string, number>();
	for (const fn of shown)
		count.set(functionName(current, fn), (count.get(functionName(current, fn)) ?? 0) + 1);
	/* Of one name several times, which is whose. */
	const kind = (fn: number) => {
		const mapping = functionMapping(current, fn);
		const isAlone = count.get(functionName(current, fn)) === 1;
		return isAlone || !mapping ? "function" : `function in ${mapping.slice(mapping.lastIndexOf("/") + 1)}`;
	};
	return shown.map((fn) => ({ title: functionName(current, fn), key: kind(fn), run: () => showFunction(fn) }));
}

/* Nothing until enough is typed: commands are what most readers want first. */
export function finds(typed: string, fits: (title: string) => boolean): Command[] {
	if (page.value || typed.trim().length < TYPED_MIN)
		return [];
	const ofTypes = (types.value ?? []).filter(({ type }) => fits(`${typeTitle(type)} ${type}`)).map(({ type }) =>
		({ title: `${typeTitle(type)} (${type})`, key: "type", run: () => go({ type, zoom: "" }) }));
	const ofValues = values.value.filter(({ name, value }) => fits(`${name}=${value}`)).map((matcher) => ({
		title: `${matcher.name}=${matcher.value}`, key: "label",
		run: () => go({ matchers: withMatcher(place.value.matchers, matcher), zoom: "" }),
	}));
	return [...functions(fits), ...ofValues.slice(0, OFFERED_MAX), ...ofTypes.slice(0, OFFERED_MAX)];
}
