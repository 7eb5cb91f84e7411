// SPDX-License-Identifier: Apache-2.0
/*
 * palette - finds commands by their names, from the table in state/keys, and functions, label values
 * and profile types (ARIA combobox in a dialog).
 */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { type Command, commands } from "../../state/keys";
import { PAGES, openPage, page } from "../../state/pages";
import { paletteOpen } from "../../state/overlays";

/* Every word has to be in the title, in any order. */
function fitting(text: string): (title: string) => boolean {
	const words = text.toLowerCase().split(/\s+/);
	return (title) => words.every((word) => title.toLowerCase().includes(word));
}

function Found({ list, active, onPoint, onRun }: {
	list: readonly Command[]; active: number; onPoint(index: number): void; onRun(command: Command): void;
}): JSX.Element {
	return (
		<ul class="options" id="commands" role="listbox" aria-label="Commands">
			{list.map((command, index) => (
				<li key={`${command.key} ${command.title}`} id={`command-${index}`} role="option"
					aria-selected={index === active} class={index === active ? "active" : ""}
					onPointerMove={() => onPoint(index)} onClick={() => onRun(command)}>
					<span>{command.title}</span>
					<kbd>{command.key}</kbd>
				</li>
			))}
		</ul>
	);
}

const NONE = "No command, page, function, label value or profile type has this name.";
const NONE_AT_A_PAGE = "No command or page has this name; functions and labels are found among the profiles.";

const pageCommands = (): Command[] => PAGES.filter((each) => each.page !== page.value)
	.map((each) => ({ title: `Page: ${each.title}`, key: "page", run: () => openPage(each.page) }));

export function Palette(): JSX.Element {
	const dialog = useRef<HTMLDialogElement>(null);
	const text = useSignal("");
	const active = useSignal(0);
	const fits = fitting(text.value);
	const finds = useSignal<typeof import("../../state/finds") | null>(null);
	const list = [...[...commands(), ...pageCommands()].filter(({ title }) => fits(title)),
		...(finds.value?.finds(text.value, fits) ?? [])];
	/* Focus is back where it was, or where a command puts it, before the next key comes. */
	const close = () => {
		dialog.current!.close();
		paletteOpen.value = false;
	};
	useLayoutEffect(() => dialog.current!.showModal(), []);
	/* What it finds beside commands may come later, and not at all. */
	useEffect(() => void import("../../state/finds").then((found) => {
		finds.value = found;
		return found.loadValues();
	}).catch(() => undefined), []);
	useEffect(() => {
		document.getElementById(`command-${active.value}`)?.scrollIntoView({ block: "nearest" });
	}, [active.value]);
	const run = (command: Command | undefined) => {
		if (!command)
			return;
		close();
		command.run();
	};
	const key = (event: KeyboardEvent) => {
		if (event.isComposing)
			return;
		const last = Math.max(0, list.length - 1);
		const moves: Record<string, number> = {
			ArrowDown: Math.min(last, active.value + 1), ArrowUp: Math.max(0, active.value - 1),
			PageDown: Math.min(last, active.value + 10), PageUp: Math.max(0, active.value - 10),
		};
		const to = moves[event.key];
		if (to !== undefined)
			active.value = to;
		else if (event.key === "Enter")
			run(list[active.value]);
		else
			return;
		event.preventDefault();
	};
	const chosen = list[active.value] && `command-${active.value}`;
	return (
		<dialog class="palette" ref={dialog} aria-label="Commands"
			onClose={(event) => event.currentTarget.isConnected && close()}
			onCancel={(event) => {
				event.preventDefault();
				close();
			}}
			onClick={(event) => event.target === dialog.current && close()}>
			<input type="text" role="combobox" aria-label="Command" aria-expanded="true"
				aria-autocomplete="list"
				aria-controls="commands" aria-activedescendant={chosen}
				placeholder={page.value ? "Command or page"
					: "Command, function, label value or profile type"}
				autocomplete="off" spellcheck={false} value={text.value} onKeyDown={key}
				onInput={(event) => {
					text.value = event.currentTarget.value;
					active.value = 0;
				}} />
			<Found list={list} active={active.value} onRun={run}
				onPoint={(index) => (active.value = index)} />
			{!list.length && (
				<p class="popover-note" role="status">
					{page.value ? NONE_AT_A_PAGE : NONE}
				</p>
			)}
		</dialog>
	);
}
