// SPDX-License-Identifier: Apache-2.0
/* range_picker - relative presets and absolute ends. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import {
	PRESETS, type TimeRange, absoluteRange, describeDuration, describeRange, endsNow, localInput, parseInput,
	resolveRange, zoneName,
} from "../model/timerange";
import { Icon } from "./icons";
import { Popover } from "./popover";

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

function AbsoluteForm({ range, onChange }: { range: TimeRange; onChange(range: TimeRange): void }): JSX.Element {
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

const lately = (preset: string): TimeRange => ({ from: `now-${preset}`, to: "now" });

interface Properties {
	id: string;
	label: string;
	range: TimeRange;
	onChange(range: TimeRange): void;
}

export function RangePicker({ id, label, range, onChange }: Properties): JSX.Element {
	const [open, setOpen] = useState(false);
	const close = useCallback(() => setOpen(false), []);
	const chosen = endsNow(range) ? range.from : "";
	const choose = (next: TimeRange) => {
		onChange(next);
		close();
	};
	return (
		<Popover open={open} onClose={close} class="range-picker" button={
			<button type="button" class="control" id={id} aria-haspopup="dialog" aria-expanded={open}
				aria-label={`${label}: ${describeRange(range)}`} onClick={() => setOpen(!open)}>
				<Icon name="clock" />
				<span class="control-value">{describeRange(range)}</span>
				<Icon name="chevron" />
			</button>
		}>
			<div class="range-panel" role="dialog" aria-label={label}>
				<ul class="presets">
					{PRESETS.map((preset) => (
						<li key={preset}>
							<button type="button"
								onClick={() => choose(lately(preset))}
								aria-pressed={chosen === `now-${preset}`}>
								Last {describeDuration(preset)}
							</button>
						</li>
					))}
				</ul>
				<AbsoluteForm range={range} onChange={choose} />
			</div>
		</Popover>
	);
}
