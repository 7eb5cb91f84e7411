// SPDX-License-Identifier: Apache-2.0
/* consent - whether the distribution's debuginfod servers may be asked for names, and how far they have come. */
import { computed, effect, signal } from "@preact/signals";
import { type Consent, answerConsent, fetchConsent } from "../data/operations";
import { isLocal } from "./local";
import { profile } from "./session";

const UNDER_WAY_MS = 2_000;
const EVERY_MS = 30_000;

/* Null until the server has said. */
export const consent = signal<Consent | null>(null);
/* Why an answer was not taken. */
export const refusal = signal("");

const isLacking = computed(() => !isLocal.value && (profile.value?.header.unresolved.reasons.length ?? 0) > 0);

/* Whether the reader is to be asked. */
export const isAsked = computed(() => isLacking.value && consent.value?.offer.consent === "unanswered");

function isUnderWay(known: Consent | null): boolean {
	return known?.offer.consent !== "no" && (known?.progress.waiting ?? 0) + (known?.progress.fetching ?? 0) > 0;
}

/* Reads it again and again until the returned function is called. */
export function readConsent(afterMs = 0): () => void {
	const stop = new AbortController();
	let timer = 0;
	const look = async () => {
		if (!document.hidden)
			await fetchConsent(stop.signal).then((now) => (consent.value = now), () => undefined);
		if (!stop.signal.aborted && consent.peek()?.offer.consent !== "not offered")
			timer = window.setTimeout(look, isUnderWay(consent.peek()) ? UNDER_WAY_MS : EVERY_MS);
	};
	timer = window.setTimeout(look, afterMs);
	return () => {
		stop.abort();
		clearTimeout(timer);
	};
}

const answers = signal(0);

/* While names are missing. */
export function followConsent(): void {
	effect(() => (isLacking.value ? readConsent(answers.value ? UNDER_WAY_MS : 0) : undefined));
}

export async function answer(yes: boolean): Promise<void> {
	try {
		consent.value = await answerConsent(yes ? "yes" : "no");
		refusal.value = "";
	} catch (error) {
		refusal.value = error instanceof Error ? error.message : String(error);
	}
	answers.value++;
}
