// SPDX-License-Identifier: Apache-2.0
/* filter_chips - the filters on stacks and frames, and the chosen moments, as chips that can be removed. */
import type { JSX } from "preact";
import { describeFilter } from "../../model/filters";
import { lengthOf, lengthText, parseCells } from "../../model/moments";
import { formatPercent } from "../../model/quantity";
import { clockTime } from "../../model/timerange";
import { Icon } from "../../kit/icons";
import { go, place } from "../../state/place";
import { profile } from "../../state/session";
import { removeFilter } from "../../state/transforms";

/* The cells chosen in the heatmap. */
function Moments(): JSX.Element {
	const spans = parseCells(place.value.cells);
	const clock = (ms: number) => `${clockTime(ms)}.${String(ms % 1000).padStart(3, "0")}`;
	const [first] = spans;
	return (
		<span class="chip" title={place.value.cells}>
			<span class="muted">Moments</span>
			<button type="button" class="mono chip-text" title="Show them in the heatmap"
				onClick={() => go({ view: "heatmap" })}>
				{spans.length === 1 ? `${clock(first!.fromMs)} – ${clock(first!.toMs)}`
					: `${spans.length} stretches, ${lengthText(lengthOf(spans))}`}
			</button>
			<button type="button" class="icon-button" aria-label="Show all moments"
				onClick={() => go({ cells: "" })}>
				<Icon name="close" />
			</button>
		</span>
	);
}

export function FilterChips({ moments }: { moments: boolean }): JSX.Element {
	const { filters } = place.value;
	const { filtered, total } = profile.value?.header ?? { filtered: 0, total: 0 };
	return (
		<div class="filter-row" role="group" aria-label="Filters">
			{moments && <Moments />}
			{filters.map((filter) => {
				const [action, condition] = describeFilter(filter);
				return (
					<span key={filter} class="chip" title={filter}>
						<span class="muted">{action}</span>
						<span class="mono chip-text">{condition}</span>
						<button type="button" class="icon-button"
							aria-label={`Remove the filter ${filter}`}
							onClick={() => removeFilter(filter)}>
							<Icon name="close" />
						</button>
					</span>
				);
			})}
			{filters.length > 0 && (
				<button type="button" class="chip-clear" onClick={() => go({ filters: [], zoom: "" })}>
					Clear
				</button>
			)}
			{filtered > 0 && (
				<span class="muted number">{formatPercent(filtered, filtered + total)} hidden</span>
			)}
		</div>
	);
}
