// SPDX-License-Identifier: Apache-2.0
/* function_table - self and total per function, sortable; only the rows on screen are in the page. */
import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type Profile, functionFile, functionMapping, functionName } from "../model/profile";
import { formatPercent, formatValue } from "../model/quantity";
import { type TopColumn, filterTop, sortTop } from "../model/top";
import { go, place } from "../state/place";
import { colouring, matches, selectFunction, selectedFunction, top, widestOf, zoomTo } from "../state/reading";
import { profile, unit } from "../state/session";

const ROW = 22;
const HEAD = 27;
const MARGIN = 8;
const SORT_MARKS = { none: "", ascending: "↑", descending: "↓" };

const baseName = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/* The bar is relative to the column's largest value, the percentage to the whole. */
function ShareCell({ value, most, whole }: { value: number; most: number; whole: number }): JSX.Element {
	const bar = useRef<HTMLSpanElement>(null);
	useEffect(() => {
		bar.current!.style.width = `${most > 0 ? (100 * value) / most : 0}%`;
	}, [value, most]);
	return (
		<span class="cell share number" role="gridcell">
			<span class="share-bar" ref={bar} />
			<span class="share-value">{formatValue(unit.value, value)}</span>
			<span class="share-percent">{formatPercent(value, whole)}</span>
		</span>
	);
}

function PathCells({ current, fn }: { current: Profile; fn: number }): JSX.Element {
	const binary = functionMapping(current, fn);
	const file = functionFile(current, fn);
	return (
		<>
			<span class="cell binary muted" role="gridcell" title={binary}>{baseName(binary)}</span>
			<span class="cell file muted" role="gridcell" title={file}>{file}</span>
		</>
	);
}

function largest(values: Float64Array | undefined): number {
	return values?.reduce((most, value) => Math.max(most, value), 0) ?? 0;
}

export function FunctionTable({ compact }: { compact: boolean }): JSX.Element | null {
	const column = useSignal<TopColumn>("self");
	const down = useSignal(true);
	const scroll = useSignal(0);
	const height = useSignal(600);
	const body = useRef<HTMLDivElement>(null);
	const sorted = useComputed(() => {
		const current = profile.value;
		const table = top.value;
		if (!current || !table)
			return null;
		const wanted = matches.value ? filterTop(table, matches.value.functions) : table;
		return sortTop(current, wanted, column.value, down.value);
	});

	useEffect(() => {
		const box = body.current!;
		const resizes = new ResizeObserver(() => (height.value = box.clientHeight));
		resizes.observe(box);
		return () => resizes.disconnect();
	}, []);

	const most = useComputed(() => ({ self: largest(top.value?.self), total: largest(top.value?.total) })).value;
	const current = profile.value;
	const table = sorted.value;
	const count = table?.rows.length ?? 0;
	const first = Math.max(0, Math.floor(scroll.value / ROW) - MARGIN);
	const last = Math.min(count, Math.ceil((scroll.value + height.value) / ROW) + MARGIN);
	const whole = current?.total[0] ?? 0;
	const id = compact ? "pane-row" : "row";

	const sortBy = (next: TopColumn) => {
		down.value = next === column.value ? !down.value : next !== "name";
		column.value = next;
	};
	const jump = (fn: number) => {
		const node = current ? widestOf(current, fn) : -1;
		if (node < 0)
			return;
		if (place.value.view === "sandwich") {
			go({ func: functionName(current!, fn) });
			return;
		}
		if (place.value.view !== "flame")
			go({ view: "flame" });
		zoomTo(node);
	};
	const press = (fn: number) => (place.value.view === "sandwich" ? jump(fn) : selectFunction(fn));
	const key = (event: KeyboardEvent) => {
		const at = table ? table.rows.indexOf(selectedFunction.value) : -1;
		const page = Math.max(1, Math.floor(height.value / ROW) - 1);
		const moves: Record<string, number> = {
			ArrowDown: at + 1, ArrowUp: at - 1,
			PageDown: at + page, PageUp: at - page,
			Home: 0, End: count - 1,
		};
		const to = moves[event.key];
		if (event.key === "Enter" && at >= 0) {
			jump(selectedFunction.value);
		} else if (to !== undefined && count) {
			const row = Math.min(count - 1, Math.max(0, to));
			selectFunction(table!.rows[row]!);
			const y = row * ROW;
			const box = body.current!;
			const room = box.clientHeight - HEAD;
			if (y < box.scrollTop || y + ROW > box.scrollTop + room)
				box.scrollTop = y < box.scrollTop ? y : y + ROW - room;
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	};
	const heading = (title: string, of: TopColumn) => {
		const order = column.value !== of ? "none" : down.value ? "descending" : "ascending";
		return (
			<span class={`cell ${of}`} role="columnheader" aria-sort={order}>
				<button type="button" onClick={() => sortBy(of)}>
					{title}<span class="sort-mark" aria-hidden="true">{SORT_MARKS[order]}</span>
				</button>
			</span>
		);
	};
	const rows = [];
	for (let index = first; current && table && index < last; index++) {
		const fn = table.rows[index]!;
		rows.push(
			<div key={fn} id={`${id}-${fn}`} class="row" role="row"
				aria-rowindex={index + 2} aria-selected={fn === selectedFunction.value}
				onClick={() => press(fn)} onDblClick={() => jump(fn)}>
				<ShareCell value={table.self[fn]!} most={most.self} whole={whole} />
				<ShareCell value={table.total[fn]!} most={most.total} whole={whole} />
				<span class="cell name mono" role="gridcell" title={functionName(current, fn)}>
					<span class={`swatch frame-${colouring.value?.slots[fn] ?? 8}`} />
					{functionName(current, fn)}
				</span>
				{!compact && <PathCells current={current} fn={fn} />}
			</div>,
		);
	}
	const active = selectedFunction.value && rows.some((row) => row.key === selectedFunction.value)
		? `${id}-${selectedFunction.value}` : undefined;
	return (
		<div class={`function-table${compact ? " compact" : ""}`} role="grid" aria-label="Functions"
			aria-rowcount={count + 1} aria-activedescendant={active} tabIndex={0} ref={body}
			onScroll={() => (scroll.value = body.current!.scrollTop)} onKeyDown={key}>
			<div class="table-head" role="rowgroup">
				<div class="row" role="row" aria-rowindex={1}>
					{heading("Self", "self")}
					{heading("Total", "total")}
					{heading(matches.value ? `Function (${count} match)` : "Function", "name")}
					{!compact && <span class="cell binary" role="columnheader">Binary</span>}
					{!compact && <span class="cell file" role="columnheader">File</span>}
				</div>
			</div>
			<div class="table-body" role="rowgroup">
				<Spacer rows={first} />
				{rows}
				<Spacer rows={Math.max(0, count - last)} />
			</div>
		</div>
	);
}

function Spacer({ rows }: { rows: number }): JSX.Element {
	const block = useRef<HTMLDivElement>(null);
	useEffect(() => {
		block.current!.style.height = `${rows * ROW}px`;
	});
	return <div ref={block} role="presentation" />;
}
