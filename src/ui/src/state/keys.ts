// SPDX-License-Identifier: Apache-2.0
/*
 * keys - the one table of shortcuts, which the key handler, the help overlay and the palette share. "graph" keys
 * work when the graph (or nothing) has focus, "page" keys wherever the reader is not typing, "own" keys only when
 * their part of the page has focus and handles them itself.
 */

export interface KeyEntry {
	keys: string[];
	does: string;
	where: "page" | "graph" | "own";
	/* Where the help lists it; unless given, under what `addKeys` is told. */
	group?: string;
	/* For the palette: what each of `keys` does, or nothing where it makes no sense there. */
	commands?: readonly string[];
	run(key: string): void;
}

export interface Command {
	title: string;
	key: string;
	run(): void;
}

export const keyTable: KeyEntry[] = [];

/* Returns what removes them again. */
export function addKeys(group: string, entries: readonly KeyEntry[]): () => void {
	const added = entries.map((entry) => ({ group, ...entry }));
	keyTable.push(...added);
	return () => {
		for (const entry of added)
			keyTable.splice(keyTable.indexOf(entry), 1);
	};
}

export function commands(): Command[] {
	return keyTable.flatMap((entry) => {
		const titles = entry.commands ?? (entry.keys.length === 1 ? [entry.does] : []);
		return titles.map((title, index) =>
			({ title, key: entry.keys[index]!, run: () => entry.run(entry.keys[index]!) }));
	});
}

function isTyping(target: EventTarget | null): boolean {
	return target instanceof HTMLElement &&
		(target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

function onGraph(target: EventTarget | null): boolean {
	return target === document.body || (target instanceof Element && target.closest(".flame-host") !== null);
}

export function startKeys(openPalette: () => void): void {
	document.addEventListener("keydown", (event) => {
		if ((event.ctrlKey || event.metaKey) && event.key === "k" && !document.querySelector("dialog[open]")) {
			event.preventDefault();
			openPalette();
			return;
		}
		if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented)
			return;
		if (isTyping(event.target) || document.querySelector("dialog[open]"))
			return;
		const entry = keyTable.find((candidate) =>
			candidate.keys.includes(event.key) && (candidate.where === "page" ||
				(candidate.where === "graph" && onGraph(event.target))));
		if (!entry)
			return;
		event.preventDefault();
		entry.run(event.key);
	});
}
