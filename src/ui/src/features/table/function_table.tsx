// SPDX-License-Identifier: Apache-2.0
/* function_table - self and total per function, sortable. */
import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { functionFile, functionMapping, functionName } from "../../model/profile";
import { formatCount, formatPercent, formatValue } from "../../model/quantity";
import { filterTop, sortTop } from "../../model/top";
import { go, place } from "../../state/place";
import { colouring, matches, selectFunction, selectedFunction, top, widestOf, zoomTo } from "../../state/reading";
import { isFirstLook, profile, unit } from "../../state/session";
import { type Column, VirtualTable } from "../../kit/virtual_table";

const baseName = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/* The bar is relative to the column's largest value, the percentage to the whole. */
function Share({ value, most, whole }: { value: number; most: number; whole: number }): JSX.Element {
	return (
		<span class="share number">
			<span class="share-bar" style={{ width: `${most > 0 ? (100 * value) / most : 0}%` }} />
			<span class="share-value">{formatValue(unit.value, value)}</span>
			<span class="share-percent">{formatPercent(value, whole)}</span>
		</span>
	);
}

function largest(values: Float64Array): number {
	return values.reduce((most, value) => Math.max(most, value), 0);
}

function columns(compact: boolean, found: number): Column<number>[] {
	const current = profile.value!;
	const table = top.value!;
	const whole = current.total[0]!;
	const share = (key: "self" | "total", title: string): Column<number> => {
		const most = largest(table[key]);
		return {
			key, title, number: true, value: (fn) => table[key][fn]!,
			cell: (fn) => <Share value={table[key][fn]!} most={most} whole={whole} />,
		};
	};
	const text = (key: string, title: string, full: (fn: number) => string, shown = full): Column<number> =>
		({ key, title, value: full, cell: (fn) => <span class="muted" title={full(fn)}>{shown(fn)}</span> });
	const name: Column<number> = {
		key: "name", title: isFirstLook.value ? "Function (more is on its way)"
			: found < 0 ? "Function" : `Function (${formatCount(found)} found)`,
		value: (fn) => functionName(current, fn),
		cell: (fn) => (
			<span class="mono" title={functionName(current, fn)}>
				<span class={`swatch frame-${colouring.value?.slots[fn] ?? 8}`} />
				{functionName(current, fn)}
			</span>
		),
	};
	const few = [share("self", "Self"), share("total", "Total"), name];
	return compact ? few : [
		...few,
		text("binary", "Binary", (fn) => functionMapping(current, fn), (fn) =>
			baseName(functionMapping(current, fn))),
		text("file", "File", (fn) => functionFile(current, fn)),
	];
}

export function FunctionTable({ compact }: { compact: boolean }): JSX.Element | null {
	/* By name first, so that ties of any column go by name. */
	const rows = useComputed(() => {
		if (!profile.value || !top.value)
			return null;
		const wanted = matches.value ? filterTop(top.value, matches.value.functions) : top.value;
		return Array.from(sortTop(profile.value, wanted, "name", false).rows);
	}).value;
	const jump = (fn: number) => {
		const current = profile.value!;
		const node = widestOf(current, fn);
		if (node < 0)
			return;
		if (place.value.view === "sandwich") {
			go({ func: functionName(current, fn) });
			return;
		}
		if (place.value.view !== "flame")
			go({ view: "flame" });
		zoomTo(node);
	};
	if (!rows)
		return null;
	return (
		<VirtualTable label="Functions" class={compact ? "compact" : ""} sortedBy="self" rows={rows}
			columns={columns(compact, matches.value ? rows.length : -1)} keyOf={(fn) => fn}
			selected={selectedFunction.value} onOpen={jump}
			onSelect={(fn) => (place.value.view === "sandwich" ? jump(fn) : selectFunction(fn))} />
	);
}
