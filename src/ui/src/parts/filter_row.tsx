// SPDX-License-Identifier: Apache-2.0
/* filter_row - the filters on stacks and frames as chips, and the form that adds one. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { ACTIONS, type Action, FIELDS, FILTER_OPERATORS, PRESETS, describeFilter, filterText } from "../model/filters";
import { lengthOf, lengthText, parseCells } from "../model/heatmap";
import { formatPercent } from "../model/quantity";
import { clockTime } from "../model/timerange";
import { go, place } from "../state/place";
import { profile, question } from "../state/session";
import { addFilters, removeFilter } from "../state/transforms";
import { Icon } from "./icons";
import { Popover } from "./popover";

function Choice({ label, options, value, onChange }: {
	label: string; options: readonly { value: string; label: string }[]; value: string;
	onChange(value: string): void;
}): JSX.Element {
	return (
		<label>
			{label}
			<select aria-label={label} value={value}
				onChange={(event) => onChange(event.currentTarget.value)}>
				{options.map((option) => (
					<option key={option.value} value={option.value}>{option.label}</option>
				))}
			</select>
		</label>
	);
}

const FIELD_OPTIONS = FIELDS.map((each) => ({ value: each, label: each.replace("_", " ") }));

function FilterForm({ onDone }: { onDone(): void }): JSX.Element {
	const [action, setAction] = useState<Action>("hide-frame");
	const [field, setField] = useState("function");
	const [operator, setOperator] = useState("*=");
	const [value, setValue] = useState("");
	const submit = (event: Event) => {
		event.preventDefault();
		if (!value)
			return;
		addFilters([filterText(action, field, operator, value)]);
		onDone();
	};
	const preset = (filters: readonly string[]) => {
		addFilters(filters);
		onDone();
	};
	return (
		<div class="range-panel" role="dialog" aria-label="Add a filter">
			<ul class="presets" aria-label="Hide internals of">
				<li class="presets-title muted">Hide</li>
				{PRESETS.map(({ name, filters }) => (
					<li key={name}>
						<button type="button" onClick={() => preset(filters)}>{name}</button>
					</li>
				))}
			</ul>
			<form class="range-form" onSubmit={submit}>
				<Choice label="Do" options={ACTIONS} value={action}
					onChange={(next) => setAction(next as Action)} />
				<Choice label="Where the frame's" value={field} onChange={setField}
					options={FIELD_OPTIONS} />
				<Choice label="Which" options={FILTER_OPERATORS} value={operator}
					onChange={setOperator} />
				<label>
					Value
					<input id="filter-value" type="text" value={value}
						spellcheck={false} autocomplete="off"
						onInput={(event) => setValue(event.currentTarget.value)} />
				</label>
				<button type="submit" class="button primary" disabled={!value}>Add filter</button>
			</form>
		</div>
	);
}

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
	const moments = question.value.cells && view !== "heatmap";
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
