// SPDX-License-Identifier: Apache-2.0
/* range_picker - relative presets and absolute ends. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { PRESETS, type TimeRange, describeDuration, describeRange, endsNow } from "../../model/timerange";
import { Icon } from "../../kit/icons";
import { lazy } from "../../kit/lazy";
import { Popover } from "../../kit/popover";

const RangeForm = lazy(() => import("./range_form").then((view) => view.RangeForm));

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
				<RangeForm range={range} onChange={choose} />
			</div>
		</Popover>
	);
}
