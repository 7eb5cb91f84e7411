// SPDX-License-Identifier: Apache-2.0
/* states - shown instead of a graph: the first load, a failure, or `empty` if nothing was found. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { place } from "../../state/place";
import { failure, profile, retry, types } from "../../state/session";

export function isEmpty(): boolean {
	return (profile.value !== null && profile.value.total[0] === 0) ||
		(types.value !== null && types.value.length === 0 && !place.value.type);
}

/* Counts down to the next attempt. Not spoken: it would be every second. */
function NextAttempt({ atMs }: { atMs: number }): JSX.Element {
	const [now, setNow] = useState(Date.now());
	useEffect(() => {
		const timer = setInterval(() => setNow(Date.now()), 250);
		return () => clearInterval(timer);
	}, []);
	const left = Math.ceil((atMs - now) / 1000);
	return <span class="number" role="timer">{left > 0 ? `Trying again in ${left} s` : "Trying again…"}</span>;
}

export function Failed(): JSX.Element | null {
	const what = failure.value;
	if (!what)
		return null;
	const details = [what.message, what.url].filter(Boolean).join("\n");
	const copy = () => void navigator.clipboard?.writeText(details);
	return (
		<div class={`failed${profile.value ? " banner" : " state"}`}>
			<p role="alert">
				<b>{profile.value ? "Not up to date." : "This could not be loaded."}</b> {what.message}
			</p>
			<div class="state-actions">
				{what.retryAtMs !== null && <NextAttempt atMs={what.retryAtMs} />}
				<button type="button" class="button primary" onClick={retry}>
					{what.retryAtMs === null ? "Retry" : "Retry now"}
				</button>
				<button type="button" class="button" onClick={copy}>Copy details</button>
			</div>
		</div>
	);
}

const SKELETON = [100, 92, 78, 71, 64, 40, 28, 22];

export function Skeleton(): JSX.Element {
	return (
		<div class="skeleton" aria-hidden="true">
			{SKELETON.map((width) => <span key={width} class={`bone-${width}`} />)}
		</div>
	);
}
