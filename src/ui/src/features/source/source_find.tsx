// SPDX-License-Identifier: Apache-2.0
/* source_find - finds text in all lines of the source view, also in those that are not in the document. */
import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { compilePattern } from "../../model/search";
import type { SourceRow } from "../../model/source";

const text = signal("");
const pattern = computed(() => compilePattern(text.value));

/* Whether a line is looked for; null when nothing is. */
export const sought = computed(() => (pattern.value.kind === "match" ? pattern.value.test : null));
/* The row that was come to last; -1 for none. */
export const foundRow = signal(-1);

function said(found: readonly number[]): string {
	if (pattern.value.kind === "invalid")
		return pattern.value.reason;
	if (!found.length)
		return "not found";
	return `${found.indexOf(foundRow.value) + 1} of ${found.length}`;
}

/* Begins at the hottest line, and after the last one again with the first. */
export function Find({ rows, hot }: { rows: readonly SourceRow[]; hot: number }): JSX.Element {
	const test = sought.value;
	const found = useMemo(() =>
		(test ? rows.flatMap((row, index) => (test(row.text) ? [index] : [])) : []), [rows, test]);
	useEffect(() => {
		if (found.includes(foundRow.value))
			return;
		foundRow.value = found.find((row) => row >= hot) ?? found[0] ?? -1;
	}, [found]);
	const step = (by: number) => {
		const at = found.indexOf(foundRow.value);
		foundRow.value = found[(at + by + found.length) % found.length] ?? -1;
	};
	const key = (event: KeyboardEvent) => {
		if (event.key === "Enter")
			step(event.shiftKey ? -1 : 1);
		else if (event.key === "Escape" && text.value)
			text.value = "";
		else
			return;
		event.preventDefault();
		event.stopPropagation();
	};
	return (
		<span class="source-find">
			<span class="muted" role="status">{text.value && said(found)}</span>
			<input type="search" placeholder="Find" aria-label="Find in the text" value={text.value}
				title="Find in the text (Ctrl+F); Enter: the next line, Shift+Enter: the one before"
				onInput={(event) => (text.value = event.currentTarget.value)} onKeyDown={key} />
		</span>
	);
}
