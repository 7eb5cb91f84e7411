// SPDX-License-Identifier: Apache-2.0
/* help - the overlay that lists the keys, made from the table that the keys work by. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "../parts/icons";
import { keyTable } from "../state/keys";
import { helpOpen } from "../state/overlays";

const POINTER: [string, string][] = [
	["Click", "Zoom to a frame"],
	["Drag", "Pan"],
	["Wheel", "Scroll; with Shift: pan; with Ctrl: zoom"],
	["Drag on the chart", "Choose a time range"],
	["Double-click the chart", "Widen the time range"],
];

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
				<dl>
					{keyTable.map(({ keys, does }) => (
						<div key={does}>
							<dt>{keys.map((key) => <kbd key={key}>{nameOf(key)}</kbd>)}</dt>
							<dd>{does}</dd>
						</div>
					))}
				</dl>
				<dl>
					<div><dt><kbd>Ctrl</kbd><kbd>K</kbd></dt><dd>All of these by name</dd></div>
					{POINTER.map(([what, does]) => (
						<div key={what}><dt class="pointer">{what}</dt><dd>{does}</dd></div>
					))}
				</dl>
				<p class="popover-note">
					Search takes plain text, or a regular expression between
					slashes: <code>/json.*parse/i</code>
				</p>
			</div>
		</dialog>
	);
}
