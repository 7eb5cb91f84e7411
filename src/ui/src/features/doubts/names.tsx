// SPDX-License-Identifier: Apache-2.0
/* names - how names that are missing may come: the offer in the status line, and all of it in the side pane. */
import type { JSX } from "preact";
import { ConsentView } from "../pages/consent";
import { PageLink } from "../pages/menu";
import { followConsent, isAsked } from "../../state/consent";

followConsent();

export function NamesOffer({ onShow }: { onShow(): void }): JSX.Element | null {
	return isAsked.value ? (
		<button type="button" class="status-offer" onClick={onShow}>Fetch names?</button>
	) : null;
}

export function NamesToCome(): JSX.Element {
	return (
		<>
			<ConsentView />
			<p class="pane-note">
				The commands that bring the names of each binary:{" "}
				<PageLink to="debuginfo" title="Debug information" />
			</p>
		</>
	);
}
