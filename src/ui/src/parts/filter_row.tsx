// SPDX-License-Identifier: Apache-2.0
/* filter_row - the filters on stacks and frames as chips, and the button for one more. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { describeFilter } from "../model/filters";
import { lengthOf, lengthText, parseCells } from "../model/moments";
import { formatPercent } from "../model/quantity";
import { clockTime } from "../model/timerange";
import { go, place } from "../state/place";
import { profile, query } from "../state/session";
import { removeFilter } from "../state/transforms";
import { Icon } from "./icons";
import { lazy } from "./lazy";
import { Popover } from "./popover";

const FilterForm = lazy(() => import("../views/filter_form").then((view) => view.FilterForm));

export function AddFilter(): JSX.Element {
	const [open, setOpen] = useState(false);
	const close = useCallback(() => setOpen(false), []);
	return (
		<Popover open={open} onClose={close} class="quiet" button={
			<button type="button" class="control" id="add-filter"
				aria-haspopup="dialog" aria-expanded={open}
				onClick={() => setOpen(!open)}>
				<Icon name="filter" /><span>Filter</span>
			</button>
		}>
			<FilterForm onDone={close} />
		</Popover>
	);
}

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

export function FilterRow(): JSX.Element | null {
	const { filters, view } = place.value;
	const moments = query.value.cells && view !== "heatmap";
	if (!filters.length && !moments)
		return null;
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
