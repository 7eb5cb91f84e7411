// SPDX-License-Identifier: Apache-2.0
/* sandwich - one function, with all its callers above and all its callees below. */
import { computed, effect, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { FlameGraph } from "../../flame/flame_graph";
import { type Profile, childrenOf, functionName, nodeName } from "../../model/profile";
import { formatCount, formatPercent, formatRate, formatValue } from "../../model/quantity";
import { type Cut, followCut } from "../../state/cut";
import { go, place } from "../../state/place";
import { dark } from "../../state/preferences";
import { colouring, matches, selectFunction, selectedFunction, top } from "../../state/reading";
import { profile, seconds, unit } from "../../state/session";

const ROW_HEIGHT = 18;
/* The row of the function itself; above it there is but a box that says the same. */
const FUNCTION_ROW = 1;

/* The function of the link; else the selected one, else the one with the most of its own. */
const chosen = computed(() => {
	const current = profile.value;
	if (!current || current.sides)
		return "";
	if (place.value.func)
		return place.value.func;
	if (selectedFunction.value)
		return functionName(current, selectedFunction.value);
	const table = top.value!;
	const rows = Array.from(table.rows);
	const hottest = rows.reduce((a, b) => (table.self[b]! > table.self[a]! ? b : a), rows[0] ?? 0);
	return hottest ? functionName(current, hottest) : "";
});

function Half({ cut, half, label }: { cut: Cut; half: "callers" | "callees"; label: string }): JSX.Element {
	const shown = cut[half];
	const host = useRef<HTMLDivElement>(null);
	const graph = useRef<FlameGraph | null>(null);
	const source = useSignal(cut);
	const hovered = useSignal(-1);
	source.value = cut;
	useEffect(() => {
		const made = (graph.current = new FlameGraph(host.current!, {
			hover: (node) => (hovered.value = node),
			press: (node) => {
				if (node > 1)
					go({ func: nodeName(source.value[half], node) });
			},
			dragging: () => undefined,
			painted: () => undefined,
		}, ROW_HEIGHT, FUNCTION_ROW));
		made.setUpright(half === "callers");
		/* Colours and matches are of the profile on screen, which may be newer than the cut. */
		const isCurrent = () => source.value.of === profile.value;
		const stops = [
			effect(() => {
				if (colouring.value && isCurrent())
					made.setProfile(source.value[half], colouring.value, 0);
			}),
			effect(() => {
				if (isCurrent())
					made.setMatches(matches.value);
			}),
			effect(() => {
				void dark.value;
				requestAnimationFrame(() => made.retheme());
			}),
		];
		return () => {
			stops.forEach((stop) => stop());
			made.destroy();
		};
	}, []);
	const node = hovered.value;
	const whole = cut.of.total[0]!;
	return (
		<section class="half" aria-label={label}>
			<h3 class="half-title">
				<b>{label}</b>
				{node > 0 && node < shown.count && (
					<span class="half-hover">
						<span class="mono">{nodeName(shown, node)}</span>
						<span class="number muted">
							{formatPercent(shown.total[node]!, shown.total[0]!)}
							{" of the function, "}
							{formatPercent(shown.total[node]!, whole)} of total
						</span>
					</span>
				)}
			</h3>
			<div class="flame-host" ref={host} />
		</section>
	);
}

/* The nearest callers, or callees, as a list: for keys, screen readers and names in full. */
function Nearest({ shown, title }: { shown: Profile; title: string }): JSX.Element {
	const [first, end] = shown.count > 1 ? childrenOf(shown, 1, 1) : [0, 0];
	const nodes = Array.from({ length: Math.min(20, end - first) }, (_, index) => first + index);
	return (
		<details class="nearest">
			<summary>{title} ({formatCount(end - first)})</summary>
			<ul>
				{nodes.map((node) => (
					<li key={node}>
						<button type="button"
							onClick={() => go({ func: nodeName(shown, node) })}>
							<span class="number">
								{formatPercent(shown.total[node]!, shown.total[0]!)}
							</span>
							<span class="mono callee-name">{nodeName(shown, node)}</span>
						</button>
					</li>
				))}
			</ul>
		</details>
	);
}

function NotThere({ name }: { name: string }): JSX.Element {
	return (
		<div class="state" role="status">
			<h2>{name ? "The function is not in this range" : "No function to show"}</h2>
			{name && <p><code>{name}</code></p>}
			<p>
				Choose one from the table on the right, or by its frame in the flame
				graph and <kbd>c</kbd>.
			</p>
			{place.value.func && (
				<div class="state-actions">
					<button type="button" class="button primary"
						onClick={() => go({ func: "" })}>
						Show the hottest function
					</button>
				</div>
			)}
		</div>
	);
}

export function SandwichView(): JSX.Element {
	const cut = useMemo(() => followCut(chosen), []);
	useEffect(() => cut.stop, []);
	const shown = cut.shown.value;
	useEffect(() => {
		if (shown?.fn && shown.of === profile.peek() && selectedFunction.peek() !== shown.fn)
			selectFunction(shown.fn);
	}, [shown]);
	if (shown === undefined)
		return <div class="sandwich" aria-busy="true" />;
	if (!shown?.callees.total[0])
		return <NotThere name={shown?.name ?? ""} />;
	const current = shown.of;
	const value = shown.callees.total[0]!;
	const self = current.functionSelf[shown.fn]!;
	return (
		<div class="sandwich">
			<div class="sandwich-head">
				<h2 class="mono" title={shown.name}>{shown.name}</h2>
				<span class="number"><b>{formatPercent(value, current.total[0]!)}</b> of total</span>
				<span class="number muted">
					{[formatRate(unit.value, value, seconds.value), formatValue(unit.value, value),
						`self ${formatPercent(self, current.total[0]!)}`]
							.filter(Boolean).join(" · ")}
				</span>
				<span class="sandwich-lists">
					<Nearest shown={shown.callers} title="Callers" />
					<Nearest shown={shown.callees} title="Callees" />
				</span>
			</div>
			<Half cut={shown} half="callers" label="Callers" />
			<Half cut={shown} half="callees" label="Callees" />
		</div>
	);
}
