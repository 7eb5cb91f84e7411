// SPDX-License-Identifier: Apache-2.0
/* callers - the callers of the selected function, as an expandable tree. */
import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { type Profile, childrenOf, depthOf, functionMapping, functionName, nodeName } from "../../model/profile";
import { formatPercent } from "../../model/quantity";
import { followCut } from "../../state/cut";
import { go } from "../../state/place";
import { selectedFunction } from "../../state/reading";
import { profile } from "../../state/session";

const ROWS_MAX = 400;

const selected = computed(() =>
	profile.value && selectedFunction.value ? functionName(profile.value, selectedFunction.value) : "");

/* Nodes opened or closed by hand, per tree. */
const toggled = signal<{ of: Profile | null; nodes: Set<number> }>({ of: null, nodes: new Set() });

/* Open by itself is what has one caller alone: the way up to where it forks. */
function isOpen(callers: Profile, node: number, count: number): boolean {
	const flipped = toggled.value.of === callers && toggled.value.nodes.has(node);
	return (count === 1 || node === 1) !== flipped;
}

function toggle(callers: Profile, node: number): void {
	const nodes = new Set(toggled.value.of === callers ? toggled.value.nodes : []);
	if (!nodes.delete(node))
		nodes.add(node);
	toggled.value = { of: callers, nodes };
}

const pivot = (func: string) => go({ view: "sandwich", func, zoom: "" });

interface Row {
	node: number;
	level: number;
	open: boolean;
	leaf: boolean;
}

/* Which binary a caller is of, where another beside it has the same name. */
function binaryOf(callers: Profile, node: number): string {
	const name = nodeName(callers, node);
	const [first, end] = childrenOf(callers, callers.parent[node]!, depthOf(callers, node) - 1);
	for (let other = first; node > 1 && other < end; other++)
		if (other !== node && nodeName(callers, other) === name) {
			const mapping = functionMapping(callers, callers.func[node]!);
			return mapping.slice(mapping.lastIndexOf("/") + 1);
		}
	return "";
}

function rowsOf(callers: Profile): Row[] {
	const rows: Row[] = [];
	const walk = (node: number, level: number) => {
		if (rows.length >= ROWS_MAX)
			return;
		const [first, end] = childrenOf(callers, node, depthOf(callers, node));
		const open = end > first && isOpen(callers, node, end - first);
		rows.push({ node, level, open, leaf: end === first });
		for (let child = first; open && child < end; child++)
			walk(child, level + 1);
	};
	if (callers.count > 1)
		walk(1, 1);
	return rows;
}

export function CallersPane(): JSX.Element {
	const cut = useMemo(() => followCut(selected), []);
	useEffect(() => cut.stop, []);
	const callers = cut.shown.value?.callers;
	if (cut.shown.value === undefined)
		return <p class="pane-note source-note" aria-busy="true" />;
	if (!callers || callers.count < 2)
		return <p class="pane-note source-note">Select a function to see who calls it.</p>;
	const rows = rowsOf(callers);
	const key = (event: KeyboardEvent) => {
		const buttons = [...(event.currentTarget as HTMLElement).querySelectorAll("button")];
		const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
		const row = rows[at];
		if (event.key === "ArrowDown" || event.key === "ArrowUp")
			buttons[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
		else if (row && !row.leaf && event.key === (row.open ? "ArrowLeft" : "ArrowRight"))
			toggle(callers, row.node);
		else
			return;
		event.preventDefault();
		event.stopPropagation();
	};
	return (
		<div class="pane-body callers">
			<ul role="tree" aria-label="Callers" onKeyDown={key}>
				{rows.map(({ node, level, open, leaf }) => (
					<li key={node} role="none">
						<button type="button" role="treeitem" aria-level={level}
							aria-expanded={leaf ? undefined : open}
							title={nodeName(callers, node)}
							style={{ paddingLeft: `${8 + 12 * Math.min(level - 1, 14)}px` }}
							onClick={() => (leaf ? undefined : toggle(callers, node))}
							onDblClick={() => pivot(nodeName(callers, node))}>
							<span class="callers-mark" aria-hidden="true">
								{leaf ? "·" : open ? "▾" : "▸"}
							</span>
							<span class="number">
								{formatPercent(callers.total[node]!, callers.total[0]!)}
							</span>
							<span class="mono callee-name">{nodeName(callers, node)}</span>
							<span class="muted">{binaryOf(callers, node)}</span>
						</button>
					</li>
				))}
			</ul>
			{rows.length >= ROWS_MAX && (
				<p class="pane-note">The first {ROWS_MAX} are shown; close some to see more.</p>
			)}
		</div>
	);
}
