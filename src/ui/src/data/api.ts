// SPDX-License-Identifier: Apache-2.0
/* api - requests of the server's API (docs/api.md). URLs are relative to the page, so any path prefix works. */
import type {
	CallGraphAnswer, FlameChartAnswer, HeatmapAnswer, SeriesAnswer, Significance,
} from "../model/answers";
import { retryAfterMs } from "../model/retry";
import type { TimeRange } from "../model/timerange";

export interface ProfileType {
	type: string;
	name: string;
	sample_type: string;
	sample_unit: string;
	period_type: string;
	period_unit: string;
	delta: boolean;
	period: number;
	newest_ms: number;
}

/* Status 0: no answer came, or only a part of one. `retryMs` is when the server wants to be asked again, or 0. */
export class ApiError extends Error {
	constructor(message: string, readonly status: number, readonly url: string, readonly retryMs = 0) {
		super(message);
	}
}

type Parameters = Record<string, string | number | string[] | undefined>;

function addressOf(path: string, parameters: Parameters): URL {
	const url = new URL(`api/v1/${path}`, document.baseURI);
	for (const [key, value] of Object.entries(parameters))
		for (const item of Array.isArray(value) ? value : [value ?? ""])
			if (item !== "")
				url.searchParams.append(key, String(item));
	return url;
}

/* With the name of an answer that is here already, 304 says that there is no newer one. */
async function ask(
	path: string, parameters: Parameters, signal?: AbortSignal, method = "GET", etag = "",
): Promise<Response> {
	const url = addressOf(path, parameters);
	let response: Response;
	try {
		response = await fetch(url, { signal, method, headers: etag ? { "if-none-match": etag } : {} });
	} catch (error) {
		if (signal?.aborted)
			throw error;
		throw new ApiError("The server does not answer.", 0, url.href);
	}
	if (!response.ok && !(etag && response.status === 304))
		throw new ApiError(
			await errorText(response), response.status, url.href,
			retryAfterMs(response.headers.get("retry-after"), Date.now()));
	return response;
}

/* All of an answer; a server may go away in the middle of it. */
async function bodyOf<T>(response: Response, form: "json" | "text" | "arrayBuffer"): Promise<T> {
	try {
		return (await response[form]()) as T;
	} catch (error) {
		if (error instanceof TypeError)
			throw new ApiError("The answer was cut off.", 0, response.url);
		throw error;
	}
}

async function errorText(response: Response): Promise<string> {
	const text = await response.text().catch(() => "");
	try {
		const { error } = JSON.parse(text) as { error?: unknown };
		if (typeof error === "string")
			return error;
	} catch {
		/* not JSON: say it as it is */
	}
	return text.slice(0, 300) || `${response.status} ${response.statusText}`;
}

export async function askJson<T>(path: string, parameters: Parameters, signal?: AbortSignal): Promise<T> {
	return bodyOf(await ask(path, parameters, signal), "json");
}

/* A request that changes something. */
export async function postJson<T>(path: string, parameters: Parameters): Promise<T> {
	return bodyOf(await ask(path, parameters, undefined, "POST"), "json");
}

/* The last answers that name themselves, by address: they are asked for again and again while they are looked at. */
const kept = new Map<string, { etag: string; value: unknown }>();
const KEPT_MAX = 8;

/* The same object as before while the server has nothing newer. */
async function askIfChanged<T>(path: string, parameters: Parameters, signal?: AbortSignal): Promise<T> {
	const { href } = addressOf(path, parameters);
	const known = kept.get(href);
	const response = await ask(path, parameters, signal, "GET", known?.etag);
	if (known && response.status === 304)
		return known.value as T;
	const value = await bodyOf<T>(response, "json");
	const etag = response.headers.get("etag");
	kept.delete(href);
	if (etag)
		kept.set(href, { etag, value });
	for (const oldest of [...kept.keys()].slice(0, Math.max(0, kept.size - KEPT_MAX)))
		kept.delete(oldest);
	return value;
}

/* How many queries of that id were told to stop. */
export async function askToStop(id: string): Promise<number> {
	const response = await ask("queries", { id }, undefined, "DELETE");
	return (await bodyOf<{ cancelled: number }>(response, "json")).cancelled;
}

/* And whether more than one named service sends. */
export const fetchTypes = (range: TimeRange, signal?: AbortSignal) =>
	askJson<{ types: ProfileType[]; several_services: boolean }>("types", { ...range }, signal);

export async function fetchLabels(query: string, range: TimeRange, signal?: AbortSignal): Promise<string[]> {
	const response = await ask("labels", { query, ...range }, signal);
	return (await bodyOf<{ labels: string[] }>(response, "json")).labels;
}

export async function fetchLabelValues(
	label: string, query: string, range: TimeRange, signal?: AbortSignal,
): Promise<string[]> {
	const response = await ask("label_values", { label, query, ...range }, signal);
	return (await bodyOf<{ values: string[] }>(response, "json")).values;
}

export async function fetchSeries(
	query: string, range: TimeRange, stepMs: number, sumBy: string, signal?: AbortSignal,
): Promise<SeriesAnswer> {
	return askIfChanged("series", { query, ...range, step: `${stepMs / 1000}s`, sum_by: sumBy }, signal);
}

/* What a tree is of. */
export interface TreeQuery {
	query: string;
	range: TimeRange;
	groupBy: string[];
	demangle: string;
	filters: string[];
	/* Only these moments, "" for all; `times` "0": by the start of reports, not the times of samples. */
	cells: string;
	times: string;
}

/* As long as the flame graph waits for names: what is missing then is asked for again. */
const NAMES_WAIT = "1s";

const treeParameters = ({ query, range, groupBy, demangle, filters, cells, times }: TreeQuery) =>
	({ query, ...range, group_by: groupBy.join(","), demangle, filter: filters, cells, times });

export interface ProfileBytes {
	bytes: ArrayBuffer;
	/* Names the answer; "" when it has no name. */
	etag: string;
	/* As it was sent. */
	sent: number;
}

/* The flame graph in its binary form; width 0 is everything. Null when it is still the one named `etag`. */
export async function fetchProfileBytes(
	query: TreeQuery, width: number, id: string, signal?: AbortSignal, etag = "",
): Promise<ProfileBytes | null> {
	const response = await ask("query", {
		...treeParameters(query), format: "binary", width: width || undefined, id,
	}, signal, "GET", etag);
	if (response.status === 304)
		return null;
	const bytes = await bodyOf<ArrayBuffer>(response, "arrayBuffer");
	return {
		bytes, etag: response.headers.get("etag") ?? "",
		sent: Number(response.headers.get("content-length")) || bytes.byteLength,
	};
}

/* How far the server is with the query of that id; null when it is not at it. */
export async function fetchProgress(
	id: string, signal?: AbortSignal,
): Promise<{ bytes_done: number; bytes_all: number } | null> {
	const response = await ask("queries", { id }, signal);
	const { queries } = await bodyOf<{ queries: { bytes_done: number; bytes_all: number }[] }>(
		response, "json");
	return queries.reduce<{ bytes_done: number; bytes_all: number } | null>((sum, each) => ({
		bytes_done: (sum?.bytes_done ?? 0) + each.bytes_done, bytes_all: (sum?.bytes_all ?? 0) + each.bytes_all,
	}), null);
}

/* What of a comparison is more than noise, by function. */
export async function fetchSignificance(
	{ query, range, demangle, filters }: TreeQuery, base: { query: string; range: TimeRange },
	signal?: AbortSignal,
): Promise<Significance> {
	return askIfChanged("diff", {
		query, ...range, demangle, filter: filters, format: "table", significance: "1", names_wait: NAMES_WAIT,
		base_query: base.query, base_from: base.range.from, base_to: base.range.to,
	}, signal);
}

/* Where it is in another format. */
export function queryUrl(query: TreeQuery, format: string): string {
	return addressOf("query", { ...treeParameters(query), format }).href;
}

/* Values by line of source; line 0 is what says no line. */
export interface LinesAnswer {
	total: number;
	files: {
		file: string; mapping: string; build_id: string; self: number; total: number;
		lines: [line: number, self: number, total: number][];
	}[];
}

export interface InstructionsAnswer {
	total: number;
	parts: {
		build_id: string; mapping: string; self: number; total: number; architecture?: string; reason?: string;
		instructions?: {
			address: string; text: string; self: number; total: number; file?: string; line?: number;
		}[];
		addresses?: [address: string, self: number, total: number][];
	}[];
}

export async function fetchLines(
	query: TreeQuery, fn: string, signal?: AbortSignal,
): Promise<LinesAnswer> {
	return askIfChanged("lines", { ...treeParameters({ ...query, groupBy: [] }), function: fn }, signal);
}

export async function fetchInstructions(
	query: TreeQuery, fn: string, signal?: AbortSignal,
): Promise<InstructionsAnswer> {
	const parameters = { ...treeParameters({ ...query, groupBy: [] }), function: fn };
	return askIfChanged("instructions", parameters, signal);
}

export async function fetchSource(buildId: string, file: string, signal?: AbortSignal): Promise<string> {
	return bodyOf(await ask("source", { build_id: buildId, file }, signal), "text");
}

export async function fetchHeatmap(
	query: string, range: TimeRange, columnMs: number, rows: number, signal?: AbortSignal,
): Promise<HeatmapAnswer> {
	return askIfChanged("heatmap", { query, ...range, column: `${columnMs / 1000}s`, rows }, signal);
}

export async function fetchFlameChart(
	query: TreeQuery, by: string, stepMs: number, signal?: AbortSignal,
): Promise<FlameChartAnswer> {
	const parameters = { ...treeParameters({ ...query, groupBy: [] }), by, step: `${stepMs}ms` };
	return askIfChanged("flamechart", parameters, signal);
}

export async function fetchCallGraph(
	query: TreeQuery, limit: number, signal?: AbortSignal,
): Promise<CallGraphAnswer> {
	return askIfChanged("callgraph", { ...treeParameters({ ...query, groupBy: [] }), limit }, signal);
}
