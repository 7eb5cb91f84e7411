// SPDX-License-Identifier: Apache-2.0
/*
 * chart - a series answer as the columns that the chart draws: one x column of bucket starts in
 * seconds, one y column per line, in the unit shown (cores, bytes, counts).
 *
 * A bucket without any report is a gap. If a bucket has reports of other lines only, this line is
 * zero there, for values that add up over time.
 */
import type { SeriesAnswer } from "./answers";
import type { Unit } from "./quantity";
import type { Span } from "./timerange";

const LINES_MAX = 200;

export interface Chart {
	xs: number[];
	lines: { label: string; labels: Record<string, string>; ys: (number | null)[]; mean: number }[];
	/* Lines that are not drawn. */
	hidden: number;
	stepMs: number;
}

type Source = SeriesAnswer["series"][number];

function sum(source: Source): number {
	return source.points.reduce((total, point) => total + point[2], 0);
}

/*
 * Of values that add up, all of them over `seconds`: what the area under the line is, empty buckets included. Of
 * others, of the buckets that have one.
 */
function meanOf(isDelta: boolean, source: Source, ys: readonly (number | null)[], seconds: number): number {
	if (isDelta)
		return source.points.reduce((total, point) => total + point[1], 0) / seconds;
	const present = ys.filter((value): value is number => value !== null);
	return present.reduce((total, value) => total + value, 0) / Math.max(1, present.length);
}

function labelOf(labels: Record<string, string>): string {
	const values = Object.values(labels).filter(Boolean);
	return values.join(", ") || (Object.keys(labels).length ? "(none)" : "all");
}

/* Means are over the `covered` seconds of the range that have data; 0 when that is not known: over all of it. */
export function chartOf(answer: SeriesAnswer, span: Span, unit: Unit, covered = 0): Chart {
	const seconds = covered || Math.max(1, span.toMs - span.fromMs) / 1000;
	const step = Math.max(1, answer.step_ms);
	const first = Math.floor(span.fromMs / step) * step;
	const count = Math.max(1, Math.min(20_000, Math.ceil((span.toMs - first) / step)));
	const xs = Array.from({ length: count }, (_, index) => (first + index * step) / 1000);
	const scale = unit.kind === "time" ? unit.scale / 1e9 : 1;
	const reported = new Uint8Array(count);
	const indexOf = (at: number) => Math.round((at - first) / step);
	for (const source of answer.series)
		for (const [at] of source.points)
			reported[indexOf(at)] = 1;
	const ranked = answer.series.slice().sort((a, b) => sum(b) - sum(a));
	const lines = ranked.slice(0, LINES_MAX).map((source) => {
		const ys: (number | null)[] = Array.from(reported, (there) => (there && answer.delta ? 0 : null));
		for (const [at, , perSecond] of source.points)
			if (indexOf(at) >= 0 && indexOf(at) < count)
				ys[indexOf(at)] = perSecond * scale;
		const mean = meanOf(answer.delta, source, ys, seconds) * (answer.delta ? scale : 1);
		return { label: labelOf(source.labels), labels: source.labels, ys, mean };
	});
	return { xs, lines, hidden: ranked.length - lines.length, stepMs: step };
}
