// SPDX-License-Identifier: Apache-2.0
/* doubts - reasons to doubt the numbers on screen, and the senders that report lost samples. */
import { computed, effect, signal, untracked } from "@preact/signals";
import { fetchTargets } from "../data/operations";
import { type Doubt, type Sender, doubtsOf } from "../model/doubts";
import { parseMatchers } from "../model/selector";
import { isLocal } from "./local";
import { place } from "./place";
import { profile, unit } from "./session";

/* The picture comes first; and who sends does not change with every refresh. */
const AFTER_MS = 1_000;
const EVERY_MS = 30_000;

const senders = signal<Sender[]>([]);

export const doubts = computed<Doubt[]>(() => {
	if (!profile.value)
		return [];
	const parsed = parseMatchers(place.value.matchers);
	const known = isLocal.value ? [] : senders.value;
	return doubtsOf(profile.value, unit.value, known, parsed.ok ? parsed.matchers : []);
});

export function followSenders(): void {
	let askedAt = -Infinity;
	effect(() => {
		if (!profile.value || isLocal.value || performance.now() - askedAt < EVERY_MS)
			return undefined;
		const timer = setTimeout(() => {
			askedAt = performance.now();
			fetchTargets().then(({ targets }) => (senders.value = targets), () => undefined);
		}, untracked(() => (senders.value.length ? 0 : AFTER_MS)));
		return () => clearTimeout(timer);
	});
}
