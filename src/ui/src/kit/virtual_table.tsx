// SPDX-License-Identifier: Apache-2.0
/*
 * virtual_table - a table with any number of rows, sortable by column, with keyboard navigation; only
 * the visible rows are in the document. Ctrl+C copies the selected rows, or all, as tab-separated values.
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

/* In the order that the reader chose, or the one that the table begins with. */
function useOrder<Row>({ rows, columns, sortedBy, firstBy }: Properties<Row>) {
	const column = useSignal(sortedBy);
	const down = useSignal(true);
	const isChosen = useSignal(false);
	const source = useSignal(rows);
	source.value = rows;
	const sorted = useComputed(() => {
		const by = columns.find(({ key }) => key === column.value) ?? columns[0]!;
		const sign = down.value ? -1 : 1;
		const rank = isChosen.value ? undefined : firstBy;
		return source.value.map((row) => ({ row, at: by.value(row), rank: rank?.(row) ?? 0 }))
			.sort((a, b) => b.rank - a.rank || sign * compare(a.at, b.at)).map(({ row }) => row);
	}).value;
	const sortBy = ({ key, value }: Column<Row>) => {
		const text = sorted.length > 0 && typeof value(sorted[0]!) === "string";
		down.value = key === column.value ? !down.value : !text;
		column.value = key;
		isChosen.value = true;
	};
	const orderOf = ({ key }: Column<Row>) =>
		key !== column.value ? "none" : down.value ? "descending" : "ascending";
	return { sorted, sortBy, orderOf };
}

type Order<Row> = ReturnType<typeof useOrder<Row>>;

function Head<Row>({ columns, orderOf, sortBy }: {
	columns: readonly Column<Row>[]; orderOf: Order<Row>["orderOf"]; sortBy: Order<Row>["sortBy"];
}): JSX.Element {
	return (
		<div class="table-head" role="rowgroup">
			<div class="row" role="row" aria-rowindex={1}>
				{columns.map((each) => (
					<span key={each.key} role="columnheader" aria-sort={orderOf(each)}
						class={classOf(each)}>
						<button type="button" title={each.hint} onClick={() => sortBy(each)}>
							{each.title}
							<span class="sort-mark" aria-hidden="true">
								{SORT_MARKS[orderOf(each)]}
							</span>
						</button>
					</span>
				))}
			</div>
		</div>
	);
}

/* Rows `first` to before `last`, with room for those that are not in the page. */
function Body<Row>({ id, sorted, first, last, properties }: {
	id: string; sorted: readonly Row[]; first: number; last: number; properties: Properties<Row>;
}): JSX.Element {
	const { columns, keyOf, selected, onSelect, onOpen } = properties;
	return (
		<div class="table-body" role="rowgroup">
			<div role="presentation" style={{ height: `${first * ROW}px` }} />
			{sorted.slice(first, last).map((row, index) => (
				/* Rows stay, whatever they come to hold: nothing moves when numbers change. */
				<div key={first + index} id={`${id}-${keyOf(row)}`} class="row" role="row"
					aria-rowindex={first + index + 2} aria-selected={keyOf(row) === selected}
					onClick={() => onSelect(row)} onDblClick={() => onOpen(row)}>
					{columns.map((each) => (
						<span key={each.key} role="gridcell" class={classOf(each)}>
							{each.cell(row)}
						</span>
					))}
				</div>
			))}
			<div role="presentation" style={{ height: `${(sorted.length - last) * ROW}px` }} />
		</div>
	);
}

/* The row that a key leads to from row `at`; undefined when it is none of the table's keys. */
function rowBy(key: string, at: number, page: number, count: number): number | undefined {
	const moves: Record<string, number> = {
		ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1,
	};
	const to = moves[key];
	return to === undefined || !count ? undefined : Math.min(count - 1, Math.max(0, to));
}

let serial = 0;

export function VirtualTable<Row>(properties: Properties<Row>): JSX.Element {
	const { columns, keyOf, selected, onSelect, onOpen } = properties;
	const id = useRef(`table-${++serial}`).current;
	const { sorted, sortBy, orderOf } = useOrder(properties);
	const scroll = useSignal(0);
	const height = useSignal(600);
	const box = useRef<HTMLDivElement>(null);

	useEffect(() => {
		const element = box.current!;
		const resizes = new ResizeObserver(() => (height.value = element.clientHeight));
		resizes.observe(element);
		return () => resizes.disconnect();
	}, []);

	const first = Math.max(0, Math.floor(scroll.value / ROW) - MARGIN);
	const last = Math.min(sorted.length, Math.ceil((scroll.value + height.value) / ROW) + MARGIN);
	const reveal = (row: number) => {
		const room = box.current!.clientHeight - HEAD;
		const y = row * ROW;
		if (y < box.current!.scrollTop || y + ROW > box.current!.scrollTop + room)
			box.current!.scrollTop = y < box.current!.scrollTop ? y : y + ROW - room;
	};
	const isActive = sorted.slice(first, last).some((row) => keyOf(row) === selected);
	const key = (event: KeyboardEvent) => {
		const at = sorted.findIndex((row) => keyOf(row) === selected);
		const to = rowBy(event.key, at, Math.max(1, Math.floor(height.value / ROW) - 1), sorted.length);
		if (event.key === "c" && (event.ctrlKey || event.metaKey)) {
			if (String(getSelection()))
				return;
			void navigator.clipboard?.writeText(asText(at >= 0 ? [sorted[at]!] : sorted, columns));
		} else if (event.key === "Enter" && at >= 0) {
			onOpen(sorted[at]!);
		} else if (to !== undefined) {
			onSelect(sorted[to]!);
			reveal(to);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	};
	return (
		<div class={`function-table ${properties.class}`} role="grid" aria-label={properties.label}
			aria-rowcount={sorted.length + 1} tabIndex={0} ref={box} onKeyDown={key}
			aria-activedescendant={isActive ? `${id}-${selected}` : undefined}
			onScroll={() => (scroll.value = box.current!.scrollTop)}>
			<Head columns={columns} orderOf={orderOf} sortBy={sortBy} />
			<Body id={id} sorted={sorted} first={first} last={last} properties={properties} />
		</div>
	);
}

function asText<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
	const lines = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ value }) => value(row)))];
	return lines.map((line) => line.join("\t")).join("\n");
}
