// SPDX-License-Identifier: Apache-2.0
/* trend - a sparkline, as high as its largest value; steps without data are gaps. */
import type { JSX } from "preact";
import { digits } from "../../model/quantity";

const WIDTH = 140;
const HEIGHT = 26;
const EDGE = 2;

type Point = [x: number, y: number];

/* Runs of known values. */
function runsOf(values: readonly (number | null)[], highest: number): Point[][] {
	const runs: Point[][] = [];
	let open = false;
	values.forEach((value, at) => {
		if (value === null) {
			open = false;
			return;
		}
		const x = values.length > 1 ? (at / (values.length - 1)) * WIDTH : WIDTH / 2;
		const y = HEIGHT - EDGE - (highest > 0 ? (value / highest) * (HEIGHT - 2 * EDGE) : 0);
		if (!open) runs.push([]);
		open = true;
		runs.at(-1)!.push([x, y]);
	});
	return runs;
}

/* One step alone is a dash. */
const lineOf = (run: Point[]) => {
	const [first] = run;
	const points: Point[] = run.length > 1 ? run : [[first![0] - 1, first![1]], [first![0] + 1, first![1]]];
	return points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
};

export function Trend({ cores }: { cores: readonly (number | null)[] }): JSX.Element {
	const known = cores.filter((value): value is number => value !== null);
	if (!known.length) return <span class="muted">–</span>;
	const highest = Math.max(...known);
	const words = `between ${digits(Math.min(...known))} and ${digits(highest)} cores`;
	return (
		<svg class="trend" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={words}>
			<title>{words}</title>
			{runsOf(cores, highest).map((run) => (
				<polyline key={run[0]![0]} points={lineOf(run)} />
			))}
		</svg>
	);
}
