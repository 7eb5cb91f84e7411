// SPDX-License-Identifier: Apache-2.0
/*
 * popover - a floating panel under the button that opens it. Closes by Escape, by a press
 * elsewhere, and when focus leaves; Escape gives focus back to the button.
 */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

interface Properties {
	open: boolean;
	onClose(): void;
	/* The button with its aria attributes. */
	button: ComponentChildren;
	children: ComponentChildren;
	class?: string;
}

export function Popover({ open, onClose, button, children, class: extra = "" }: Properties): JSX.Element {
	const root = useRef<HTMLDivElement>(null);
	const panel = useRef<HTMLDivElement>(null);

	useEffect(() => {
		if (!open)
			return;
		const outside = (event: Event) => {
			if (!root.current?.contains(event.target as Node))
				onClose();
		};
		document.addEventListener("pointerdown", outside);
		document.addEventListener("focusin", outside);
		return () => {
			document.removeEventListener("pointerdown", outside);
			document.removeEventListener("focusin", outside);
		};
	}, [open, onClose]);

	/* Opened by a key from elsewhere, it takes the focus, so that keys reach it. */
	useEffect(() => {
		if (open && !root.current!.contains(document.activeElement))
			panel.current!.querySelector<HTMLElement>("button, input, [tabindex]")?.focus();
	}, [open]);

	/* Never past the window's right edge. */
	useLayoutEffect(() => {
		const box = panel.current?.getBoundingClientRect();
		if (box && box.right > innerWidth - 8)
			panel.current!.style.left = `${innerWidth - 8 - box.right}px`;
	}, [open]);

	const key = (event: KeyboardEvent) => {
		if (event.key !== "Escape" || !open)
			return;
		event.stopPropagation();
		onClose();
		root.current?.querySelector("button")?.focus();
	};

	return (
		<div class={`popover-root ${extra}`} ref={root} onKeyDown={key}>
			{button}
			{open && <div class="popover" ref={panel}>{children}</div>}
		</div>
	);
}
