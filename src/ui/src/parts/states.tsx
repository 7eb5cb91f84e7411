// SPDX-License-Identifier: Apache-2.0
/* states - what stands in place of a graph: first load, nothing found (and why), failure. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { parseMatchers } from "../model/selector";
import { describeAge, describeRange } from "../model/timerange";
import { isLocal } from "../state/local";
import { doubts } from "../state/doubts";
import { go, place } from "../state/place";
import { dataWithoutMatchers, failure, nearestData, profile, retry, types } from "../state/session";
import { PageLink } from "./menu";

export function isEmpty(): boolean {
	return (profile.value !== null && profile.value.total[0] === 0) ||
		(types.value !== null && types.value.length === 0 && !place.value.type);
}

function NoAgents(): JSX.Element {
	return (
		<>
			<h2>No profiles yet</h2>
			<p>No agent has sent data to this server. Start one, and this page fills by itself:</p>
			<pre class="mono" tabIndex={0}>
				sudo firn agent --remote-store-address {location.host} --remote-store-insecure
			</pre>
		</>
	);
}

function NoMatch(): JSX.Element {
	const parsed = parseMatchers(place.value.matchers);
	const several = parsed.ok && parsed.matchers.length > 1;
	return (
		<>
			<h2>The matchers exclude everything</h2>
			<p>There is data in this range, but none with <code>{place.value.matchers}</code>.</p>
			<div class="state-actions">
				<button type="button" class="button primary" onClick={() => go({ matchers: "" })}>
					Remove all matchers
				</button>
				{several && <span class="muted">or change one above</span>}
			</div>
		</>
	);
}

const LAST_DAY = { from: "now-24h", to: "now" };

function NoneInRange(): JSX.Element {
	const nearest = nearestData();
	const shown = describeRange(place.value.range);
	const age = nearest && describeAge(Date.now() - nearest.newestMs);
	return (
		<>
			<h2>No data in this range</h2>
			{nearest
				? <p>The newest of this type is {age} old; shown is {shown}.</p>
				: <p>Nothing of this type was recorded in {shown}.</p>}
			<div class="state-actions">
				{nearest && (
					<button type="button" class="button primary"
						onClick={() => go({ range: nearest.range })}>
						Show {describeRange(nearest.range)}
					</button>
				)}
				<button type="button" class="button" onClick={() => go({ range: LAST_DAY })}>
					Last 24 hours
				</button>
			</div>
		</>
	);
}

function AllFiltered(): JSX.Element {
	return (
		<>
			<h2>The filters hide everything</h2>
			<p>
				There is data, but no stack
				passes <code>{place.value.filters.join("; ")}</code>.
			</p>
			<div class="state-actions">
				<button type="button" class="button primary"
					onClick={() => go({ filters: [], zoom: "" })}>
					Clear the filters
				</button>
			</div>
		</>
	);
}

/* Nobody knows whether there was any. */
function NoneReadable(): JSX.Element {
	const unread = doubts.value.find(({ page }) => page === "status");
	return (
		<>
			<h2>No data that can be read</h2>
			<p>{unread?.full}</p>
			<div class="state-actions"><PageLink to="status" title="Status of the store" /></div>
		</>
	);
}

export function Empty(): JSX.Element {
	const reason = profile.value?.header.filtered ? <AllFiltered />
		: profile.value?.header.partial ? <NoneReadable />
		: isLocal.value ? <h2>The file has no values of this kind</h2>
		: !types.value?.length ? <NoAgents />
		: dataWithoutMatchers.value && place.value.matchers ? <NoMatch />
		: <NoneInRange />;
	return <div class="state" role="status">{reason}</div>;
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
