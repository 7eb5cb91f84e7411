// SPDX-License-Identifier: Apache-2.0
/* doubts - reasons to doubt the numbers on screen: one word in the status line, all of them in the side pane. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { PageLink } from "../pages/menu";
import { doubts, followSenders } from "../../state/doubts";
import { paneOpen, paneTab } from "../../state/preferences";
import { selectNode } from "../../state/reading";
import { lazy } from "../../kit/lazy";

const NamesOffer = lazy(() => import("./names_offer").then((view) => view.NamesOffer), false);

/* What is asked of the reader is not urgent, and its code no part of the first load. */
const LATER_MS = 5_000;
const isLater = signal(false);
setTimeout(() => (isLater.value = true), LATER_MS);

const TITLES = { targets: "Targets", status: "Status" };

followSenders();

/* Always in sight, whatever is pointed at; the side pane says more of each. */
export function DoubtsBrief(): JSX.Element | null {
	const list = doubts.value;
	if (!list.length)
		return null;
	const show = () => {
		selectNode(-1);
		paneTab.value = "details";
		paneOpen.value = true;
	};
	return (
		<>
			<button type="button" class="status-doubts" onClick={show}
				title={list.map(({ brief, full }) => full || brief).join("\n")}>
				{list.map(({ brief }) => brief).join(" · ")}
			</button>
			{isLater.value && <NamesOffer onShow={show} />}
		</>
	);
}

export function DoubtsInFull(): JSX.Element | null {
	const told = doubts.value.filter(({ full }) => full);
	if (!told.length)
		return null;
	return (
		<section class="unresolved" aria-label="About these numbers">
			<h3>About these numbers</h3>
			{told.map(({ full, page: more }) => (
				<p key={full} class="thin">
					{full}{" "}
					{more && <PageLink to={more} title={TITLES[more]} />}
				</p>
			))}
		</section>
	);
}
