// SPDX-License-Identifier: Apache-2.0
/* filter_form - presets and a form that add filters on stacks and frames. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ACTIONS, type Action, FIELDS, FILTER_OPERATORS, PRESETS, filterText } from "../../model/filters";
import { KINDS, functionMapping, functionName } from "../../model/profile";
import { profile } from "../../state/session";
import { addFilters } from "../../state/transforms";

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

/* More would be slow to draw and are not read; typing narrows them. */
const OFFERED_MAX = 100;

/* Values of a field in what is on screen that hold what was typed, the costliest first. */
function offered(field: string, typed: string): string[] {
	const current = profile.value;
	if (!current)
		return [];
	const { functions, functionTotal } = current;
	const texts: Record<string, ((fn: number) => string) | undefined> = {
		function: (fn) => functionName(current, fn),
		binary: (fn) => functionMapping(current, fn).replace(/.*\//, ""),
		file: (fn) => functions.strings[functions.file[fn]!]!,
		kind: (fn) => KINDS[functions.kind[fn]!] ?? "",
		system_name: (fn) => functions.strings[functions.systemName[fn]!]!,
	};
	const textOf = texts[field];
	const sums = new Map<string, number>();
	for (let fn = 1; textOf && fn < functions.count; fn++) {
		const text = textOf(fn);
		if (text && text.toLowerCase().includes(typed.toLowerCase()))
			sums.set(text, Math.max(sums.get(text) ?? 0, functionTotal[fn]!));
	}
	return [...sums].sort((a, b) => b[1] - a[1]).slice(0, OFFERED_MAX).map(([text]) => text);
}

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
						spellcheck={false} autocomplete="off" list="filter-values"
						onInput={(event) => setValue(event.currentTarget.value)} />
					<datalist id="filter-values">
						{offered(field, value).map((text) =>
							<option key={text} value={text} />)}
					</datalist>
				</label>
				<button type="submit" class="button primary" disabled={!value}>Add filter</button>
			</form>
		</div>
	);
}
