// SPDX-License-Identifier: Apache-2.0
/* range_form - the absolute ends of a time range. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type TimeRange, absoluteRange, localInput, parseInput, resolveRange, zoneName } from "../../model/timerange";

function TimeInput({ label, value, onChange }: {
	label: string; value: string; onChange(value: string): void;
}): JSX.Element {
	return (
		<label>
			{label} <input type="datetime-local" step="1" value={value}
				onInput={(event) => onChange(event.currentTarget.value)} />
		</label>
	);
}

export function RangeForm({ range, onChange }: {
	range: TimeRange; onChange(range: TimeRange): void;
}): JSX.Element {
	const now = resolveRange(range, Date.now());
	const [from, setFrom] = useState(localInput(now.fromMs));
	const [to, setTo] = useState(localInput(now.toMs));
	const span = { fromMs: parseInput(from), toMs: parseInput(to) };
	const valid = span.fromMs < span.toMs;
	const submit = (event: Event) => {
		event.preventDefault();
		if (valid)
			onChange(absoluteRange(span));
	};
	return (
		<form class="range-form" onSubmit={submit}>
			<TimeInput label="From" value={from} onChange={setFrom} />
			<TimeInput label="To" value={to} onChange={setTo} />
			<p class="popover-note">{valid ? `Times are of ${zoneName()}.` : "From must be before To."}</p>
			<button type="submit" class="button primary" disabled={!valid}>Show</button>
		</form>
	);
}
