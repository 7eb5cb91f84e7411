// SPDX-License-Identifier: Apache-2.0
/*
 * timeline - stacks over time, with a lane for each value of a label: the lane's row shows its value
 * step by step, and an open lane shows the stacks. The flame graph draws it; its unit is time here.
 */
import type { JSX } from "preact";
import { Picker } from "../../kit/picker";
import { lengthText } from "../../model/moments";
import { formatCount } from "../../model/quantity";
import { stepsFor } from "../../model/timeline";
import { go, place } from "../../state/place";
import { Empty } from "../states/empty";
import { Body } from "./body";
import { OPEN_MAX, chart, labels, lanes, openLanes, series } from "./lanes";
import "./timeline.css";

function Head(): JSX.Element {
	const { label, list, leftOut, barMs } = lanes.value!;
	const options = labels.value.map((value) => ({ value, label: value }));
	const all = openLanes.value === "all";
	const { filters, cells } = place.value;
	const stepMs = stepsFor(series.value!.span);
	const counted = `${formatCount(list.length)} ${list.length === 1 ? "lane" : "lanes"}`;
	const facts = [
		leftOut ? `the largest; ${formatCount(leftOut)} more are not shown` : "",
		`bars of ${lengthText(barMs)}`,
		`stacks in steps of ${lengthText(stepMs)}; inside a step, left to right is not time`,
		filters.length || cells ? "bars count everything, stacks what is chosen" : "",
	];
	return (
		<div class="view-head timeline-head">
			<Picker label="Lanes by" showLabel class="quiet" options={options}
				chosen={label ? [label] : []} none="nothing"
				empty="No labels in this range."
				onChange={([chosen]) => go({ lanes: chosen ?? "", lane: "" })} />
			<button type="button" class="chip-clear" disabled={list.length > OPEN_MAX && !all}
				title={list.length > OPEN_MAX ? `At most ${OPEN_MAX} lanes can be open together`
					: "Every stack of every lane: of many lanes this takes a few seconds"}
				onClick={() => go({ lane: all ? "none" : "all" })}>
				{all ? "Close all lanes" : `Open all ${counted}`}
			</button>
			<span class="number muted">{facts.filter(Boolean).join(" · ")}</span>
		</div>
	);
}

export function TimelineView(): JSX.Element {
	const current = chart.value;
	if (!current)
		return <div class="timeline" aria-busy="true" />;
	if (!current.lanes.length)
		return <Empty />;
	return (
		<div class="timeline">
			<Head />
			<Body current={current} />
		</div>
	);
}
