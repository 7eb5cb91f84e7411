// SPDX-License-Identifier: Apache-2.0
/*
 * overlay - the marks that change with every move of the pointer, on a canvas of their own so that
 * the base canvas is not repainted: the hovered box, the selected box, and other boxes of the same
 * function or of a legend's category.
 */
import { type Profile, depthOf, firstEndingAfter } from "../model/profile";
import type { FlameTheme } from "./theme";
import { type Surface, type Viewport, boxOf, rowsShown } from "./viewport";

export interface Marks {
	hover: number;
	/* The box that the keyboard and the details pane are on; -1 for none. */
	cursor: number;
	/* Whether the cursor shows the focus ring. */
	ring: boolean;
	/* Functions to outline, or null. */
	functions: ((fn: number) => boolean) | null;
}

function outline(
	context: CanvasRenderingContext2D, box: { x: number; y: number; width: number; height: number }, line: number,
): void {
	const width = Math.max(box.width - 1, line);
	context.lineWidth = line;
	context.strokeRect(box.x + line / 2, box.y + line / 2, Math.max(0, width - line), box.height - line);
}

function outlineFunctions(
	context: CanvasRenderingContext2D, profile: Profile, view: Viewport, surface: Surface,
	wanted: (fn: number) => boolean,
): void {
	const scale = surface.width / (view.right - view.left);
	const [first, last] = rowsShown(view, profile, surface);
	for (let depth = Math.max(1, first); depth < last; depth++) {
		const end = profile.rowStart[depth + 1]!;
		let node = firstEndingAfter(profile, profile.rowStart[depth]!, end, view.left);
		while (node < end && profile.start[node]! < view.right) {
			const width = profile.total[node]! * scale;
			if (width < 1) {
				const pixel = Math.floor((profile.start[node]! - view.left) * scale) + 1;
				node = firstEndingAfter(profile, node + 1, end, view.left + pixel / scale);
				continue;
			}
			if (wanted(profile.func[node]!))
				outline(context, boxOf(view, profile, surface, node), 1);
			node++;
		}
	}
}

export function paintOverlay(
	context: CanvasRenderingContext2D, profile: Profile, view: Viewport, surface: Surface,
	theme: FlameTheme, ratio: number, marks: Marks,
): void {
	context.setTransform(1, 0, 0, 1, 0, 0);
	context.clearRect(0, 0, Math.ceil(surface.width * ratio), Math.ceil(surface.height * ratio));
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.strokeStyle = theme.hover;
	if (marks.functions)
		outlineFunctions(context, profile, view, surface, marks.functions);
	if (marks.cursor > 0 || (marks.cursor === 0 && marks.ring)) {
		context.strokeStyle = marks.ring ? theme.focus : theme.hover;
		outline(context, boxOf(view, profile, surface, marks.cursor), marks.ring ? 2 : 1.5);
	}
	if (marks.hover >= 0) {
		const box = boxOf(view, profile, surface, marks.hover);
		context.globalAlpha = 0.1;
		context.fillStyle = theme.hover;
		context.fillRect(box.x, box.y, Math.max(1, box.width - 1), box.height);
		context.globalAlpha = 1;
		context.strokeStyle = theme.hover;
		outline(context, box, 1);
	}
}

/* Moving through the tree by keys: the neighbour of a node in a direction, or the node itself. */
export function neighbour(profile: Profile, node: number, direction: "up" | "down" | "left" | "right"): number {
	const depth = depthOf(profile, node);
	if (direction === "up")
		return node === 0 ? 0 : profile.parent[node]!;
	if (direction === "down") {
		if (depth + 1 >= profile.rows)
			return node;
		const end = profile.rowStart[depth + 2]!;
		const first = firstEndingAfter(profile, profile.rowStart[depth + 1]!, end, profile.start[node]!);
		return widestChild(profile, node, first, end);
	}
	const next = node + (direction === "right" ? 1 : -1);
	return next >= profile.rowStart[depth]! && next < profile.rowStart[depth + 1]! ? next : node;
}

function widestChild(profile: Profile, node: number, from: number, end: number): number {
	let widest = node;
	let most = 0;
	for (let at = from; at < end && profile.parent[at] === node; at++) {
		if (profile.total[at]! > most) {
			widest = at;
			most = profile.total[at]!;
		}
	}
	return widest;
}
