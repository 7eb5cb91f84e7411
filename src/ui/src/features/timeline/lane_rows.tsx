// SPDX-License-Identifier: Apache-2.0
/* lane_rows - the lanes' rows: a bar for each step of time over the graph, and the names beside it. */
import type { JSX } from "preact";
import { type Viewport, rowTop } from "../../flame/viewport";
import { depthOf } from "../../model/profile";
import { formatPercent } from "../../model/quantity";
import type { Chart, Lane, Lanes } from "../../model/timeline";
import { openLane } from "./lane_words";
import { chart, lanes } from "./lanes";

export const ROW_HEIGHT = 18;
/* The lanes' rows over the graph's: a bar for each stretch of time. */
export function paintLanes(canvas: HTMLCanvasElement, host: HTMLElement, view: Viewport): void {
	const [current, { nodes, profile: drawn }] = [lanes.value!, chart.value!];
	const ratio = devicePixelRatio || 1;
	const surface = { width: host.clientWidth, height: host.clientHeight, rowHeight: ROW_HEIGHT };
	const [width, height] = [Math.round(surface.width * ratio), Math.round(surface.height * ratio)];
	if (canvas.width !== width || canvas.height !== height)
		Object.assign(canvas, { width, height });
	const context = canvas.getContext("2d")!;
	const style = getComputedStyle(host);
	const read = (name: string) => style.getPropertyValue(name).trim();
	const colours = { back: read("--chrome"), bar: read("--accent") };
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, surface.width, surface.height);
	current.list.forEach((lane, index) => {
		const top = rowTop(view, surface, depthOf(drawn, nodes[index]!));
		if (top > -ROW_HEIGHT && top < surface.height)
			paintLane(context, current, lane, { view, top, width: surface.width, colours });
	});
}

function paintLane(context: CanvasRenderingContext2D, current: Lanes, lane: Lane,
	{ view, top, width, colours }: {
		view: Viewport; top: number; width: number; colours: { back: string; bar: string };
	}): void {
	const scale = width / (view.right - view.left);
	const bottom = top + ROW_HEIGHT - 1;
	/* The graph's own row, with its name, is not to shine through. */
	context.globalAlpha = 1;
	context.fillStyle = colours.back;
	context.fillRect(0, top, width, ROW_HEIGHT - 1);
	context.fillStyle = colours.bar;
	context.globalAlpha = 0.55;
	lane.activity.forEach((value, bar) => {
		const tall = Math.max(1, (value / Math.max(1, current.most)) * (ROW_HEIGHT - 3));
		const [x0, x1] = [bar, bar + 1].map((at) => Math.round((at * current.barMs - view.left) * scale));
		if (value > 0 && x1! > 0 && x0! < width)
			context.fillRect(x0!, bottom - tall, Math.max(1, x1! - x0! - 1), tall);
	});
}

/* Beside the bars. */
export function Names({ current, view, host }: {
	current: Chart; view: Viewport; host: HTMLElement;
}): JSX.Element {
	const surface = { width: host.clientWidth, height: host.clientHeight, rowHeight: ROW_HEIGHT };
	const rows = current.lanes.map((lane, index) =>
		({ lane, top: rowTop(view, surface, depthOf(current.profile, current.nodes[index]!)) }));
	return (
		<div class="timeline-names" aria-hidden="true">
			{rows.filter(({ top }) => top >= ROW_HEIGHT && top < surface.height).map(({ lane, top }) => (
				<button key={lane.value} type="button" tabIndex={-1} title={lane.name}
					style={{ top: `${top}px` }} onClick={() => openLane(lane)}>
					<span>{lane.open ? "▾" : "▸"}</span>
					<span class="lane-name">{lane.name}</span>
					<span class="number muted">
						{formatPercent(lane.total, lanes.value!.total)}
					</span>
				</button>
			))}
		</div>
	);
}
