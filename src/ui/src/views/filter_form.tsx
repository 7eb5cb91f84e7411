// SPDX-License-Identifier: Apache-2.0
/* filter_form - presets and a form that add filters on stacks and frames. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ACTIONS, type Action, FIELDS, FILTER_OPERATORS, PRESETS, filterText } from "../model/filters";
import { addFilters } from "../state/transforms";

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

export function FilterForm({ onDone }: { onDone(): void }): JSX.Element {
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
