// SPDX-License-Identifier: Apache-2.0
/*
 * place - the part of the page's state that a link carries, and its form in the URL.
 *
 *   ?query=on_cpu:...{comm="nginx"}&from=now-15m&to=now&view=table&zoom=4.9f3a&search=json
 *   &filter=hide-stack epoll_wait&view=compare&base_from=now-30m&base_to=now-15m
 *   &view=heatmap&column=1s&cells=1767225600000-1767225600240
 *
 * Keys are short words that never change; defaults are left out; unknown keys are ignored; an invalid
 * value is replaced by the default and reported.
 */
import type { Mode } from "./compare";
import { formatCells, parseCells } from "./moments";
import { formatSelector, splitSelector } from "./selector";
import { DEFAULT_RANGE, type TimeRange, endsNow, isValidRange } from "./timerange";

export type View = "flame" | "table" | "sandwich" | "compare" | "timeline" | "heatmap" | "callgraph";
export type ColourBy = "binary" | "package" | "file" | "kind" | "function";
/* How much of a function's name is shown; the server's words. */
export type Demangle = "full" | "templates" | "simple" | "none";

/* What a comparison compares to (A). */
export interface Base {
	matchers: string;
	range: TimeRange;
}

export interface Place {
	/* "" until the server's list of types has been read. */
	type: string;
	matchers: string;
	range: TimeRange;
	live: boolean;
	view: View;
	/* The box zoomed to (framepath), "" for all. */
	zoom: string;
	search: string;
	groupBy: string[];
	/* Label of the series strip, "" for one line. */
	sumBy: string;
	colourBy: ColourBy;
	demangle: Demangle;
	/* In the server's words: "hide-stack function=~..." */
	filters: string[];
	/* Functions first, their callers below. */
	inverted: boolean;
	/* Roots at the bottom. */
	upright: boolean;
	/* With the C frames of interpreters, which are folded else. */
	runtimes: boolean;
	/* The function in the middle of the sandwich, by name. */
	func: string;
	/* null: the time before. */
	base: Base | null;
	mode: Mode;
	/* Chosen moments, as the server reads them: "FROM-TO,FROM-TO" in milliseconds. */
	cells: string;
	/* "0": those are of reports by their start, not of samples by their own times. */
	times: string;
	/* Width of the heatmap's columns ("10s"), "" for what fits. */
	column: string;
	/* Label whose values are the timeline's lanes, "" for the most telling one; the only lane shown. */
	lanes: string;
	lane: string;
	/* Functions in the call graph. */
	functions: number;
	/* Name of the reader's own file that is shown instead of what the server has, or "". */
	file: string;
	/* Only the graph, for frames in other pages. */
	embed: boolean;
}

export const START: Place = {
	type: "", matchers: "", range: DEFAULT_RANGE, live: true, view: "flame", zoom: "", search: "",
	groupBy: [], sumBy: "", colourBy: "binary", demangle: "full",
	filters: [], inverted: false, upright: false, runtimes: false, func: "", base: null, mode: "rate",
	cells: "", times: "", column: "", lanes: "", lane: "", functions: 40, file: "", embed: false,
};

const VIEWS: readonly string[] = ["flame", "table", "sandwich", "compare", "timeline", "heatmap", "callgraph"];
const FUNCTIONS_MAX = 400;
const MODES: readonly string[] = ["rate", "share", "raw"];
const FILTERS_MAX = 16;
const COLOURS: readonly string[] = ["binary", "package", "file", "kind", "function"];
const COLUMN = /^\d{1,4}[smhd]$/;
const DEMANGLE: readonly string[] = ["full", "templates", "simple", "none"];

export function formatPlace(place: Place): string {
	const params = new URLSearchParams();
	const put = (key: string, value: string, absent = "") => {
		if (value !== absent)
			params.set(key, value);
	};
	put("query", formatSelector(place.type, place.matchers));
	put("from", place.range.from, DEFAULT_RANGE.from);
	put("to", place.range.to, DEFAULT_RANGE.to);
	put("file", place.file);
	if (endsNow(place.range) && !place.live && !place.file)
		params.set("live", "0");
	put("view", place.view, START.view);
	put("zoom", place.zoom);
	put("search", place.search);
	put("group_by", place.groupBy.map(encodeListItem).join(","));
	put("sum_by", place.sumBy);
	put("colour", place.colourBy, START.colourBy);
	put("demangle", place.demangle, START.demangle);
	for (const filter of place.filters)
		params.append("filter", filter);
	put("invert", place.inverted ? "1" : "");
	put("upright", place.upright ? "1" : "");
	put("runtimes", place.runtimes ? "1" : "");
	put("function", place.func);
	if (place.base) {
		params.set("base_from", place.base.range.from);
		params.set("base_to", place.base.range.to);
		if (place.base.matchers !== place.matchers)
			params.set("base_query", formatSelector(place.type, place.base.matchers));
	}
	put("mode", place.mode, START.mode);
	put("cells", place.cells);
	put("times", place.cells ? place.times : "");
	put("column", place.column);
	put("lanes", place.lanes);
	put("lane", place.lane);
	put("functions", String(place.functions), String(START.functions));
	put("embed", place.embed ? "1" : "");
	const text = params.toString().replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%2F/g, "/");
	return text ? `?${text}` : "";
}

const encodeListItem = (item: string) => item.replace(/[%,]/g, encodeURIComponent);

function decodeListItem(item: string): string {
	try {
		return decodeURIComponent(item);
	} catch {
		return item;
	}
}

function parseBase(params: URLSearchParams, matchers: string, problems: string[]): Base | null {
	const [from, to] = [params.get("base_from"), params.get("base_to")];
	const query = params.get("base_query");
	if (from === null || to === null)
		return null;
	if (!isValidRange({ from, to })) {
		problems.push(`the range ${from} to ${to} to compare to is not one; showing the one before`);
		return null;
	}
	return { matchers: query === null ? matchers : splitSelector(query).matchers, range: { from, to } };
}

export function parsePlace(search: string): { place: Place; problems: string[] } {
	const params = new URLSearchParams(search);
	const problems: string[] = [];
	const choice = <T extends string>(key: string, allowed: readonly string[], fallback: T): T => {
		const value = params.get(key);
		if (value === null || allowed.includes(value))
			return (value as T) ?? fallback;
		problems.push(`${key}=${value} is not known here; showing ${fallback}`);
		return fallback;
	};
	const column = params.get("column") ?? "";
	if (column && !COLUMN.test(column))
		problems.push(`column=${column} is no width of a column; showing what fits`);
	const count = params.get("functions") ?? String(START.functions);
	const functions = /^0*[1-9]\d*$/.test(count) ? Math.min(FUNCTIONS_MAX, Number(count)) : START.functions;
	if (Number(count) !== functions)
		problems.push(`functions=${count} is not from 1 to ${FUNCTIONS_MAX}; showing ${functions}`);
	let range = { from: params.get("from") ?? DEFAULT_RANGE.from, to: params.get("to") ?? DEFAULT_RANGE.to };
	if (!isValidRange(range)) {
		problems.push(`the time range ${range.from} to ${range.to} is not one; showing the last 15 minutes`);
		range = DEFAULT_RANGE;
	}
	const asked = splitSelector(params.get("query") ?? "");
	const place: Place = {
		...asked,
		range,
		live: endsNow(range) && params.get("live") !== "0" && !params.has("file"),
		view: choice<View>("view", VIEWS, START.view),
		zoom: params.get("zoom") ?? "",
		search: params.get("search") ?? "",
		groupBy: (params.get("group_by") ?? "").split(",").filter(Boolean).map(decodeListItem),
		sumBy: params.get("sum_by") ?? "",
		colourBy: choice<ColourBy>("colour", COLOURS, START.colourBy),
		demangle: choice<Demangle>("demangle", DEMANGLE, START.demangle),
		filters: params.getAll("filter").filter(Boolean).slice(0, FILTERS_MAX),
		inverted: params.get("invert") === "1",
		upright: params.get("upright") === "1",
		runtimes: params.get("runtimes") === "1",
		func: params.get("function") ?? "",
		base: parseBase(params, asked.matchers, problems),
		mode: choice<Mode>("mode", MODES, START.mode),
		cells: formatCells(parseCells(params.get("cells") ?? "")),
		times: params.get("times") === "0" ? "0" : "",
		column: COLUMN.test(column) ? column : "",
		lanes: params.get("lanes") ?? "",
		lane: params.get("lane") ?? "",
		functions,
		file: params.get("file") ?? "",
		embed: params.get("embed") === "1",
	};
	return { place, problems };
}
