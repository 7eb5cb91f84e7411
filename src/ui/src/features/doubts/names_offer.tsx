// SPDX-License-Identifier: Apache-2.0
/* names_offer - in the status line: names are missing, and nobody has decided yet whether they may be fetched. */
import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { consent, isLacking, readConsent } from "../../state/consent";

effect(() => {
	if (isLacking.value && !consent.peek())
		void readConsent();
});

export function NamesOffer({ onShow }: { onShow(): void }): JSX.Element | null {
	return isLacking.value && consent.value?.offer.consent === "unanswered" ? (
		<button type="button" class="status-offer" onClick={onShow}>Fetch names?</button>
	) : null;
}
