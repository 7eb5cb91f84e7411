// SPDX-License-Identifier: Apache-2.0
/*
 * keys - the one table of shortcuts: what works by key and what the help overlay shows. "graph"
 * keys work when the graph (or nothing) has focus, "page" keys wherever the reader is not typing.
 */
export interface KeyEntry {
	keys: string[];
	does: string;
	where: "page" | "graph";
	run(key: string): void;
}

export const keyTable: KeyEntry[] = [];

export function addKeys(entries: KeyEntry[]): () => void {
	keyTable.push(...entries);
	return () => {
		for (const entry of entries)
			keyTable.splice(keyTable.indexOf(entry), 1);
	};
}

function isTyping(target: EventTarget | null): boolean {
	return target instanceof HTMLElement &&
		(target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

function onGraph(target: EventTarget | null): boolean {
	return target === document.body || (target instanceof Element && target.closest(".flame-host") !== null);
}

export function startKeys(): void {
	document.addEventListener("keydown", (event) => {
		if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented)
			return;
		if (isTyping(event.target) || document.querySelector("dialog[open]"))
			return;
		const entry = keyTable.find((candidate) =>
			candidate.keys.includes(event.key) && (candidate.where === "page" || onGraph(event.target)));
		if (!entry)
			return;
		event.preventDefault();
		entry.run(event.key);
	});
}
