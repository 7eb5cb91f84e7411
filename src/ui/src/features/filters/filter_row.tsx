// SPDX-License-Identifier: Apache-2.0
/* filter_row - the row of filters on stacks and frames, and the button that adds one. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { place } from "../../state/place";
import { query } from "../../state/session";
import { Icon } from "../../kit/icons";
import { lazy } from "../../kit/lazy";
import { Popover } from "../../kit/popover";

const FilterForm = lazy(() => import("./filter_form").then((view) => view.FilterForm));
const FilterChips = lazy(() => import("./filter_chips").then((view) => view.FilterChips));

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

export function FilterRow(): JSX.Element | null {
	const { filters, view } = place.value;
	const moments = query.value.cells !== "" && view !== "heatmap";
	return filters.length || moments ? <FilterChips moments={moments} /> : null;
}
