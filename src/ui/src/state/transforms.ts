// SPDX-License-Identifier: Apache-2.0
/* transforms - the actions on the selected function: one list for keys, menu and palette. */
import { type Action, filterText } from "../model/filters";
import { GROUP, TRIMMED, depthOf, functionName } from "../model/profile";
import { formatMatchers, parseMatchers, withMatcher } from "../model/selector";
import { go, place } from "./place";
import { cursor, selectedFunction } from "./reading";
import { profile } from "./session";

export interface Transform {
	key: string;
	title: string;
	run(name: string): void;
}

export function addFilters(filters: readonly string[]): void {
	const fresh = filters.filter((filter) => !place.value.filters.includes(filter));
	if (fresh.length)
		go({ filters: [...place.value.filters, ...fresh], zoom: "" });
}

export function removeFilter(filter: string): void {
	go({ filters: place.value.filters.filter((other) => other !== filter), zoom: "" });
}

const filtering = (action: Action) => (name: string) => addFilters([filterText(action, "function", "=", name)]);

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

export const transforms: Transform[] = [
	{ key: "f", title: "Show from this function on", run: filtering("show-from") },
	{ key: "F", title: "Show only stacks with it", run: filtering("show-stack") },
	{ key: "D", title: "Hide stacks with it", run: filtering("hide-stack") },
	{ key: "m", title: "Merge it into its callers", run: filtering("hide-frame") },
	{
		key: "c", title: "Pivot: its callers and callees",
		run: (name) => go({ view: "sandwich", func: name, zoom: "" }),
	},
	{ key: "h", title: "Search for it", run: (name) => go({ search: `/^${escaped(name)}$/` }) },
	{ key: "y", title: "Copy its name", run: (name) => void navigator.clipboard?.writeText(name) },
];

/* The selected function's name; "" when none is, or what is selected is no function. */
export function transformable(): string {
	const current = profile.value;
	const fn = selectedFunction.value;
	const node = cursor.value;
	if (!current || !fn || (node > 0 && current.flags[node]! & (GROUP | TRIMMED)))
		return "";
	return functionName(current, fn);
}

/* The value of a label that the selected box stands for, or null. */
export function selectedGroup(): { label: string; value: string } | null {
	const current = profile.value;
	const node = cursor.value;
	if (!current || node <= 0 || !(current.flags[node]! & GROUP))
		return null;
	const label = place.value.groupBy[depthOf(current, node) - 1];
	return label ? { label, value: functionName(current, current.func[node]!) } : null;
}

/* Only what has that value of the label, or all but that. */
export function narrow({ label, value }: { label: string; value: string }, op: "=" | "!="): void {
	const { matchers } = place.value;
	const added = { name: label, op, value } as const;
	const parsed = parseMatchers(matchers);
	const all = parsed.ok ? [...parsed.matchers, added] : [added];
	go({ matchers: op === "=" ? withMatcher(matchers, added) : formatMatchers(all), zoom: "" });
}

export function transform(key: string): void {
	const name = transformable();
	if (name)
		transforms.find((each) => each.key === key)?.run(name);
}

export const toggleInverted = () => go({ inverted: !place.value.inverted, zoom: "" });
export const toggleUpright = () => go({ upright: !place.value.upright });
