// SPDX-License-Identifier: Apache-2.0
/* operations - the pages' requests to the server (docs/api.md): senders, stored data, running queries. */
import type { TimeRange } from "../model/timerange";
import { askJson, askToStop, postJson } from "./api";

export interface Target {
	peer: string;
	sender: string;
	labels: Record<string, string>;
	first_ms: number;
	last_ms: number;
	interval_ms: number;
	requests: number;
	reports: number;
	bytes: number;
	samples: number;
	samples_per_s: number;
	/* Since the sender's start, as it says itself. */
	lost: number;
	lost_ms?: number;
	refused: number;
	errors: number;
	last_error?: string;
	last_error_ms?: number;
}

/* One profile of a target that the server asks; Prometheus' names. */
export interface ScrapedTarget {
	discoveredLabels: Record<string, string>;
	labels: Record<string, string>;
	profile: string;
	scrapePool: string;
	scrapeUrl: string;
	lastError: string;
	lastScrape: string;
	lastScrapeDuration: number;
	nextScrape: string;
	health: "up" | "down" | "unknown";
}

export interface Scraped {
	activeTargets: ScrapedTarget[];
	droppedTargets: { discoveredLabels: Record<string, string>; scrapePool: string; reason: string }[];
	droppedTargetCounts: Record<string, number>;
	discoveryErrors: { scrapePool: string; discovery: string; line: number; error: string }[];
}

export interface Service {
	service: string;
	/* Over the time that CPU time is known of; null: this service has none. */
	cores_mean: number | null;
	share: number | null;
	/* By step; null: nothing is known of it. */
	cores: (number | null)[];
	/* The name of the profiles that cores are of. */
	cores_of: string;
	/* One for each name of profiles. */
	types: string[];
	/* Since the server's start. */
	senders: { sender: string; last_ms: number }[];
	newest_ms: number;
}

export interface Services {
	from_ms: number;
	to_ms: number;
	step_ms: number;
	now_ms: number;
	cores_mean: number;
	left_out: number;
	services: Service[];
}

export interface Targets {
	now_ms: number;
	targets: Target[];
	data?: Scraped;
}

export interface Status {
	version: string;
	uptime_s: number;
	started_ms: number;
	now_ms: number;
	build: { compiler: string; architecture: string; kernel: string };
	memory: { resident_bytes: number; queries_bytes: number; queries_limit_bytes: number | null };
	retention: { time_s: number | null; bytes: number | null };
	disk: { path?: string; bytes?: number; free_bytes?: number };
	/* Only of a server with a bucket. */
	bucket?: {
		behind_s: number; saved_ms: number; manifest: number; parts: number; fenced: boolean;
		looked_ms?: number; // only where the server shows what others write
		store?: string; error?: string;
	};
	/* Only of a server that keeps profiles in another one. */
	remote?: { kind: string; answers: boolean; error?: string };
	store: {
		rows: number;
		reports: number;
		series: number;
		stacks: number;
		parts: number;
		parts_quarantined: number;
		memtables: number;
		oldest_ms: number;
		newest_ms: number;
		poisoned: boolean;
		bytes: Record<"total" | "wal" | "samples" | "stacks" | "symbols" | "rollups" | "sample_times", number>;
	};
}

export interface RunningQuery {
	id: string;
	path: string;
	query: string;
	from_ms: number;
	to_ms: number;
	by: string;
	took_ms: number;
	bytes_done: number;
	bytes_all: number;
	cancelled: boolean;
}

export interface Debuginfo {
	files: {
		build_id: string;
		kind: "program" | "debug" | "sources" | "package";
		name: string;
		from: string;
		bytes: number;
		quality?: string;
		uploaded_ms: number;
		used_ms: number;
	}[];
	coming: { build_id: string; state: string; bytes: number; received: number }[];
	/* With bytes while it is fetched; `bytes` 0: how many there are is not known. */
	debuginfod: {
		build_id: string; state: string; why?: string; at_ms: number; received?: number; bytes?: number;
	}[];
	/* The costliest first: of an answer's CPU time `of_ns`, `cost_ns` was spent in it without names. */
	missing: {
		build_id: string; name: string; code: string; reason: string; detail?: string; command?: string;
		cost_ns: number; of_ns: number; package?: string; install?: string;
	}[];
}

/* Whether the debuginfod servers that this server offers may be asked, and how far their fetches are. */
export interface Consent {
	offer: { consent: "not offered" | "configured" | "unanswered" | "yes" | "no"; servers: string[] };
	progress: { waiting: number; fetching: number; here: number; not_there: number; failed: number };
}

export const fetchServices = (query: string, range: TimeRange, signal?: AbortSignal) =>
	askJson<Services>("services", { query, ...range }, signal);
export const fetchTargets = (signal?: AbortSignal) => askJson<Targets>("targets", {}, signal);
export const fetchStatus = (signal?: AbortSignal) => askJson<Status>("status", {}, signal);
export const fetchDebuginfo = (signal?: AbortSignal) => askJson<Debuginfo>("debuginfo", {}, signal);

export const fetchConsent = (signal?: AbortSignal) => askJson<Consent>("debuginfo/consent", {}, signal);
export const answerConsent = (answer: "yes" | "no") => postJson<Consent>("debuginfo/consent", { answer });

export const fetchQueries = async (signal?: AbortSignal) =>
	(await askJson<{ queries: RunningQuery[] }>("queries", {}, signal)).queries;

export const stopQuery = (id: string) => askToStop(id);
