// SPDX-License-Identifier: Apache-2.0
/* lane_words - texts for boxes and bars of the timeline, and for the actions of its lanes. */
import { GROUP, functionMapping, nodeName } from "../../model/profile";
import { formatPercent, formatValue } from "../../model/quantity";
import { type Chart, type Lane, laneOf } from "../../model/timeline";
import { clockTime } from "../../model/timerange";
import { go } from "../../state/place";
import { functionNamed, selectFunction } from "../../state/reading";
import { profile, unit } from "../../state/session";
import { lanes } from "./lanes";

export const clock = (ms: number, fine: boolean) =>
	`${clockTime(ms)}${fine ? `.${String(Math.floor(ms % 1000)).padStart(3, "0")}` : ""}`;

export const openLane = (lane: Lane) => go({ lane: lane.open ? "none" : `=${lane.value}` });

export function selectBox(current: Chart, node: number): void {
	if (profile.value)
		selectFunction(functionNamed(profile.value, nodeName(current.profile, node),
			functionMapping(current.profile, current.profile.func[node]!)));
}

export const isLane = (current: Chart, node: number) => (current.profile.flags[node]! & GROUP) !== 0;

/* "main in worker-1, 12:03:20 – 12:03:30, 3.2 s" */
export function spoken(current: Chart, node: number): string {
	const lane = current.lanes[laneOf(current, node)];
	const value = formatValue(unit.value, current.values[node]!);
	if (!lane)
		return `everything, ${value}`;
	if (isLane(current, node)) {
		const share = formatPercent(lane.total, lanes.value!.total);
		return `lane ${lane.name}, ${share} of all, ${value}, ${lane.open ? "open" : "closed"}`;
	}
	return `${nodeName(current.profile, node)} in ${lane.name}, ${timeOf(current, node)}, ${value}`;
}

export function timeOf(current: Chart, node: number): string {
	const start = lanes.value!.fromMs + current.profile.start[node]!;
	const duration = current.profile.total[node]!;
	return `${clock(start, duration < 10_000)} – ${clock(start + duration, duration < 10_000)}`;
}

/* Of a lane's row, the bar under the pointer. */
export function barOf(lane: Lane, ms: number): { title: string; value: number; ms: number; time: string } {
	const { fromMs, barMs, bars } = lanes.value!;
	const bar = Math.min(bars - 1, Math.max(0, Math.floor(ms / barMs)));
	const from = fromMs + bar * barMs;
	return { title: lane.name, value: lane.activity[bar]!, ms: barMs,
		time: `${clock(from, false)} – ${clock(from + barMs, false)}` };
}
