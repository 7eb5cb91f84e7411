// SPDX-License-Identifier: Apache-2.0
/* empty - shown instead of an empty graph: the condition that excluded everything, and a remedy. */
import type { JSX } from "preact";
import { agentCommand } from "../../model/agent_command";
import { typeTitle } from "../../model/quantity";
import { parseMatchers } from "../../model/selector";
import { describeAge, describeRange } from "../../model/timerange";
import { PageLink } from "../pages/menu";
import { isLocal } from "../../state/local";
import { go, place } from "../../state/place";
import { dataWithoutMatchers, nearestData, profile, types } from "../../state/session";

function NoAgents(): JSX.Element {
	return (
		<>
			<h2>No profiles yet</h2>
			<p>No agent has sent data to this server. Start one, and this page fills by itself:</p>
			<pre class="mono" tabIndex={0}>
				{agentCommand(location)}
			</pre>
		</>
	);
}

function NoMatch(): JSX.Element {
	const parsed = parseMatchers(place.value.matchers);
	const several = parsed.ok && parsed.matchers.length > 1;
	return (
		<>
			<h2>The label filter excludes everything</h2>
			<p>There is data in this range, but none with <code>{place.value.matchers}</code>.</p>
			<div class="state-actions">
				<button type="button" class="button primary" onClick={() => go({ matchers: "" })}>
					Remove the label filter
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

/* The largest number of types that are offered in place of an unknown one. */
const TYPES_OFFERED = 12;

function UnknownType(): JSX.Element {
	const known = types.value ?? [];
	return (
		<>
			<h2>No profile type of this name</h2>
			<p>
				Nothing was ever recorded as <code>{place.value.type}</code>. This server has:
			</p>
			<div class="state-actions">
				{known.slice(0, TYPES_OFFERED).map(({ type }, index) => (
					<button key={type} type="button" title={type}
						class={`button${index ? "" : " primary"}`}
						onClick={() => go({ type, zoom: "" })}>
						{typeTitle(type)}
					</button>
				))}
			</div>
		</>
	);
}

/* Nobody knows whether there was any. */
function NoneReadable(): JSX.Element {
	return (
		<>
			<h2>No data that can be read</h2>
			<p>Part of the store could not be read: what was in there is missing here.</p>
			<div class="state-actions"><PageLink to="status" title="Status of the store" /></div>
		</>
	);
}

export function Empty(): JSX.Element {
	const reason = profile.value?.header.filtered ? <AllFiltered />
		: profile.value?.header.partial ? <NoneReadable />
		: isLocal.value ? <h2>The file has no values of this kind</h2>
		: !types.value?.length ? <NoAgents />
		: !types.value.some(({ type }) => type === place.value.type) ? <UnknownType />
		: dataWithoutMatchers.value && place.value.matchers ? <NoMatch />
		: <NoneInRange />;
	return <div class="state" role="status">{reason}</div>;
}
