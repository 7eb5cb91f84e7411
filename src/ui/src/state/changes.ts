// SPDX-License-Identifier: Apache-2.0
/* changes - the change of a frame in a comparison, in words and numbers; used wherever one is shown. */
import { type Change, type Mode, changeOf, changeWords } from "../model/compare";
import type { Profile } from "../model/profile";
import { type Verdict, nodeVerdict } from "../model/verdicts";
import { type Unit, formatPerSecond, formatPercent, formatValue } from "../model/quantity";
import { place } from "./place";
import { unit } from "./session";
import { verdicts } from "./verdicts";

/* What is said beside a change that is not known to be one. */
export const VERDICT_WORDS: Record<Verdict, string> = {
	sure: "", none: "", noise: "may be noise", untested: "too few samples to tell", pending: "checking…",
};

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
	return changeOf([a, b], a.total[node]!, b.total[node]!, place.value.mode);
}

/* A frame of a comparison: both values, the change, and what is said of a change that may be none; "" if nothing. */
export function changeTexts(
	current: Profile, node: number,
): { a: string; b: string; words: string; verdict: Verdict; doubt: string } {
	const change = nodeChange(current, node);
	const { mode } = place.value;
	const verdict = nodeVerdict(verdicts.value, current, node);
	return {
		a: formatMeasured(unit.value, mode, change.a),
		b: formatMeasured(unit.value, mode, change.b),
		words: changeWords(change),
		verdict,
		doubt: change.delta === 0 ? "" : VERDICT_WORDS[verdict],
	};
}
