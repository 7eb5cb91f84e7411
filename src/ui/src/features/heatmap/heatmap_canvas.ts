// SPDX-License-Identifier: Apache-2.0
/*
 * heatmap_canvas - draws a heatmap on two canvases (cells; chosen and hovered cells), and reports the
 * cells under the pointer. Framework-free.
 */
import { mixed } from "../../flame/theme";
import { HEAT_STEPS, type Heatmap, cellsOf, heatStep } from "../../model/heatmap";
import type { Span } from "../../model/timerange";

export interface HeatEvents {
	/* -1 outside. */
	hover(cell: number): void;
	/* The first and the last cell of a drag, or the same twice; `add`: besides what is chosen. */
	drag(from: number, to: number, add: boolean, done: boolean): void;
}

interface Marks {
	chosen: readonly Span[];
	cursor: number;
	hover: number;
}

export function heatColours(element: Element): string[] {
	const style = getComputedStyle(element);
	const [low, middle, high] = ["--heat-low", "--heat-mid", "--heat-high"]
		.map((name) => style.getPropertyValue(name).trim());
	const half = (HEAT_STEPS - 1) / 2;
	return Array.from({ length: HEAT_STEPS }, (_, step) =>
		step < half ? mixed(low!, middle!, step / half) : mixed(middle!, high!, (step - half) / half));
}

export class HeatmapCanvas {
	private readonly base = document.createElement("canvas");
	private readonly over = document.createElement("canvas");
	private readonly stop = new AbortController();
	private readonly resizes: ResizeObserver;
	private map: Heatmap | null = null;
	private marks: Marks = { chosen: [], cursor: -1, hover: -1 };
	private start = -1;
	private adding = false;
	private frame = 0;
	private stale = false;

	constructor(private readonly host: HTMLElement, private readonly events: HeatEvents) {
		for (const canvas of [this.base, this.over]) {
			canvas.setAttribute("aria-hidden", "true");
			host.append(canvas);
		}
		const options = { signal: this.stop.signal };
		host.addEventListener("pointerdown", (event) => this.down(event), options);
		host.addEventListener("pointermove", (event) => this.move(event), options);
		host.addEventListener("pointerup", (event) => this.up(event), options);
		host.addEventListener("pointercancel", () => (this.start = -1), options);
		host.addEventListener("pointerleave", () => this.events.hover(-1), options);
		this.resizes = new ResizeObserver(() => this.resize());
		this.resizes.observe(host);
	}

	destroy(): void {
		this.stop.abort();
		this.resizes.disconnect();
		cancelAnimationFrame(this.frame);
		this.base.remove();
		this.over.remove();
	}

	setMap(map: Heatmap): void {
		this.map = map;
		this.schedule(true);
	}

	setMarks(marks: Partial<Marks>): void {
		this.marks = { ...this.marks, ...marks };
		this.schedule(false);
	}

	retheme(): void {
		this.schedule(true);
	}

	/* CSS pixels of a cell, relative to the host. */
	rectangle(cell: number): { x: number; y: number; width: number; height: number } {
		const { columns, rows } = this.map!;
		const [width, height] = [this.host.clientWidth / columns, this.host.clientHeight / rows];
		return { x: Math.floor(cell / rows) * width, y: (cell % rows) * height, width, height };
	}

	private cellAt(event: PointerEvent): number {
		const box = this.host.getBoundingClientRect();
		if (!this.map)
			return -1;
		const { columns, rows } = this.map;
		const within = (share: number, count: number) =>
			Math.min(count - 1, Math.max(0, Math.floor(share * count)));
		const column = within((event.clientX - box.left) / box.width, columns);
		return column * rows + within((event.clientY - box.top) / box.height, rows);
	}

	private down(event: PointerEvent): void {
		if (event.button !== 0 || !this.map)
			return;
		this.start = this.cellAt(event);
		this.adding = event.ctrlKey || event.metaKey;
		this.host.setPointerCapture(event.pointerId);
		this.events.drag(this.start, this.start, this.adding, false);
	}

	private move(event: PointerEvent): void {
		const cell = this.cellAt(event);
		this.events.hover(cell);
		if (this.start >= 0)
			this.events.drag(this.start, cell, this.adding, false);
	}

	private up(event: PointerEvent): void {
		if (this.start < 0)
			return;
		const from = this.start;
		this.start = -1;
		this.events.drag(from, this.cellAt(event), this.adding, true);
	}

	private resize(): void {
		const ratio = devicePixelRatio || 1;
		for (const canvas of [this.base, this.over]) {
			canvas.width = Math.max(1, Math.round(this.host.clientWidth * ratio));
			canvas.height = Math.max(1, Math.round(this.host.clientHeight * ratio));
		}
		this.stale = true;
		this.draw();
	}

	private schedule(base: boolean): void {
		this.stale ||= base;
		this.frame ||= requestAnimationFrame(() => this.draw());
	}

	private draw(): void {
		cancelAnimationFrame(this.frame);
		this.frame = 0;
		if (!this.map)
			return;
		if (this.stale)
			this.paint(this.map);
		this.stale = false;
		this.paintMarks(this.map);
	}

	/* Device pixels of [first, end) within one column. */
	private pixels(map: Heatmap, first: number, end: number): [number, number, number, number] {
		const column = Math.floor(first / map.rows);
		const [width, height] = [this.base.width / map.columns, this.base.height / map.rows];
		const [x0, x1] = [Math.round(column * width), Math.round((column + 1) * width)];
		const top = first - column * map.rows;
		const [y0, y1] = [Math.round(top * height), Math.round((top + end - first) * height)];
		return [x0, y0, x1 - x0, y1 - y0];
	}

	private paint(map: Heatmap): void {
		const context = this.base.getContext("2d", { alpha: false })!;
		const colours = heatColours(this.host);
		context.fillStyle = getComputedStyle(this.host).getPropertyValue("--heat-none").trim();
		context.fillRect(0, 0, this.base.width, this.base.height);
		const room = Math.min(this.base.width / map.columns, this.base.height / map.rows);
		const gap = room >= 8 ? 1 : 0;
		const byStep: number[][] = Array.from({ length: HEAT_STEPS + 1 }, () => []);
		map.values.forEach((value, cell) => byStep[heatStep(map, value)]!.push(cell));
		for (let step = 1; step <= HEAT_STEPS; step++) {
			context.fillStyle = colours[step - 1]!;
			for (const cell of byStep[step]!) {
				const [x, y, width, height] = this.pixels(map, cell, cell + 1);
				context.fillRect(x, y, width - gap, height - gap);
			}
		}
	}

	/* A span's part of each column that it touches. */
	private segments(map: Heatmap, span: Span): [number, number, number, number][] {
		const found: [number, number, number, number][] = [];
		for (let [first, end] = cellsOf(map, span); first < end; ) {
			const columnEnd = (Math.floor(first / map.rows) + 1) * map.rows;
			found.push(this.pixels(map, first, Math.min(end, columnEnd)));
			first = columnEnd;
		}
		return found;
	}

	/* What is not chosen steps back; around what is goes a line. */
	private paintMarks(map: Heatmap): void {
		const context = this.over.getContext("2d")!;
		const style = getComputedStyle(this.host);
		const line = Math.max(1, Math.round(1.5 * devicePixelRatio));
		const { chosen, cursor, hover } = this.marks;
		context.clearRect(0, 0, this.over.width, this.over.height);
		if (chosen.length) {
			context.globalAlpha = 0.55;
			context.fillStyle = style.getPropertyValue("--heat-none").trim();
			context.fillRect(0, 0, this.over.width, this.over.height);
			context.globalAlpha = 1;
			context.fillStyle = style.getPropertyValue("--accent").trim();
			const segments = chosen.flatMap((span) => this.segments(map, span));
			for (const [x, y, width, height] of segments)
				context.fillRect(x - line, y - line, width + 2 * line, height + 2 * line);
			for (const [x, y, width, height] of segments)
				context.clearRect(x, y, width, height);
		}
		for (const [cell, colour] of [[hover, "--text"], [cursor, "--accent"]] as const) {
			if (cell < 0 || cell >= map.values.length)
				continue;
			const [x, y, width, height] = this.pixels(map, cell, cell + 1);
			context.strokeStyle = style.getPropertyValue(colour).trim();
			context.lineWidth = line;
			context.strokeRect(x - line / 2, y - line / 2, width + line - 1, height + line - 1);
		}
	}
}
