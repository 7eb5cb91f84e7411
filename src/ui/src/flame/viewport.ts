// SPDX-License-Identifier: Apache-2.0
/*
 * viewport - the visible part of the profile, and the arithmetic of moving it.
 *
 * [left, right) is in the profile's unit and always inside [0, total]; scroll is in CSS pixels.
 * Pure: every function returns a new viewport.
 */
import { type Profile, depthOf } from "../model/profile";

export interface Viewport {
	left: number;
	right: number;
	scroll: number;
}

export interface Surface {
	width: number;
	height: number;
	rowHeight: number;
	/* Roots at the bottom; scrolling moves up from there. */
	upright?: boolean;
	/* Rows above it are not shown. */
	firstRow?: number;
}

/* Where a row is drawn, and which row is at a height; in CSS pixels. */
export function rowTop(view: Viewport, surface: Surface, depth: number): number {
	const top = (depth - (surface.firstRow ?? 0)) * surface.rowHeight - view.scroll;
	return surface.upright ? surface.height - top - surface.rowHeight : top;
}

export function rowAt(view: Viewport, surface: Surface, y: number): number {
	const row = Math.floor(((surface.upright ? surface.height - y : y) + view.scroll) / surface.rowHeight);
	return row + (surface.firstRow ?? 0);
}

/* The rows that are, or are partly, on screen: [first, end). */
export function rowsShown(view: Viewport, profile: Profile, surface: Surface): [number, number] {
	const top = (surface.firstRow ?? 0) + view.scroll / surface.rowHeight;
	const end = Math.min(profile.rows, Math.ceil(top + surface.height / surface.rowHeight));
	return [Math.max(0, Math.floor(top)), end];
}

/* One unit fills at most this many pixels, so floating point never shows. */
const PIXELS_PER_UNIT_MAX = 1e5;

export function clampViewport(view: Viewport, profile: Profile, surface: Surface): Viewport {
	const all = Math.max(profile.total[0]!, 1);
	const least = Math.min(all, surface.width / PIXELS_PER_UNIT_MAX);
	const span = Math.min(all, Math.max(least, view.right - view.left));
	const left = Math.min(Math.max(0, view.left), all - span);
	const height = (profile.rows - (surface.firstRow ?? 0)) * surface.rowHeight;
	const deepest = Math.max(0, height - surface.height + surface.rowHeight);
	const scrollMax = height <= surface.height ? 0 : deepest;
	return { left, right: left + span, scroll: Math.min(Math.max(0, view.scroll), scrollMax) };
}

export function wholeProfile(profile: Profile): Viewport {
	return { left: 0, right: Math.max(profile.total[0]!, 1), scroll: 0 };
}

/* The node over the full width; scrolls only as far as needed to show it and some of its callees. */
export function fitNode(view: Viewport, profile: Profile, surface: Surface, node: number): Viewport {
	const left = profile.start[node]!;
	const right = left + Math.max(profile.total[node]!, Number.MIN_VALUE);
	const scroll = scrollTo(view, surface, depthOf(profile, node));
	return clampViewport({ left, right, scroll }, profile, surface);
}

export function scrollTo(view: Viewport, surface: Surface, depth: number): number {
	const top = depth * surface.rowHeight;
	const room = surface.height - surface.rowHeight;
	const above = top - Math.min(3 * surface.rowHeight, room / 2);
	if (above < view.scroll)
		return Math.max(0, above);
	return top > view.scroll + room * 0.7 ? top - room * 0.4 : view.scroll;
}

/* Zooms by `factor` (above 1 is closer) such that what is under pixel x stays there. */
export function zoomAt(view: Viewport, surface: Surface, x: number, factor: number): Viewport {
	const share = x / surface.width;
	const span = view.right - view.left;
	const at = view.left + share * span;
	const left = at - (share * span) / factor;
	return { ...view, left, right: left + span / factor };
}

export function panBy(view: Viewport, surface: Surface, dx: number, dy: number): Viewport {
	const shift = (dx / surface.width) * (view.right - view.left);
	const scroll = view.scroll + (surface.upright ? -dy : dy);
	return { left: view.left + shift, right: view.right + shift, scroll };
}

export function between(a: Viewport, b: Viewport, share: number): Viewport {
	const mix = (x: number, y: number) => x + (y - x) * share;
	return { left: mix(a.left, b.left), right: mix(a.right, b.right), scroll: mix(a.scroll, b.scroll) };
}

export function sameViewport(a: Viewport, b: Viewport): boolean {
	const close = (x: number, y: number) => Math.abs(x - y) <= 1e-9 * Math.max(1, Math.abs(x));
	return close(a.left, b.left) && close(a.right, b.right) && Math.abs(a.scroll - b.scroll) < 0.5;
}

/* CSS pixels of a box, cut to the surface. */
export function boxOf(view: Viewport, profile: Profile, surface: Surface, node: number):
	{ x: number; y: number; width: number; height: number } {
	const scale = surface.width / (view.right - view.left);
	const x0 = Math.max(0, (profile.start[node]! - view.left) * scale);
	const x1 = Math.min(surface.width, (profile.start[node]! + profile.total[node]! - view.left) * scale);
	const y = rowTop(view, surface, depthOf(profile, node));
	return { x: x0, y, width: Math.max(0, x1 - x0), height: surface.rowHeight - 1 };
}
