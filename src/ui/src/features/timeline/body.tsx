// SPDX-License-Identifier: Apache-2.0
/* body - the timeline's picture with its names, its axis and the tooltip of the box under the pointer. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Viewport } from "../../flame/viewport";
import { nodeName } from "../../model/profile";
import { formatPercent, formatRate, formatSamples, formatValue } from "../../model/quantity";
import { type Chart, laneOf } from "../../model/timeline";
import { unit } from "../../state/session";
import { placeTooltip } from "../graph/flame_view";
import { Axis } from "./axis";
import { Names } from "./lane_rows";
import { barOf, isLane, spoken, timeOf } from "./lane_words";
import { Reading } from "./reading";

function Tooltip({ current, node, x, y, host, view }: {
	current: Chart; node: number; x: number; y: number; host: HTMLElement; view: Viewport;
}): JSX.Element {
	const box = useRef<HTMLDivElement>(null);
	useEffect(() => placeTooltip(box.current!, x, y, { width: host.clientWidth, height: host.clientHeight }));
	const lane = current.lanes[laneOf(current, node)]!;
	const ms = view.left + (x / Math.max(1, host.clientWidth)) * (view.right - view.left);
	const of = isLane(current, node) ? barOf(lane, ms) : {
		title: nodeName(current.profile, node), value: current.values[node]!,
		ms: current.profile.total[node]!, time: timeOf(current, node),
	};
	const parts = [
		formatValue(unit.value, of.value), formatSamples(unit.value, of.value),
		formatRate(unit.value, of.value, of.ms / 1000),
	];
	return (
		<div class="tooltip" ref={box} aria-hidden="true">
			<div class="tooltip-name mono">{of.title}</div>
			<div class="number"><b>{formatPercent(of.value, lane.total)}</b> of {lane.name}</div>
			<div class="number muted">{parts.filter(Boolean).join(" · ")}</div>
			<div class="number muted">{of.time}</div>
		</div>
	);
}

export function Body({ current }: { current: Chart }): JSX.Element {
	const host = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const reading = useMemo(() => new Reading(), []);
	const brush = useSignal<[number, number] | null>(null);
	/* A graph paints once more when its place is taken away, and the references are empty by then. */
	useEffect(() => reading.attach(host.current!, canvas.current!), []);
	const [view, tip, dragging] = [reading.view.value, reading.tip.value, reading.dragging.value];
	const cursor = reading.cursor.value;
	const at = cursor < current.profile.count ? cursor : 0;
	const shown = tip && !dragging && tip.node < current.profile.count;
	return (
		<div class="timeline-body">
			<div class={`flame-host${dragging ? " dragging" : ""}`} ref={host}>
				<div class="tree-proxy" role="tree" id="timeline" tabIndex={0} aria-label="Timeline"
					aria-activedescendant="timeline-box" onKeyDown={reading.key}
					onBlur={reading.blur}>
					<div role="treeitem" id="timeline-box"
						aria-selected="true">
						{spoken(current, at)}
					</div>
				</div>
				<canvas class="timeline-lanes" ref={canvas} aria-hidden="true" />
				{shown && <Tooltip current={current} {...tip} host={host.current!} view={view} />}
			</div>
			{host.current && <Names current={current} view={view} host={host.current} />}
			<Axis view={view} width={host.current?.clientWidth ?? 1}
				onBrush={(span) => (brush.value = span)} />
			{brush.value && (
				<div class="timeline-brush"
					style={{ left: `${brush.value[0] + host.current!.offsetLeft}px`,
						width: `${brush.value[1] - brush.value[0]}px` }} />
			)}
		</div>
	);
}
