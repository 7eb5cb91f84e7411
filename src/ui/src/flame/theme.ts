// SPDX-License-Identifier: Apache-2.0
/* theme - the canvas reads its colours from the same CSS variables as everything else. */
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
}

export const TONES = 3;

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
	};
}

/* "#rrggbb" made lighter or darker. */
function shade(colour: string, factor: number): string {
	const value = parseInt(colour.slice(1), 16);
	if (!/^#[0-9a-f]{6}$/i.test(colour))
		return colour;
	const part = (shift: number) => Math.min(255, Math.round(((value >> shift) & 255) * factor));
	return `rgb(${part(16)},${part(8)},${part(0)})`;
}
