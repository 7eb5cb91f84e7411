// SPDX-License-Identifier: Apache-2.0
/* theme - reads the canvas' colours from the CSS variables that the rest of the page uses. */
import { SLOTS } from "../model/colours";

export interface FlameTheme {
	background: string;
	text: string;
	font: string;
	/* fills[slot * TONES + tone]; the last slot is "other". */
	fills: string[];
	neutral: string;
	group: string;
	/* Over the callers of what is zoomed to: opacity of the background, and the text on it. */
	veil: number;
	callerText: string;
	dim: string;
	dimText: string;
	trimmed: string;
	outline: string;
	hover: string;
	focus: string;
	/* Of a comparison: much less ... unchanged ... much more. */
	steps: string[];
	hatch: string;
	changeText: string;
}

export const TONES = 3;
export const STEP_COUNT = 11;

export function readTheme(element: Element): FlameTheme {
	const style = getComputedStyle(element);
	const read = (name: string) => style.getPropertyValue(name).trim();
	const fills: string[] = [];
	for (let slot = 0; slot <= SLOTS; slot++) {
		const base = read(slot < SLOTS ? `--frame-${slot}` : "--frame-other");
		fills.push(base, shade(base, 1.035), shade(base, 0.965));
	}
	return {
		background: read("--surface"),
		text: read("--frame-text"),
		font: `${read("--frame-size")} ${read("--mono")}`,
		fills,
		neutral: read("--frame-root"),
		group: read("--frame-group"),
		veil: Number(read("--frame-veil")),
		callerText: read("--text"),
		dim: read("--frame-dim"),
		dimText: read("--frame-dim-text"),
		trimmed: read("--frame-trimmed"),
		outline: read("--frame-match"),
		hover: read("--frame-hover"),
		focus: read("--accent"),
		steps: stepColours(read("--diff-less"), read("--diff-same"), read("--diff-more")),
		hatch: read("--diff-hatch"),
		changeText: read("--diff-text"),
	};
}

/* From one end over the middle to the other, in equal steps but the first: half-way at once. */
export function stepColours(less: string, same: string, more: string): string[] {
	const half = (STEP_COUNT - 1) / 2;
	return Array.from({ length: STEP_COUNT }, (_, index) => {
		const step = Math.abs(index - half);
		return step ? mixed(same, index < half ? less : more, 0.3 + (0.7 * (step - 1)) / (half - 1)) : same;
	});
}

/* Between two "#rrggbb". */
export function mixed(from: string, to: string, share: number): string {
	const [a, b] = [parseInt(from.slice(1), 16), parseInt(to.slice(1), 16)];
	const part = (shift: number) =>
		Math.round(((a >> shift) & 255) * (1 - share) + ((b >> shift) & 255) * share);
	return `rgb(${part(16)},${part(8)},${part(0)})`;
}

/* "#rrggbb" made lighter or darker. */
function shade(colour: string, factor: number): string {
	const value = parseInt(colour.slice(1), 16);
	if (!/^#[0-9a-f]{6}$/i.test(colour))
		return colour;
	const part = (shift: number) => Math.min(255, Math.round(((value >> shift) & 255) * factor));
	return `rgb(${part(16)},${part(8)},${part(0)})`;
}
