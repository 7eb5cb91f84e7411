// SPDX-License-Identifier: Apache-2.0
/* consent - whether firn may fetch names from the distribution's debuginfod servers, and the progress. */
import { computed, signal } from "@preact/signals";
import { type Consent, fetchConsent } from "../data/operations";
import { isLocal } from "./local";
import { profile } from "./session";

/* Null until the server has said. */
export const consent = signal<Consent | null>(null);

export const isLacking = computed(() => !isLocal.value && profile.value !== null &&
	profile.value.header.unresolved.reasons.length > 0);

export const readConsent = (stop?: AbortSignal) =>
	fetchConsent(stop).then((now) => (consent.value = now), () => undefined);
