// SPDX-License-Identifier: Apache-2.0
/*
 * popover - a floating panel below the button that opens it. Escape (wherever the focus is), a press
 * elsewhere, or a loss of focus closes it; Escape returns the focus to the button.
 */
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

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

	/* All by the time that the next key comes: hence no effects that wait for a paint. */
	useLayoutEffect(() => {
		if (!open)
			return;
		const escape = (event: KeyboardEvent) => {
			if (event.key !== "Escape" || event.isComposing)
				return;
			event.preventDefault();
			event.stopPropagation();
			onClose();
			root.current!.querySelector("button")?.focus();
		};
		const outside = (event: Event) => {
			if (!root.current?.contains(event.target as Node))
				onClose();
		};
		document.addEventListener("keydown", escape, true);
		document.addEventListener("pointerdown", outside);
		document.addEventListener("focusin", outside);
		return () => {
			document.removeEventListener("keydown", escape, true);
			document.removeEventListener("pointerdown", outside);
			document.removeEventListener("focusin", outside);
		};
	}, [open, onClose]);

	/* Opened by a key from elsewhere, it takes the focus, so that keys reach it. */
	useLayoutEffect(() => {
		if (open && !root.current!.contains(document.activeElement))
			panel.current!.querySelector<HTMLElement>("button, input, [tabindex]")?.focus();
	}, [open]);

	/* Never past the window's right edge. */
	useLayoutEffect(() => {
		const box = panel.current;
		if (!box)
			return;
		const fit = () => {
			box.style.left = "";
			const { right } = box.getBoundingClientRect();
			if (right > innerWidth - 8)
				box.style.left = `${innerWidth - 8 - right}px`;
		};
		fit();
		const watch = new ResizeObserver(fit);
		watch.observe(box);
		return () => watch.disconnect();
	}, [open]);

	return (
		<div class={`popover-root ${extra}`} ref={root}>
			{button}
			{open && <div class="popover" ref={panel}>{children}</div>}
		</div>
	);
}
