// SPDX-License-Identifier: Apache-2.0
/*
 * verdicts - which changes in the comparison on screen are more than noise: requested with the comparison, and kept
 * during a refresh.
 */
import { signal } from "@preact/signals";
import { fetchSignificance } from "../data/api";
import type { Significance } from "../model/answers";
import { type Verdicts, verdictsOf } from "../model/verdicts";
import { isLocal } from "./local";
import { base, baseSelector, place } from "./place";
import { namesAwaited, query, reload } from "./session";

export const verdicts = signal<Verdicts>(null);

const isCompared = () => place.value.view === "compare" && !isLocal.value;
const asked = () => isCompared() && [query.value, baseSelector.value, base.value.range];

/* What `verdicts` is of. */
let known = "";
let shown: Significance | null = null;

export function followVerdicts(): void {
	reload(asked, async (aborted) => {
		const key = JSON.stringify(asked());
		if (key !== known) {
			verdicts.value = shown = null;
			namesAwaited.value = false;
		}
		known = key;
		if (!isCompared())
			return;
		const answer = await fetchSignificance(
			query.value, { query: baseSelector.value, range: base.value.range }, aborted);
		if (aborted.aborted || answer === shown)
			return;
		shown = answer;
		namesAwaited.value = answer.pending > 0 || !answer.significance;
		verdicts.value = verdictsOf(answer) ?? verdicts.value;
	});
}
