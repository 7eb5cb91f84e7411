// SPDX-License-Identifier: Apache-2.0
/*
 * line_keys - the chart's legend: sortable; pointing highlights a line, a press shows it alone, another press shows all
 * again; a line can also become a condition of the query.
 */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { Chart } from "../../model/chart";
import { quote, quoteName } from "../../model/selector";
import { clockTime } from "../../model/timerange";
import { alone, colourOf, pointed } from "../../state/lines";
import { go, place } from "../../state/place";
import { Icon } from "../../kit/icons";

/* Fewer are seen at a glance. */
const SORTED_MIN = 4;

/* The line that the Tab key leads to. */
const walked = signal("");

const order = signal<{ by: "mean" | "label"; down: boolean }>({ by: "mean", down: true });

/* Above the values: what they are of, the mean or the moment pointed at (0: none). */
export function LineSort({ current, at }: { current: Chart | null; at: number }): JSX.Element | null {
	if (!current || current.lines.length < SORTED_MIN)
		return null;
	const choose = (by: "mean" | "label") => {
		const { by: now, down } = order.value;
		order.value = { by, down: by === now ? !down : by === "mean" };
	};
	return (
		<div class="line-sort muted" role="group" aria-label="Sort the lines by">
			{([["label", "Name"], ["mean", "Mean"]] as const).map(([by, title]) => {
				const chosen = order.value.by === by;
				const way = order.value.down ? "descending" : "ascending";
				return (
					<button key={by} type="button" aria-pressed={chosen} onClick={() => choose(by)}
						aria-label={chosen ? `${title}, ${way}` : title}
						title={`Sort the lines by ${title.toLowerCase()}`}>
						{by === "mean" && at > 0 ? clockTime(at) : title}
						<span class="sort-mark" aria-hidden="true">
							{chosen && (order.value.down ? "↓" : "↑")}
						</span>
					</button>
				);
			})}
		</div>
	);
}

function addCondition(labels: Record<string, string>): void {
	const parts = Object.entries(labels).map(([name, value]) => `${quoteName(name)}=${quote(value)}`);
	go({ matchers: [place.value.matchers, ...parts].filter(Boolean).join(", ") });
}

/* Long names differ in their ends: those stay. */
const NAME_LONG = 24;
const END_LENGTH = 10;

function LineName({ label }: { label: string }): JSX.Element {
	const cut = label.length > NAME_LONG ? label.length - END_LENGTH : label.length;
	return <span class="line-name"><span>{label.slice(0, cut)}</span><span>{label.slice(cut)}</span></span>;
}

interface Properties {
	current: Chart;
	/* The line nearest to the pointer, or -1. */
	near: number;
	valueOf(line: Chart["lines"][number]): string;
}

export function LineKeys({ current, near, valueOf }: Properties): JSX.Element {
	const { by, down } = order.value;
	const only = alone.value;
	const toggle = (label: string) => (alone.value = only === label ? "" : label);
	const sign = down ? -1 : 1;
	const rows = current.lines.map((line, at) => ({ line, at })).sort((a, b) => sign * (by === "mean" ?
		a.line.mean - b.line.mean : a.line.label < b.line.label ? -1 : 1));
	/* A comparison's lines are queries, not labels. */
	const filters = place.value.view !== "compare";
	/* One stop for the Tab key; arrows walk the lines, and to what can be done with one. */
	const stop = rows.some(({ line }) => line.label === walked.value) ? walked.value : rows[0]?.line.label;
	const walk = (event: KeyboardEvent) => {
		const here = (event.target as Element).closest("li");
		const goal = event.key === "ArrowDown" ? here?.nextElementSibling
			: event.key === "ArrowUp" ? here?.previousElementSibling
			: event.key === "ArrowRight" || event.key === "ArrowLeft" ? here : null;
		const button = goal?.querySelector<HTMLElement>(
			event.key === "ArrowRight" ? ".line-filter" : ".line-key");
		if (!button)
			return;
		button.focus();
		event.preventDefault();
		event.stopPropagation();
	};
	return (
		<ul class="line-keys" aria-label="Lines of the chart" onKeyDown={walk}>
			{rows.map(({ line, at }) => (
				<li key={line.label} class={at === near ? "near" : undefined}
					onMouseEnter={() => (pointed.value = line.label)}
					onMouseLeave={() => (pointed.value = "")}>
					<button type="button" class="line-key" tabIndex={line.label === stop ? 0 : -1}
						onFocus={() => (walked.value = line.label)}
						aria-pressed={only === line.label}
						title={`Draw ${only === line.label ? "all" : `only ${line.label}`}`}
						onClick={() => toggle(line.label)}>
						<span class={`swatch line-${colourOf(at)}`} />
						<LineName label={line.label} />
						<span class="number">{valueOf(line)}</span>
					</button>
					{filters && (
						<button type="button" class="line-filter" tabIndex={-1}
							onClick={() => addCondition(line.labels)}
							aria-label={`Show only ${line.label} in all views`}
							title={`Show only ${line.label} in all views`}>
							<Icon name="filter" />
						</button>
					)}
				</li>
			))}
			{current.hidden > 0 && <li class="muted">and {current.hidden} more</li>}
		</ul>
	);
}
