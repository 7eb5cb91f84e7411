// SPDX-License-Identifier: Apache-2.0
/*
 * virtual_table - rows of any number, sortable by column, walked by keys; only the rows on screen
 * are in the page. Ctrl+C copies what is selected, or everything, as tab-separated values.
 */
import { useComputed, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

const ROW = 22;
const HEAD = 27;
const MARGIN = 8;
const SORT_MARKS = { none: "", ascending: "↑", descending: "↓" };

export interface Column<Row> {
	key: string;
	title: string;
	hint?: string;
	/* By it columns are sorted; the largest first, texts the other way round. */
	value(row: Row): number | string;
	cell(row: Row): ComponentChildren;
	number?: boolean;
}

interface Properties<Row> {
	label: string;
	class: string;
	rows: readonly Row[];
	columns: readonly Column<Row>[];
	sortedBy: string;
	/* Until the reader chooses a column, rows of a higher rank come first. */
	firstBy?(row: Row): number;
	keyOf(row: Row): number;
	selected: number;
	onSelect(row: Row): void;
	onOpen(row: Row): void;
}

const classOf = ({ key, number }: { key: string; number?: boolean }) =>
	`cell ${key}${number ? " number right" : ""}`;

function compare(a: number | string, b: number | string): number {
	return typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : a === b ? 0 : 1;
}

let serial = 0;

export function VirtualTable<Row>(properties: Properties<Row>): JSX.Element {
	const { rows, columns, keyOf, selected, onSelect, onOpen } = properties;
	const id = useRef(`table-${++serial}`).current;
	const column = useSignal(properties.sortedBy);
	const down = useSignal(true);
	const isChosen = useSignal(false);
	const scroll = useSignal(0);
	const height = useSignal(600);
	const box = useRef<HTMLDivElement>(null);
	const source = useSignal(rows);
	source.value = rows;
	const sorted = useComputed(() => {
		const by = columns.find(({ key }) => key === column.value) ?? columns[0]!;
		const sign = down.value ? -1 : 1;
		const rank = isChosen.value ? undefined : properties.firstBy;
		return source.value.map((row) => ({ row, at: by.value(row), rank: rank?.(row) ?? 0 }))
			.sort((a, b) => b.rank - a.rank || sign * compare(a.at, b.at)).map(({ row }) => row);
	}).value;

	useEffect(() => {
		const element = box.current!;
		const resizes = new ResizeObserver(() => (height.value = element.clientHeight));
		resizes.observe(element);
		return () => resizes.disconnect();
	}, []);

	const first = Math.max(0, Math.floor(scroll.value / ROW) - MARGIN);
	const last = Math.min(sorted.length, Math.ceil((scroll.value + height.value) / ROW) + MARGIN);
	const sortBy = ({ key, value }: Column<Row>) => {
		const text = sorted.length > 0 && typeof value(sorted[0]!) === "string";
		down.value = key === column.value ? !down.value : !text;
		column.value = key;
		isChosen.value = true;
	};
	const reveal = (row: number) => {
		const room = box.current!.clientHeight - HEAD;
		const y = row * ROW;
		if (y < box.current!.scrollTop || y + ROW > box.current!.scrollTop + room)
			box.current!.scrollTop = y < box.current!.scrollTop ? y : y + ROW - room;
	};
	const shown = sorted.slice(first, last);
	const active = shown.some((row) => keyOf(row) === selected) ? `${id}-${selected}` : undefined;
	const key = (event: KeyboardEvent) => {
		const at = sorted.findIndex((row) => keyOf(row) === selected);
		const page = Math.max(1, Math.floor(height.value / ROW) - 1);
		const moves: Record<string, number> = {
			ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page,
			Home: 0, End: sorted.length - 1,
		};
		const to = moves[event.key];
		if (event.key === "c" && (event.ctrlKey || event.metaKey)) {
			if (String(getSelection()))
				return;
			void navigator.clipboard?.writeText(asText(at >= 0 ? [sorted[at]!] : sorted, columns));
		} else if (event.key === "Enter" && at >= 0) {
			onOpen(sorted[at]!);
		} else if (to !== undefined && sorted.length) {
			const row = Math.min(sorted.length - 1, Math.max(0, to));
			onSelect(sorted[row]!);
			reveal(row);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	};
	return (
		<div class={`function-table ${properties.class}`} role="grid" aria-label={properties.label}
			aria-rowcount={sorted.length + 1} aria-activedescendant={active} tabIndex={0} ref={box}
			onScroll={() => (scroll.value = box.current!.scrollTop)} onKeyDown={key}>
			<div class="table-head" role="rowgroup">
				<div class="row" role="row" aria-rowindex={1}>
					{columns.map((each) => {
						const order = each.key !== column.value ? "none"
							: down.value ? "descending" : "ascending";
						return (
							<span key={each.key} role="columnheader" aria-sort={order}
								class={classOf(each)}>
								<button type="button" title={each.hint}
									onClick={() => sortBy(each)}>
									{each.title}
									<span class="sort-mark" aria-hidden="true">
										{SORT_MARKS[order]}
									</span>
								</button>
							</span>
						);
					})}
				</div>
			</div>
			<div class="table-body" role="rowgroup">
				<div role="presentation" style={{ height: `${first * ROW}px` }} />
				{shown.map((row, index) => (
					<div key={keyOf(row)} id={`${id}-${keyOf(row)}`} class="row" role="row"
						aria-rowindex={first + index + 2}
						aria-selected={keyOf(row) === selected}
						onClick={() => onSelect(row)} onDblClick={() => onOpen(row)}>
						{columns.map((each) => (
							<span key={each.key} role="gridcell"
								class={classOf(each)}>
								{each.cell(row)}
							</span>
						))}
					</div>
				))}
				<div role="presentation" style={{ height: `${(sorted.length - last) * ROW}px` }} />
			</div>
		</div>
	);
}

function asText<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
	const lines = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ value }) => value(row)))];
	return lines.map((line) => line.join("\t")).join("\n");
}
