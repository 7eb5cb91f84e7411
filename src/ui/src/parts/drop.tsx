// SPDX-License-Identifier: Apache-2.0
/* drop - files that are dragged over the page, are being read, or could not be. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { openLocal, opening, openingFailed } from "../state/local";
import { busy } from "../state/session";

const over = signal(false);

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

function listen(): () => void {
	const drag = (event: DragEvent) => {
		if (!hasFiles(event)) return;
		event.preventDefault();
		over.value = true;
	};
	const leave = (event: DragEvent) => {
		if (!event.relatedTarget) over.value = false;
	};
	const drop = (event: DragEvent) => {
		over.value = false;
		if (!hasFiles(event)) return;
		event.preventDefault();
		const file = event.dataTransfer!.files[0];
		if (file) void openLocal(file);
	};
	document.addEventListener("dragover", drag);
	document.addEventListener("dragleave", leave);
	document.addEventListener("drop", drop);
	return () => {
		document.removeEventListener("dragover", drag);
		document.removeEventListener("dragleave", leave);
		document.removeEventListener("drop", drop);
	};
}

export function Drop(): JSX.Element {
	useEffect(listen, []);
	const reading = opening.value;
	return (
		<>
			{over.value && (
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
