// SPDX-License-Identifier: Apache-2.0
/* consent - asks whether firn may fetch names from the distribution's servers, and shows the progress. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { type Consent, answerConsent } from "../../data/operations";
import { formatCount } from "../../model/quantity";
import { consent, readConsent } from "../../state/consent";
import "./consent.css";

const UNDER_WAY_MS = 2_000;
const EVERY_MS = 30_000;

/* Why an answer was not taken. */
const refusal = signal("");
const answers = signal(0);

async function answer(yes: boolean): Promise<void> {
	try {
		consent.value = await answerConsent(yes ? "yes" : "no");
		refusal.value = "";
	} catch (error) {
		refusal.value = error instanceof Error ? error.message : String(error);
	}
	answers.value++;
}

function isUnderWay(known: Consent | null): boolean {
	return known?.offer.consent !== "no" && (known?.progress.waiting ?? 0) + (known?.progress.fetching ?? 0) > 0;
}

/* Reads it again and again until the returned function is called. What was answered takes a moment to begin. */
function followConsent(): () => void {
	const stop = new AbortController();
	let timer = 0;
	const look = async () => {
		if (!document.hidden)
			await readConsent(stop.signal);
		if (!stop.signal.aborted && consent.peek()?.offer.consent !== "not offered")
			timer = window.setTimeout(look, isUnderWay(consent.peek()) ? UNDER_WAY_MS : EVERY_MS);
	};
	timer = window.setTimeout(look, answers.peek() ? UNDER_WAY_MS : 0);
	return () => {
		stop.abort();
		clearTimeout(timer);
	};
}

const hostOf = (server: string) => (URL.canParse(server) ? new URL(server).host : server);

function Servers({ servers }: { servers: string[] }): JSX.Element {
	return <b class="mono">{servers.map(hostOf).join(", ")}</b>;
}

function Offer({ servers }: { servers: string[] }): JSX.Element {
	return (
		<>
			<h3>Fetch the missing names?</h3>
			<p>
				<Servers servers={servers} />, of this host's distribution, may have them. It would
				learn the build IDs of programs that run here, and the paths of sources that you
				open; nothing else is sent. The costliest come first. The answer is remembered.
			</p>
			<p class="consent-answers">
				<button type="button" class="button primary" onClick={() => answer(true)}>
					Fetch names
				</button>
				<button type="button" class="button" onClick={() => answer(false)}>No</button>
			</p>
		</>
	);
}

function progressText({ waiting, fetching, here, not_there: gone, failed }: Consent["progress"]): string {
	const all = waiting + fetching + here + gone + failed;
	const facts = [
		`${formatCount(here)} of ${formatCount(all)} here`,
		fetching ? `${formatCount(fetching)} on the way` : "",
		waiting ? `${formatCount(waiting)} waiting` : "",
		gone ? `${formatCount(gone)} it does not have` : "",
		failed ? `${formatCount(failed)} failed` : "",
	];
	return all ? facts.filter(Boolean).join(", ") : "nothing was missing yet";
}

function Asked({ known: { offer, progress } }: { known: Consent }): JSX.Element {
	const { waiting, fetching, here, not_there: gone, failed } = progress;
	const all = waiting + fetching + here + gone + failed;
	return (
		<>
			<h3>Names from <Servers servers={offer.servers} /></h3>
			<p class="consent-progress" role="status">
				{all > 0 && (
					<progress max={all} value={here + gone + failed}
						aria-label="Names that are fetched" />
				)}
				{progressText(progress)}
			</p>
			{offer.consent === "yes" && (
				<p class="consent-answers">
					<button type="button" class="button" onClick={() => answer(false)}>
						Ask no more
					</button>
				</p>
			)}
		</>
	);
}

function Refused({ servers }: { servers: string[] }): JSX.Element {
	return (
		<p class="consent-answers">
			<span><Servers servers={servers} /> is not asked for names, as was answered.</span>
			<button type="button" class="button" onClick={() => answer(true)}>Ask it after all</button>
		</p>
	);
}

export function ConsentView(): JSX.Element | null {
	const known = consent.value;
	useEffect(followConsent, [answers.value]);
	if (!known || known.offer.consent === "not offered")
		return null;
	const { consent: state, servers } = known.offer;
	return (
		<section class="consent" aria-label="Names from the distribution">
			{state === "unanswered" ? <Offer servers={servers} />
				: state === "no" ? <Refused servers={servers} /> : <Asked known={known} />}
			{refusal.value && <p class="consent-refusal" role="alert">{refusal.value}</p>}
		</section>
	);
}
