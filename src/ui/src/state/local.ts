// SPDX-License-Identifier: Apache-2.0
/*
 * local - a profile file that the reader opened: it is read in this page and sent nowhere. The place
 * has its name; the file itself is kept as long as the page is open.
 */
import { computed, signal } from "@preact/signals";
import type { FileFacts } from "../data/file_worker";
import type { OpenFile } from "../data/files";
import type { Profile } from "../model/profile";
import { type Place, START, type View } from "../model/place";
import { go, place } from "./place";

export interface LocalFile {
	file: OpenFile;
	facts: FileFacts;
}

/* What was opened last; it may not be what is on screen. */
export const opened = signal<LocalFile | null>(null);
/* The file that is being read: its name, and how to stop. */
export const opening = signal<{ name: string; cancel(): void } | null>(null);
export const openingFailed = signal("");

/* Where the reader was before. */
let before: Place | null = null;

/* Views that ask nothing of the server. */
const VIEWS: readonly View[] = ["flame", "table", "sandwich"];

export const isLocal = computed(() => place.value.file !== "");
/* False of a view that a local file cannot fill: it has neither times nor binaries, and only one side. */
export const canShow = (view: View) => !isLocal.value || VIEWS.includes(view);
/* The file on screen; null when it was opened before the page was loaded anew. */
export const shown = computed(() =>
	isLocal.value && opened.value?.file.name === place.value.file ? opened.value : null,
);

export async function openLocal(file: File): Promise<void> {
	opening.peek()?.cancel();
	const controller = new AbortController();
	const mine = { name: file.name, cancel: () => controller.abort() };
	opening.value = mine;
	openingFailed.value = "";
	try {
		const { OpenFile: Files } = await import("../data/files");
		const next = await Files.open(file, controller.signal);
		if (controller.signal.aborted) return;
		opened.peek()?.file.close();
		opened.value = next;
		const { view } = place.value;
		if (!place.value.file) before = place.value;
		go({
			...START,
			file: file.name,
			type: next.facts.chosen,
			live: false,
			view: VIEWS.includes(view) ? view : "flame",
			colourBy: place.value.colourBy,
		});
	} catch (error) {
		if (!controller.signal.aborted)
			openingFailed.value = `${file.name}: ${error instanceof Error ? error.message : String(error)}`;
	} finally {
		if (opening.peek() === mine) opening.value = null;
	}
}

/* The system's dialog for choosing one. */
export function chooseLocal(): void {
	const input = document.createElement("input");
	input.type = "file";
	input.onchange = () => input.files?.[0] && void openLocal(input.files[0]);
	input.hidden = true;
	document.body.append(input);
	input.click();
	/* Chosen or not, it is not needed again once the page is used. */
	addEventListener("focus", () => setTimeout(() => input.remove(), 1000), { once: true });
}

/* Back to what the server has. */
export function leaveLocal(): void {
	if (before) go(before);
	else location.assign("./");
}

export function treeOfLocal({ file }: LocalFile, inverted: boolean): Promise<Profile> {
	const { type, groupBy, filters } = place.value;
	return file.tree({ type, groupBy, filters, inverted });
}
