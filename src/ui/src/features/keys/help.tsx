// SPDX-License-Identifier: Apache-2.0
/* help - the overlay that lists the shortcuts, from the table in state/keys. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "../../kit/icons";
import { type KeyEntry, keyTable } from "../../state/keys";
import { helpOpen } from "../../state/overlays";
import { page } from "../../state/pages";

const POINTER: [string, string][] = [
	["Click", "Zoom to a frame"],
	["Drag", "Pan"],
	["Wheel", "Scroll; with Shift: pan; with Ctrl: zoom"],
	["Drag on the chart", "Choose a time range"],
	["Double-click the chart", "Widen the time range"],
	["Right-click on a frame", "What can be done with it"],
];

/* Groups in the order of the page, from above; what else is open comes last. */
const ORDER = ["Query", "Search", "Page", "Flame graph", "Selected frame"];

function groups(): [string, KeyEntry[]][] {
	const names = [...new Set([...ORDER, ...keyTable.map(({ group }) => group!)])];
	const all = names.map((name) => [name, keyTable.filter(({ group }) => group === name)] as [string, KeyEntry[]]);
	return all.filter(([, entries]) => entries.length > 0);
}

/* "Timeline: open the lane" -> "Open the lane", under the heading that says the rest. */
function within(group: string, does: string): string {
	const rest = does.startsWith(`${group}: `) ? does.slice(group.length + 2) : does;
	return rest[0]!.toUpperCase() + rest.slice(1);
}

function Group({ name, entries }: { name: string; entries: readonly KeyEntry[] }): JSX.Element {
	return (
		<section class="help-group" aria-label={name}>
			<h3>{name}</h3>
			<dl>
				{entries.map(({ keys, does }) => (
					<div key={does}>
						<dt>{keys.map((key) => <kbd key={key}>{nameOf(key)}</kbd>)}</dt>
						<dd>{within(name, does)}</dd>
					</div>
				))}
			</dl>
		</section>
	);
}

function Pointer(): JSX.Element {
	return (
		<section class="help-group" aria-label="Pointer">
			<h3>Pointer</h3>
			<dl>
				{POINTER.map(([what, does]) => (
					<div key={what}><dt class="pointer">{what}</dt><dd>{does}</dd></div>
				))}
			</dl>
		</section>
	);
}

const nameOf = (key: string) => (key === " " ? "Space" : key.replace(/^Arrow/, ""));

export function Help(): JSX.Element {
	const dialog = useRef<HTMLDialogElement>(null);
	useLayoutEffect(() => dialog.current!.showModal(), []);
	const close = () => (helpOpen.value = false);
	return (
		<dialog class="help" ref={dialog} aria-labelledby="help-title" onClose={close}
			onClick={(event) => event.target === dialog.current && close()}>
			<div class="help-body">
				<h2 id="help-title">Keys and pointer</h2>
				<button type="button" class="icon-button" aria-label="Close" onClick={close}>
					<Icon name="close" />
				</button>
				<div class="help-groups">
					{groups().map(([name, entries]) =>
						<Group key={name} name={name} entries={entries} />)}
					{!page.value && <Pointer />}
				</div>
				<p class="popover-note">
					<kbd>Ctrl</kbd> <kbd>K</kbd> finds commands and pages by name, and among the
					profiles functions, label values and profile types.
				</p>
				{!page.value && <p class="popover-note">
					Search takes plain text, or a regular expression between
					slashes: <code>/json.*parse/i</code>
				</p>}
			</div>
		</dialog>
	);
}
