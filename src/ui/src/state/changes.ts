// SPDX-License-Identifier: Apache-2.0
/* changes - what a comparison says about frames, in words and numbers; used wherever one is shown. */
import { type Change, type Mode, changeOf, changeWords } from "../model/compare";
import type { Profile } from "../model/profile";
import { type Unit, formatPerSecond, formatPercent, formatValue } from "../model/quantity";
import { place } from "./place";
import { unit } from "./session";

const Z_MIN = 2;

/* A value in the terms of a mode. */
export function formatMeasured(what: Unit, mode: Mode, value: number): string {
	if (mode === "share")
		return formatPercent(value, 1);
	return mode === "rate" && what.delta ? formatPerSecond(what, value) : formatValue(what, value);
}

export function formatDelta(what: Unit, mode: Mode, delta: number): string {
	const size = mode === "share" ? `${(100 * Math.abs(delta)).toFixed(2)} points`
		: formatMeasured(what, mode, Math.abs(delta));
	return delta === 0 ? "0" : `${delta > 0 ? "+" : "−"}${size}`;
}

export function nodeChange(current: Profile, node: number): Change {
	const [a, b] = current.sides!;
	return changeOf([a, b], a.total[node]!, b.total[node]!, place.value.mode, unit.value.sampled);
}

/* A frame of a comparison: both values, the change, and whether chance alone would do it. */
export function changeTexts(current: Profile, node: number): { a: string; b: string; words: string; noise: boolean } {
	const change = nodeChange(current, node);
	const { mode } = place.value;
	return {
		a: formatMeasured(unit.value, mode, change.a),
		b: formatMeasured(unit.value, mode, change.b),
		words: changeWords(change),
		noise: change.delta !== 0 && change.z < Z_MIN,
	};
}
