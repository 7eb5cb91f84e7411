// SPDX-License-Identifier: Apache-2.0
/*
 * painter - draws the visible part of a profile: the base canvas.
 *
 * Three steps: collect the visible boxes (row by row, by binary search; boxes narrower than a device
 * pixel become one sliver per pixel), fill their pixels, then write the labels. The cost depends on
 * the size of the screen, not on that of the profile.
 */
import { GROUP, TRIMMED, type Profile, firstEndingAfter } from "../model/profile";
import type { Colouring } from "../model/colours";
import type { Matches } from "../model/search";
import { LABEL_PADDING, LABEL_WIDTH_MIN, type Labels } from "./labels";
import { RowImage, pixelOf } from "./row_image";
import { STEP_COUNT, TONES, type FlameTheme } from "./theme";
import { rowTop, rowsShown, type Surface, type Viewport } from "./viewport";

export interface Scene {
	profile: Profile;
	colouring: Colouring;
	matches: Matches | null;
	view: Viewport;
	surface: Surface;
	theme: FlameTheme;
	labels: Labels;
	/* Device pixels per CSS pixel. */
	ratio: number;
	/* Boxes above this one are its callers: shown faded. */
	focus: number;
	focusDepth: number;
	/* What stands before a box's name. */
	prefix: ((node: number) => string) | null;
}

/* Narrower boxes touch, so that many of them read as one surface rather than as a comb. */
const GAP_WIDTH_MIN = 4;

/* Fills beyond the palette's slots. */
const enum Fill { Neutral, Group, Dim, Trimmed, Count }
const PALETTE = 9 * TONES;
/* Behind those, the steps of a comparison. */
const STEPS_AT = PALETTE + Fill.Count;

/* In place of a node: a sliver, which stands for many. */
const NO_NODE = 0xffffffff;

/* Boxes of one frame, in device pixels; reused from frame to frame. */
class Boxes {
	count = 0;
	x = new Float32Array(1024);
	y = new Float32Array(1024);
	width = new Float32Array(1024);
	node = new Uint32Array(1024);
	fill = new Uint8Array(1024);
	hit = new Uint8Array(1024);

	clear(): void {
		this.count = 0;
	}

	add(x: number, y: number, width: number, node: number, fill: number, hit: number): void {
		if (this.count === this.x.length)
			this.grow();
		const at = this.count++;
		this.x[at] = x;
		this.y[at] = y;
		this.width[at] = width;
		this.node[at] = node;
		this.fill[at] = fill;
		this.hit[at] = hit;
	}

	/* One pixel of no node; widens the sliver to its left when that looks the same. */
	addSliver(x: number, y: number, fill: number, hit: number): void {
		const last = this.count - 1;
		const joins = last >= 0 && this.node[last] === NO_NODE && this.y[last] === y &&
			this.fill[last] === fill && this.hit[last] === hit && this.x[last]! + this.width[last]! === x;
		if (joins)
			this.width[last]!++;
		else
			this.add(x, y, 1, NO_NODE, fill, hit);
	}

	private grow(): void {
		const size = this.x.length * 2;
		const wider = <T extends Float32Array | Uint32Array | Uint8Array>(old: T, fresh: T): T => {
			fresh.set(old);
			return fresh;
		};
		this.x = wider(this.x, new Float32Array(size));
		this.y = wider(this.y, new Float32Array(size));
		this.width = wider(this.width, new Float32Array(size));
		this.node = wider(this.node, new Uint32Array(size));
		this.fill = wider(this.fill, new Uint8Array(size));
		this.hit = wider(this.hit, new Uint8Array(size));
	}
}

const boxes = new Boxes();

function fillOf(scene: Scene, node: number, hit: number): number {
	const { profile, colouring, matches } = scene;
	const flags = profile.flags[node]!;
	if (flags & TRIMMED)
		return PALETTE + Fill.Trimmed;
	if (matches && !hit)
		return PALETTE + Fill.Dim;
	if (colouring.steps)
		return STEPS_AT + STEP_COUNT / 2 - 0.5 + colouring.steps[node]!;
	if (node === 0)
		return PALETTE + Fill.Neutral;
	if (flags & GROUP)
		return PALETTE + Fill.Group;
	const fn = profile.func[node]!;
	return colouring.slots[fn]! * TONES + colouring.tones[fn]!;
}

function collectRow(scene: Scene, depth: number, y: number): void {
	const { profile, matches, view, surface, ratio } = scene;
	const { start, total, func, flags } = profile;
	const scale = (surface.width * ratio) / (view.right - view.left);
	const end = profile.rowStart[depth + 1]!;
	const rightEdge = surface.width * ratio;
	let node = firstEndingAfter(profile, profile.rowStart[depth]!, end, view.left);
	while (node < end && start[node]! < view.right) {
		const x0 = Math.max(0, Math.round((start[node]! - view.left) * scale));
		const x1 = Math.min(rightEdge, Math.round((start[node]! + total[node]! - view.left) * scale));
		const hit = matches && node > 0 && !(flags[node]! & TRIMMED) ? matches.functions[func[node]!]! : 0;
		if (x1 - x0 > 1) {
			boxes.add(x0, y, x1 - x0, node, fillOf(scene, node, hit), hit);
			node++;
			continue;
		}
		/* A sliver stands for all that end within its pixel, in the plain tone of the first. */
		const next = firstEndingAfter(profile, node + 1, end, view.left + (x0 + 1) / scale);
		const match = !matches || hit ? node : firstMatch(scene, node + 1, next);
		const marked = matches && match >= 0 ? 1 : 0;
		const fill = marked ? fillOf(scene, match, 1) : fillOf(scene, node, hit);
		boxes.addSliver(x0, y, fill < PALETTE ? fill - (fill % TONES) : fill, marked);
		node = next;
	}
}

/* The first match among the nodes that a sliver stands for, or -1: it is that one's colour. */
function firstMatch(scene: Scene, from: number, to: number): number {
	const { func } = scene.profile;
	const { functions } = scene.matches!;
	for (let node = from; node < to; node++)
		if (functions[func[node]!])
			return node;
	return -1;
}

/* Returns the tops of the rows on screen, the nearest to the root first. */
function collect(scene: Scene): number[] {
	const { profile, view, surface, ratio } = scene;
	boxes.clear();
	const tops = [];
	const [first, last] = rowsShown(view, profile, surface);
	for (let depth = first; depth < last; depth++) {
		const top = Math.round(rowTop(view, surface, depth) * ratio);
		tops.push(top);
		collectRow(scene, depth, top);
	}
	return tops;
}

const rowImage = new RowImage();

function fillColours(theme: FlameTheme): number[] {
	return [...theme.fills, theme.neutral, theme.group, theme.dim, theme.trimmed, ...theme.steps].map(pixelOf);
}

/*
 * A match too narrow for an outline keeps its own colour among those that are dimmed: outlines side by side would be
 * one black surface.
 */
const OUTLINED_MIN = 8;
const isOutlined = (i: number, ratio: number) =>
	boxes.hit[i] === 1 && boxes.node[i] !== NO_NODE && boxes.width[i]! >= OUTLINED_MIN * ratio;

function paintFills(context: CanvasRenderingContext2D, scene: Scene, tops: number[]): void {
	const { surface, ratio, theme } = scene;
	const colours = fillColours(theme);
	const gapped = GAP_WIDTH_MIN * ratio;
	rowImage.begin(Math.ceil(surface.width * ratio), tops, pixelOf(theme.background));
	let row = 0;
	for (let i = 0; i < boxes.count; i++) {
		while (tops[row] !== boxes.y[i])
			row++;
		const width = boxes.width[i]!;
		const gap = width > gapped && boxes.node[i] !== NO_NODE ? 1 : 0;
		rowImage.fill(row, boxes.x[i]!, width - gap, colours[boxes.fill[i]!]!);
	}
	rowImage.draw(context, Math.round(surface.rowHeight * ratio) - 1);
}

/* What only one side of a comparison has is hatched: a cue besides the colour. */
function paintHatch(context: CanvasRenderingContext2D, scene: Scene): void {
	const { ratio, surface, theme, colouring } = scene;
	const height = Math.round(surface.rowHeight * ratio) - 1;
	const gap = Math.round(6 * ratio);
	context.strokeStyle = theme.hatch;
	context.lineWidth = ratio;
	context.save();
	context.beginPath();
	for (let i = 0; i < boxes.count; i++)
		if (boxes.node[i] !== NO_NODE && boxes.width[i]! > gap && colouring.hatched![boxes.node[i]!])
			context.rect(boxes.x[i]!, boxes.y[i]!, boxes.width[i]! - 1, height);
	context.clip();
	context.beginPath();
	const [right, bottom] = [surface.width * ratio, surface.height * ratio];
	for (let x = -bottom; x < right; x += gap) {
		context.moveTo(x, bottom);
		context.lineTo(x + bottom, 0);
	}
	context.stroke();
	context.restore();
}

/* The callers of what is zoomed to step back behind a veil; their labels are written over it. */
function paintCallers(context: CanvasRenderingContext2D, scene: Scene): void {
	const { theme, surface, view, ratio, focusDepth } = scene;
	if (!focusDepth)
		return;
	const edge = rowTop(view, surface, focusDepth - 1);
	const [top, bottom] = surface.upright ? [edge, surface.height] : [0, edge + surface.rowHeight];
	if (bottom <= 0 || top >= surface.height)
		return;
	context.globalAlpha = theme.veil;
	context.fillStyle = theme.background;
	context.fillRect(0, Math.max(0, top) * ratio, surface.width * ratio, (bottom - Math.max(0, top)) * ratio - 1);
	context.globalAlpha = 1;
}

function paintMatches(context: CanvasRenderingContext2D, scene: Scene): void {
	if (!scene.matches)
		return;
	const { ratio, theme } = scene;
	const height = Math.round(scene.surface.rowHeight * ratio) - 1;
	const line = 1.5 * ratio;
	context.strokeStyle = theme.outline;
	context.lineWidth = line;
	context.beginPath();
	for (let i = 0; i < boxes.count; i++)
		if (isOutlined(i, ratio))
			context.rect(boxes.x[i]! + line / 2, boxes.y[i]! + line / 2, boxes.width[i]! - 1 - line,
				height - line);
	context.stroke();
}

function paintLabels(context: CanvasRenderingContext2D, scene: Scene): void {
	const { profile, theme, surface, labels, ratio, matches } = scene;
	const height = Math.round(surface.rowHeight * ratio) / ratio;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.font = theme.font;
	context.textBaseline = "middle";
	const callersEnd = scene.focusDepth ? profile.rowStart[scene.focusDepth]! : 0;
	const inks = [scene.colouring.steps ? theme.changeText : theme.text, theme.dimText, theme.callerText];
	for (let ink = 0; ink < inks.length; ink++) {
		context.fillStyle = inks[ink]!;
		for (let i = 0; i < boxes.count; i++) {
			const width = boxes.width[i]! / ratio;
			const wanted = boxes.node[i]! < callersEnd ? 2 : matches && !boxes.hit[i] ? 1 : 0;
			if (width < LABEL_WIDTH_MIN || wanted !== ink || boxes.node[i] === NO_NODE)
				continue;
			const label = labels.fit(context, profile, boxes.node[i]!, width, scene.prefix);
			const left = boxes.x[i]! / ratio + LABEL_PADDING;
			if (label)
				context.fillText(label, left, boxes.y[i]! / ratio + height / 2);
		}
	}
	context.setTransform(1, 0, 0, 1, 0, 0);
}

/* Paints everything; returns the number of boxes drawn. */
export function paint(context: CanvasRenderingContext2D, scene: Scene): number {
	const { surface, ratio, theme } = scene;
	context.setTransform(1, 0, 0, 1, 0, 0);
	context.fillStyle = theme.background;
	context.fillRect(0, 0, Math.ceil(surface.width * ratio), Math.ceil(surface.height * ratio));
	paintFills(context, scene, collect(scene));
	if (scene.colouring.hatched)
		paintHatch(context, scene);
	paintCallers(context, scene);
	paintMatches(context, scene);
	paintLabels(context, scene);
	return boxes.count;
}
