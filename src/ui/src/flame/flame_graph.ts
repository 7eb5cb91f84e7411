// SPDX-License-Identifier: Apache-2.0
/*
 * flame_graph - the icicle graph on two canvases of the viewport's size.
 *
 * Framework-free: it takes a host element, a profile and the frames to mark, and reports what the
 * reader hovers and presses. It paints at most once per animation frame. A profile may have millions
 * of boxes or none; the canvas always has the viewport's size.
 */
import { type Profile, depthOf, nodeAt } from "../model/profile";
import { followPath } from "../model/framepath";
import type { Colouring } from "../model/colours";
import type { Matches } from "../model/search";
import { attachGestures } from "./gestures";
import { Labels } from "./labels";
import { type Marks, paintOverlay } from "./overlay";
import { paint } from "./painter";
import { type FlameTheme, readTheme } from "./theme";
import {
	type Surface, type Viewport, between, boxOf, clampViewport, fitNode, panBy, rowAt, sameViewport,
	scrollTo, wholeProfile, zoomAt,
} from "./viewport";

const ANIMATION_MS = 120;

export interface FlameEvents {
	hover(node: number, x: number, y: number): void;
	press(node: number): void;
	dragging(on: boolean): void;
	/* After each repaint of the base. */
	painted(view: Viewport, boxes: number, ms: number): void;
}

export class FlameGraph {
	private readonly base = document.createElement("canvas");
	private readonly over = document.createElement("canvas");
	private readonly baseContext: CanvasRenderingContext2D;
	private readonly overContext: CanvasRenderingContext2D;
	private readonly labels = new Labels();
	private readonly detach: () => void;
	private readonly resizes: ResizeObserver;
	private profile: Profile | null = null;
	private colouring: Colouring | null = null;
	private matches: Matches | null = null;
	private prefix: ((node: number) => string) | null = null;
	private theme: FlameTheme;
	private surface: Surface;
	private ratio = 1;
	private view: Viewport = { left: 0, right: 1, scroll: 0 };
	private focus = 0;
	private marks: Marks = { hover: -1, cursor: -1, ring: false, functions: null };
	private frame = 0;
	private dirty = { base: false, over: false };
	private animation: { from: Viewport; to: Viewport; start: number } | null = null;

	constructor(private readonly host: HTMLElement, private readonly events: FlameEvents, rowHeight: number,
		firstRow = 0) {
		this.baseContext = this.base.getContext("2d", { alpha: false })!;
		this.overContext = this.over.getContext("2d")!;
		this.base.className = "flame-base";
		this.over.className = "flame-over";
		for (const canvas of [this.base, this.over])
			canvas.setAttribute("aria-hidden", "true");
		host.append(this.base, this.over);
		this.theme = readTheme(host);
		this.surface = { width: 1, height: 1, rowHeight, firstRow };
		this.detach = attachGestures(host, {
			hover: (x, y) => this.setHover(x, y),
			leave: () => this.setHover(-1, -1),
			press: (x, y) => this.press(x, y),
			pan: (dx, dy) => this.move((view) => panBy(view, this.surface, dx, dy)),
			zoom: (x, factor) => this.zoomBy(factor, x),
			dragging: (on) => this.events.dragging(on),
		});
		this.resizes = new ResizeObserver(() => this.resize());
		this.resizes.observe(host);
		this.resize();
		this.retheme();
	}

	destroy(): void {
		this.detach();
		this.resizes.disconnect();
		cancelAnimationFrame(this.frame);
		this.base.remove();
		this.over.remove();
	}

	/* A new profile keeps the reader's place: zoom, pan and scroll are carried over by call path. */
	setProfile(profile: Profile, colouring: Colouring, focus: number): void {
		const old = this.profile;
		/* What comes while the view glides finds it where it is going. */
		const before = this.animation?.to ?? this.view;
		const wasFit = old === null ||
			sameViewport({ ...this.fitted(old, this.focus), scroll: before.scroll }, before);
		const oldFocus = this.focus;
		this.profile = profile;
		this.colouring = colouring;
		this.focus = focus;
		this.animation = null;
		this.marks = { ...this.marks, hover: -1, cursor: this.carry(old, this.marks.cursor) };
		const fitted = fitNode(before, profile, this.surface, focus);
		if (!old)
			this.view = fitted;
		else if (wasFit)
			this.view = clampViewport({ ...fitted, scroll: before.scroll }, profile, this.surface);
		else
			this.view = this.rescale(old, oldFocus, before);
		this.invalidate();
	}

	private carry(old: Profile | null, node: number): number {
		return old && node > 0 ? followPath(old, node, this.profile!) : -1;
	}

	private rescale(old: Profile, oldFocus: number, before: Viewport): Viewport {
		const width = Math.max(old.total[oldFocus]!, 1e-9);
		const start = this.profile!.start[this.focus]!;
		const scale = this.profile!.total[this.focus]! / width;
		const map = (value: number) => start + (value - old.start[oldFocus]!) * scale;
		const view = { left: map(before.left), right: map(before.right), scroll: before.scroll };
		return clampViewport(view, this.profile!, this.surface);
	}

	private fitted(profile: Profile, node: number): Viewport {
		return node === 0 ? wholeProfile(profile) : fitNode(this.view, profile, this.surface, node);
	}

	setColouring(colouring: Colouring): void {
		this.colouring = colouring;
		this.invalidate();
	}

	setMatches(matches: Matches | null): void {
		this.matches = matches;
		this.invalidate();
	}

	setMarks(marks: Partial<Marks>): void {
		this.marks = { ...this.marks, ...marks };
		this.schedule("over");
	}

	/* Zooms to a box. */
	setFocus(node: number): void {
		if (!this.profile)
			return;
		this.focus = node;
		this.glideTo(fitNode(this.view, this.profile, this.surface, node));
	}

	/* Moves as little as needed for a box to be seen. */
	reveal(node: number): void {
		if (!this.profile)
			return;
		const scroll = scrollTo(this.view, this.surface, depthOf(this.profile, node));
		const start = this.profile.start[node]!;
		const end = start + this.profile.total[node]!;
		const span = this.view.right - this.view.left;
		let { left } = this.view;
		if (end <= left || start >= this.view.right)
			left = (start + end) / 2 - span / 2;
		this.glideTo({ left, right: left + span, scroll });
	}

	/* Shows a stretch of the profile's unit over the full width. */
	showSpan(left: number, right: number): void {
		if (this.profile)
			this.glideTo({ left, right, scroll: this.view.scroll });
	}

	isFitted(): boolean {
		if (!this.profile)
			return true;
		const fit = fitNode(this.view, this.profile, this.surface, this.focus);
		return sameViewport({ ...fit, scroll: 0 }, { ...this.view, scroll: 0 });
	}

	/* Shows this share of the profile's width, and of its rows from this one on. */
	moveTo(left: number, right: number, row: number): void {
		const scroll = row * this.surface.rowHeight;
		this.move(() => ({ left, right, scroll }));
	}

	zoomBy(factor: number, x = this.surface.width / 2): void {
		this.move((view) => zoomAt(view, this.surface, x, factor));
	}

	panBy(dx: number, dy: number): void {
		this.move((view) => panBy(view, this.surface, dx, dy));
	}

	/* CSS pixels of a box, relative to the host. */
	rectangle(node: number): { x: number; y: number; width: number; height: number } | null {
		return this.profile ? boxOf(this.view, this.profile, this.surface, node) : null;
	}

	get viewport(): Viewport {
		return this.view;
	}

	get size(): { width: number; height: number; ratio: number } {
		return { width: this.surface.width, height: this.surface.height, ratio: this.ratio };
	}

	setUpright(upright: boolean): void {
		this.surface = { ...this.surface, upright };
		this.invalidate();
	}

	/* What stands before a box's name, or null. */
	setPrefix(prefix: ((node: number) => string) | null): void {
		this.prefix = prefix;
		this.invalidate();
	}

	/* After a change of theme or density. */
	retheme(rowHeight = this.surface.rowHeight): void {
		this.theme = readTheme(this.host);
		this.surface = { ...this.surface, rowHeight };
		this.labels.setFont(this.baseContext, this.theme.font);
		this.invalidate();
	}

	hitTest(x: number, y: number): number {
		const { profile, view, surface } = this;
		if (!profile || x < 0 || y < 0 || x >= surface.width || y >= surface.height)
			return -1;
		const depth = rowAt(view, surface, y);
		const value = view.left + (x / surface.width) * (view.right - view.left);
		return nodeAt(profile, depth, value);
	}

	private setHover(x: number, y: number): void {
		const node = this.hitTest(x, y);
		if (node !== this.marks.hover) {
			this.marks.hover = node;
			this.schedule("over");
		}
		this.events.hover(node, x, y);
	}

	private press(x: number, y: number): void {
		const node = this.hitTest(x, y);
		if (node >= 0)
			this.events.press(node);
	}

	private move(change: (view: Viewport) => Viewport): void {
		if (!this.profile)
			return;
		this.animation = null;
		this.view = clampViewport(change(this.view), this.profile, this.surface);
		this.invalidate();
	}

	private glideTo(to: Viewport): void {
		const target = clampViewport(to, this.profile!, this.surface);
		const still = document.documentElement.dataset.motion === "reduced" ||
			matchMedia("(prefers-reduced-motion: reduce)").matches;
		if (still || document.hidden)
			this.view = target;
		else
			this.animation = { from: this.view, to: target, start: performance.now() };
		this.invalidate();
	}

	private resize(): void {
		const width = Math.max(1, this.host.clientWidth);
		const height = Math.max(1, this.host.clientHeight);
		this.ratio = window.devicePixelRatio || 1;
		this.surface = { ...this.surface, width, height };
		for (const canvas of [this.base, this.over]) {
			canvas.width = Math.round(width * this.ratio);
			canvas.height = Math.round(height * this.ratio);
		}
		if (this.profile)
			this.view = clampViewport(this.view, this.profile, this.surface);
		this.dirty = { base: true, over: true };
		this.draw(performance.now());
	}

	private invalidate(): void {
		this.schedule("base");
	}

	private schedule(what: "base" | "over"): void {
		this.dirty.over = true;
		if (what === "base")
			this.dirty.base = true;
		if (!this.frame)
			this.frame = requestAnimationFrame((now) => this.draw(now));
	}

	private draw(now: number): void {
		cancelAnimationFrame(this.frame);
		this.frame = 0;
		const { profile, colouring } = this;
		this.step(now);
		if (this.dirty.base && (!profile || !colouring)) {
			this.baseContext.fillStyle = this.theme.background;
			this.baseContext.fillRect(0, 0, this.base.width, this.base.height);
		}
		if (!profile || !colouring)
			return;
		if (this.dirty.base) {
			const began = performance.now();
			const boxes = paint(this.baseContext, {
				profile, colouring, matches: this.matches, view: this.view, surface: this.surface,
				theme: this.theme, labels: this.labels, ratio: this.ratio,
				focus: this.focus, focusDepth: depthOf(profile, this.focus), prefix: this.prefix,
			});
			this.events.painted(this.view, boxes, performance.now() - began);
		}
		paintOverlay(this.overContext, profile, this.view, this.surface, this.theme, this.ratio, this.marks);
		this.dirty = { base: false, over: false };
		if (this.animation)
			this.invalidate();
	}

	private step(now: number): void {
		if (!this.animation)
			return;
		const share = Math.min(1, Math.max(0, (now - this.animation.start) / ANIMATION_MS));
		const eased = 1 - (1 - share) ** 3;
		this.view = share === 1 ? this.animation.to : between(this.animation.from, this.animation.to, eased);
		if (share === 1)
			this.animation = null;
	}
}
