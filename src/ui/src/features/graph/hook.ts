// SPDX-License-Identifier: Apache-2.0
/*
 * hook - window.__firn, for browser tests: a canvas has no elements to ask.
 *
 *   place()          the state that is in the URL
 *   busy()           whether anything is loaded
 *   profile()        header and root total of what is shown, or null
 *   sides()          totals and seconds of both sides of a comparison, or null
 *   change(name)     what a comparison says of the widest frame of that name, and the step of its colour
 *   series()         number of lines, sum of all values, step
 *   frame(name)      the widest frame of that exact name: values, and its box in page pixels
 *   cursor()         the selected frame, likewise
 *   frames()         the frames at least one pixel wide in the viewport
 *   search()         functions, frames and value that match, or null
 *   cancel()         what the button of a slow answer does
 *   paint()          boxes and milliseconds of the last repaint, and repaints so far
 */
import { depthOf, functionName, nodeName, type Profile } from "../../model/profile";
import { graphOnScreen, lastPaint } from "./flame_view";
import { changeTexts } from "../../state/changes";
import { place } from "../../state/place";
import { colouring, cursor, focus, hovered, matches } from "../../state/reading";
import { busy, cancel, isLoading, profile, series } from "../../state/session";

interface FrameBox {
	node: number;
	name: string;
	depth: number;
	self: number;
	total: number;
	x: number;
	y: number;
	width: number;
	height: number;
}

function describe(current: Profile, node: number): FrameBox | null {
	const box = node < 0 ? undefined : graphOnScreen.value?.rectangle(node);
	const host = document.querySelector(".flame-host")?.getBoundingClientRect();
	if (!box || !host)
		return null;
	return {
		node, name: nodeName(current, node), depth: depthOf(current, node),
		self: current.self[node]!, total: current.total[node]!,
		x: host.x + box.x, y: host.y + box.y, width: box.width, height: box.height,
	};
}

function widestNamed(current: Profile, name: string): number {
	let widest = -1;
	for (let node = 0; node < current.count; node++) {
		const own = node ? functionName(current, current.func[node]!) : "total";
		if (own === name && (widest < 0 || current.total[node]! > current.total[widest]!))
			widest = node;
	}
	return widest;
}

function visible(current: Profile): FrameBox[] {
	const size = graphOnScreen.value?.size;
	const frames: FrameBox[] = [];
	for (let node = 0; size && node < current.count; node++) {
		const box = graphOnScreen.value!.rectangle(node)!;
		if (box.width >= 1 && box.y > -box.height && box.y < size.height)
			frames.push(describe(current, node)!);
	}
	return frames;
}

export function installHook(): void {
	const hook = {
		place: () => ({ ...place.value }),
		busy: () => busy.value || isLoading(),
		profile: () => profile.value && {
			...profile.value.header, root: profile.value.total[0]!, count: profile.value.count,
		},
		sides: () => profile.value?.sides?.map(({ total, seconds }) => ({ total: total[0], seconds })) ?? null,
		change: (name: string) => {
			const node = profile.value?.sides ? widestNamed(profile.value, name) : -1;
			return node < 0 ? null
				: { ...changeTexts(profile.value!, node), step: colouring.value!.steps![node]! };
		},
		series: () => series.value && {
			lines: series.value.answer.series.length,
			sum: series.value.answer.series.flatMap((line) => line.points)
				.reduce((sum, point) => sum + point[1], 0),
			step_ms: series.value.answer.step_ms,
		},
		frame: (name: string) => profile.value && describe(profile.value, widestNamed(profile.value, name)),
		cursor: () => profile.value && describe(profile.value, cursor.value),
		frames: () => (profile.value ? visible(profile.value) : []),
		focus: () => profile.value && nodeName(profile.value, focus.value),
		hovered: () => (profile.value && hovered.value >= 0 ? nodeName(profile.value, hovered.value) : null),
		selected: () => (profile.value && cursor.value >= 0 ? nodeName(profile.value, cursor.value) : null),
		search: () => matches.value && {
			functions: matches.value.functionCount,
			frames: matches.value.nodeCount,
			value: matches.value.value,
		},
		paint: () => ({ ...lastPaint }),
		cancel,
		viewport: () => graphOnScreen.value && { ...graphOnScreen.value.viewport, ...graphOnScreen.value.size },
	};
	Object.defineProperty(window, "__firn", { value: Object.freeze(hook) });
}
