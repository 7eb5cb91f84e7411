// SPDX-License-Identifier: Apache-2.0
/* drop - opens files that are dropped on the page. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { openLocal, opening, openingFailed } from "../../state/local";
import { lazy } from "../../kit/lazy";

const over = signal(false);

const DropNotes = lazy(() => import("./drop_notes").then((view) => view.DropNotes));

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

export function Drop(): JSX.Element | null {
	useEffect(listen, []);
	const hasNotes = over.value || opening.value || openingFailed.value;
	return hasNotes ? <DropNotes isOver={over.value} /> : null;
}
