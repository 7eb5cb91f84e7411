// SPDX-License-Identifier: Apache-2.0
/* svg - the picture as a file: the boxes of a profile from one node down, with its callers above. */
import type { Colouring } from "../model/colours";
import { GROUP, TRIMMED, type Profile, depthOf, nodeName } from "../model/profile";
import { shorten } from "../model/shortname";
import { STEP_COUNT, TONES, type FlameTheme } from "./theme";

const ROW = 18;
const HEAD = 26;
const CHAR = 7.23;
const LABEL_WIDTH_MIN = 28;

export interface Picture {
	profile: Profile;
	colouring: Colouring;
	theme: FlameTheme;
	/* Everything below it is drawn. */
	focus: number;
	width: number;
	title: string;
	/* What is said of a box besides its name. */
	describe(node: number): string;
}

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/* What XML cannot hold is shown as what it is not. */
function escaped(text: string): string {
	return text
		.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
		.replace(/[&<>"]/g, (char) => ESCAPES[char]!);
}

function fillOf({ profile, colouring, theme }: Picture, node: number): string {
	const flags = profile.flags[node]!;
	if (flags & TRIMMED) return theme.trimmed;
	if (colouring.steps) return theme.steps[(STEP_COUNT - 1) / 2 + colouring.steps[node]!]!;
	if (node === 0) return theme.neutral;
	if (flags & GROUP) return theme.group;
	const fn = profile.func[node]!;
	return theme.fills[colouring.slots[fn]! * TONES + colouring.tones[fn]!]!;
}

function boxText(picture: Picture, node: number, depth: number): string {
	const { profile, focus, width } = picture;
	const scale = width / profile.total[focus]!;
	const from = profile.start[focus]!;
	const left = Math.max(0, (profile.start[node]! - from) * scale);
	const right = Math.min(width, (profile.start[node]! + profile.total[node]! - from) * scale);
	const size = right - left;
	const y = HEAD + depth * ROW;
	const name = nodeName(profile, node);
	const label = size >= LABEL_WIDTH_MIN ? shorten(name, Math.floor((size - 8) / CHAR)) : "";
	return (
		`<g><title>${escaped(`${name}\n${picture.describe(node)}`)}</title>` +
		`<rect x="${left.toFixed(1)}" y="${y}" width="${Math.max(0.5, size - 0.5).toFixed(1)}" ` +
		`height="${ROW - 1}" fill="${fillOf(picture, node)}"/>` +
		(label && `<text x="${(left + 4).toFixed(1)}" y="${y + 12.5}">${escaped(label)}</text>`) +
		"</g>\n"
	);
}

/* Boxes of at least half a pixel; what is narrower stands in no picture. */
export function svgText(picture: Picture): string {
	const { profile, focus, width, theme } = picture;
	const from = profile.start[focus]!;
	const end = from + profile.total[focus]!;
	const least = profile.total[focus]! / width / 2;
	const focusDepth = depthOf(profile, focus);
	const body: string[] = [];
	let rows = 0;
	for (let depth = 0; depth < profile.rows; depth++)
		for (let node = profile.rowStart[depth]!; node < profile.rowStart[depth + 1]!; node++) {
			const [start, total] = [profile.start[node]!, profile.total[node]!];
			const above = depth < focusDepth;
			if (start + total <= from || start >= end || total < least) continue;
			if (above && !(start <= from && start + total >= end)) continue;
			body.push(boxText(picture, node, depth));
			rows = depth + 1;
		}
	const height = HEAD + rows * ROW + 4;
	return (
		`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
		`viewBox="0 0 ${width} ${height}" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', ` +
		`monospace" font-size="12" fill="${theme.text}">\n` +
		`<rect width="100%" height="100%" fill="${theme.background}"/>\n` +
		`<text x="4" y="17" fill="${theme.callerText}">${escaped(picture.title)}</text>\n` +
		`${body.join("")}</svg>\n`
	);
}
