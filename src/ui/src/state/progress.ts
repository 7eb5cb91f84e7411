// SPDX-License-Identifier: Apache-2.0
/* progress - polls the server, by the query's id, for the progress of the running query. */
import { signal } from "@preact/signals";
import { fetchProgress } from "../data/api";

export interface Progress {
	bytesDone: number;
	/* 0 until it is known what is to be read. */
	bytesAll: number;
	tookMs: number;
}

export const progress = signal<Progress | null>(null);

const FIRST_MS = 700;
const EVERY_MS = 400;

const serial = Math.random().toString(36).slice(2, 10);
let queries = 0;

/* An id for one query, which no other page uses. */
export function newQueryId(): string {
	return `ui-${serial}-${++queries}`;
}

/* Follows a query until `done` aborts. */
export function followProgress(id: string, done: AbortSignal): void {
	const began = performance.now();
	let timer = setTimeout(ask, FIRST_MS);
	done.addEventListener("abort", () => {
		clearTimeout(timer);
		progress.value = null;
	});
	async function ask(): Promise<void> {
		/* What an older server does not tell, time tells. */
		const told = await fetchProgress(id, done).catch(() => null);
		if (done.aborted)
			return;
		progress.value = {
			bytesDone: told?.bytes_done ?? 0, bytesAll: told?.bytes_all ?? 0,
			tookMs: performance.now() - began,
		};
		timer = setTimeout(ask, EVERY_MS);
	}
}
