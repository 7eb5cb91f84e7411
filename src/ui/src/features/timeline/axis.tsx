// SPDX-License-Identifier: Apache-2.0
/* axis - the timeline's time axis; dragging over it sets the range. */
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { Viewport } from "../../flame/viewport";
import { absoluteRange, snapSpan } from "../../model/timerange";
import { go } from "../../state/place";
import { clock } from "./lane_words";
import { lanes } from "./lanes";

const AXIS_SPACE = 110;
/* More than a time takes. */
const TEXT_WIDTH = 60;
const AXIS_STEPS = [
	10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5,
	432e5, 864e5,
];

export function Axis({ view, width, onBrush }: {
	view: Viewport; width: number; onBrush(span: [number, number] | null): void;
}): JSX.Element {
	const { fromMs, barMs } = lanes.value!;
	const perPixel = (view.right - view.left) / Math.max(1, width);
	const step = AXIS_STEPS.find((each) => each / perPixel >= AXIS_SPACE) ?? AXIS_STEPS.at(-1)!;
	const first = Math.ceil((fromMs + view.left) / step) * step;
	const marks: number[] = [];
	for (let at = first; at < fromMs + view.right - TEXT_WIDTH * perPixel && marks.length < 50; at += step)
		marks.push(at);
	const start = useRef(-1);
	const xOf = (event: PointerEvent) => event.clientX - (event.currentTarget as HTMLElement)
		.getBoundingClientRect().left;
	const span = (event: PointerEvent): [number, number] =>
		[Math.min(start.current, xOf(event)), Math.max(start.current, xOf(event))];
	const finish = (event: PointerEvent) => {
		const [x0, x1] = span(event);
		const wanted = start.current >= 0 && x1 - x0 >= 4;
		start.current = -1;
		onBrush(null);
		if (!wanted)
			return;
		const msOf = (x: number) => fromMs + view.left + x * perPixel;
		const snap = Math.min(barMs, perPixel > 100 ? 1000 : 10);
		go({ range: absoluteRange(snapSpan({ fromMs: msOf(x0), toMs: msOf(x1) }, snap)) });
	};
	return (
		<div class="timeline-axis number" title="Drag over it to choose a time range"
			onPointerDown={(event) => {
				start.current = xOf(event);
				event.currentTarget.setPointerCapture(event.pointerId);
			}}
			onPointerMove={(event) => start.current >= 0 && onBrush(span(event))}
			onPointerUp={finish} onPointerCancel={() => onBrush(null)}>
			{marks.map((at) => (
				<span key={at} style={{ left: `${(at - fromMs - view.left) / perPixel}px` }}>
					{clock(at, step < 1000)}
				</span>
			))}
		</div>
	);
}
