// SPDX-License-Identifier: Apache-2.0
/* moments - cells chosen in the heatmap, as spans of milliseconds: half open, disjoint and in order. */
import { formatTime } from "./quantity";
import type { Span } from "./timerange";

const SPANS_MAX = 32;

export const lengthOf = (spans: readonly Span[]) => spans.reduce((sum, span) => sum + span.toMs - span.fromMs, 0);

/* In order, those that touch joined. */
export function mergeSpans(spans: readonly Span[]): Span[] {
	const merged: Span[] = [];
	for (const span of spans.slice().sort((a, b) => a.fromMs - b.fromMs)) {
		const last = merged.at(-1);
		if (last && span.fromMs <= last.toMs)
			last.toMs = Math.max(last.toMs, span.toMs);
		else
			merged.push({ ...span });
	}
	return merged;
}

export function parseCells(text: string): Span[] {
	const spans: Span[] = [];
	for (const part of text.split(",").slice(0, SPANS_MAX)) {
		const [, from, to] = /^(\d{1,15})-(\d{1,15})$/.exec(part) ?? [];
		if (from && to && Number(from) < Number(to))
			spans.push({ fromMs: Number(from), toMs: Number(to) });
	}
	return mergeSpans(spans);
}

export function formatCells(spans: readonly Span[]): string {
	return mergeSpans(spans).slice(0, SPANS_MAX)
		.map(({ fromMs, toMs }) => `${Math.round(fromMs)}-${Math.round(toMs)}`).join(",");
}

/* "10 s", "1.5 min" */
export const lengthText = (ms: number) => formatTime(ms * 1e6).replace(/\.0+(?=\D)/, "");
