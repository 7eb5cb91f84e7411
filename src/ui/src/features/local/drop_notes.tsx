// SPDX-License-Identifier: Apache-2.0
/* drop_notes - notes on files that are dragged over the page, are being read, or could not be read. */
import type { JSX } from "preact";
import { opening, openingFailed } from "../../state/local";
import { busy } from "../../state/session";

export function DropNotes({ isOver }: { isOver: boolean }): JSX.Element {
	const reading = opening.value;
	return (
		<>
			{isOver && (
				<div class="drop-here" aria-hidden="true">
					<b>Drop to look at it here</b>
					<span>
						pprof, perf script, folded stacks, speedscope, Firefox; it is not
						uploaded
					</span>
				</div>
			)}
			{reading && !busy.value && (
				<div class="progress-note" role="status">
					<span>Reading {reading.name}…</span>
					<button type="button" class="button" onClick={reading.cancel}>
						Cancel
					</button>
				</div>
			)}
			{openingFailed.value && (
				<div class="failed banner" role="alert">
					<p>
						<b>The file could not be read.</b> {openingFailed.value}
					</p>
					<div class="state-actions">
						<button
							type="button"
							class="button"
							onClick={() => (openingFailed.value = "")}
						>
							Close
						</button>
					</div>
				</div>
			)}
		</>
	);
}
