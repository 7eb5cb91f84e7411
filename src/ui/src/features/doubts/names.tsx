// SPDX-License-Identifier: Apache-2.0
/* names - in the side pane: how to get missing names. */
import type { JSX } from "preact";
import { ConsentView } from "../pages/consent";
import { PageLink } from "../pages/menu";

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
