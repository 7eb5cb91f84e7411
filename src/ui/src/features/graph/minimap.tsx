// SPDX-License-Identifier: Apache-2.0
/* minimap - the whole graph in small, with a frame around the visible part; dragging the frame moves the view. */
import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { FlameGraph } from "../../flame/flame_graph";
import { RowImage, pixelOf } from "../../flame/row_image";
import { TONES, readTheme } from "../../flame/theme";
import type { Viewport } from "../../flame/viewport";
import type { Colouring } from "../../model/colours";
import { TRIMMED, type Profile, firstEndingAfter } from "../../model/profile";
import { dark } from "../../state/preferences";
import { colouring } from "../../state/reading";
import { profile } from "../../state/session";

const WIDTH = 200;
const HEIGHT = 72;
/* Nobody looks for a place in a stack of thousands by a map of it: deeper rows are below the edge. */
const ROWS_PER_PIXEL_MAX = 4;

function rowsOf(current: Profile): number {
	return Math.min(current.rows, HEIGHT * ROWS_PER_PIXEL_MAX);
}

function paint(canvas: HTMLCanvasElement, current: Profile, colours: Colouring): void {
	const theme = readTheme(canvas);
	const rows = rowsOf(current);
	const lines = Math.min(rows, HEIGHT);
	const tops = Array.from({ length: lines }, (_, line) => Math.floor((line * HEIGHT) / lines));
	const image = new RowImage();
	const fills = (colours.steps ? theme.steps : theme.fills).map(pixelOf);
	const half = (theme.steps.length - 1) / 2;
	const fillOf = (node: number) =>
		node === 0 || current.flags[node]! & TRIMMED ? pixelOf(theme.neutral)
			: colours.steps ? fills[half +
				colours.steps[node]!]! : fills[colours.slots[current.func[node]!]! * TONES]!;
	image.begin(WIDTH, tops, pixelOf(theme.background));
	const scale = WIDTH / Math.max(current.total[0]!, 1);
	for (let line = 0; line < lines; line++) {
		const depth = Math.floor((line * rows) / lines);
		const end = current.rowStart[depth + 1]!;
		for (let node = current.rowStart[depth]!; node < end; ) {
			const x = Math.floor(current.start[node]! * scale);
			const right = Math.max(x + 1,
				Math.floor((current.start[node]! + current.total[node]!) * scale));
			image.fill(line, x, right - x, fillOf(node));
			node = firstEndingAfter(current, node + 1, end, right / scale);
		}
	}
	const context = canvas.getContext("2d", { alpha: false })!;
	context.fillStyle = theme.background;
	context.fillRect(0, 0, WIDTH, HEIGHT);
	image.draw(context, Math.ceil(HEIGHT / lines));
}

interface Properties {
	graph: FlameGraph;
	view: Viewport;
	rowHeight: number;
}

export function Minimap({ graph, view, rowHeight }: Properties): JSX.Element | null {
	const canvas = useRef<HTMLCanvasElement>(null);
	const shown = useComputed(() => [profile.value, colouring.value, dark.value] as const).value;
	const [current, colours] = shown;
	const total = Math.max(current?.total[0] ?? 1, 1);
	const rows = current ? rowsOf(current) : 1;
	const part = {
		left: view.left / total, width: (view.right - view.left) / total,
		top: view.scroll / rowHeight / rows, height: graph.size.height / rowHeight / rows,
	};
	useEffect(() => {
		if (canvas.current && current && colours)
			paint(canvas.current, current, colours);
	}, [shown]);
	if (!current)
		return null;
	const move = (event: PointerEvent) => {
		event.stopPropagation();
		if (!event.buttons)
			return;
		const box = canvas.current!.getBoundingClientRect();
		const left = ((event.clientX - box.left) / WIDTH - part.width / 2) * total;
		const row = Math.max(0, ((event.clientY - box.top) / HEIGHT - part.height / 2) * rows);
		graph.moveTo(left, left + part.width * total, row);
		event.preventDefault();
	};
	const down = (event: PointerEvent) => {
		canvas.current!.setPointerCapture(event.pointerId);
		move(event);
	};
	const percent = (share: number) => `${100 * Math.min(1, Math.max(0, share))}%`;
	return (
		<div class="minimap" aria-hidden="true" onPointerDown={down} onPointerMove={move}
			onPointerUp={(event) => event.stopPropagation()}>
			<canvas ref={canvas} width={WIDTH} height={HEIGHT} />
			<div class="minimap-view" style={{
				left: percent(part.left), width: percent(part.width),
				top: percent(part.top), height: percent(Math.min(part.height, 1 - part.top)),
			}} />
		</div>
	);
}
