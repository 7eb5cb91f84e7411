// SPDX-License-Identifier: Apache-2.0
/* frame_menu - what can be done with a frame, at the frame: right click, or x. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { transformable, transforms } from "../state/transforms";

/* Where it is open, in page pixels. */
export const frameMenu = signal<{ x: number; y: number } | null>(null);

export function FrameMenu(): JSX.Element | null {
	const menu = useRef<HTMLUListElement>(null);
	const at = frameMenu.value;
	const close = () => (frameMenu.value = null);
	useLayoutEffect(() => {
		const box = menu.current;
		if (!box || !at)
			return;
		box.style.left = `${Math.max(4, Math.min(at.x, innerWidth - box.offsetWidth - 8))}px`;
		box.style.top = `${Math.max(4, Math.min(at.y, innerHeight - box.offsetHeight - 8))}px`;
		box.querySelector("button")?.focus();
	}, [at]);
	useEffect(() => {
		if (!at)
			return;
		const outside = (event: Event) => {
			if (!menu.current?.contains(event.target as Node))
				close();
		};
		document.addEventListener("pointerdown", outside);
		return () => document.removeEventListener("pointerdown", outside);
	}, [at]);
	const name = transformable();
	if (!at || !name)
		return null;
	const key = (event: KeyboardEvent) => {
		const items = [...menu.current!.querySelectorAll("button")];
		const here = items.indexOf(document.activeElement as HTMLButtonElement);
		const entry = transforms.find((each) => each.key === event.key);
		if (event.key === "Escape" || event.key === "Tab")
			close();
		else if (event.key === "ArrowDown" || event.key === "ArrowUp")
			items[(here + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length]!.focus();
		else if (entry) {
			close();
			entry.run(name);
		} else
			return;
		event.preventDefault();
		event.stopPropagation();
	};
	return (
		<ul class="frame-menu options" role="menu" aria-label={name} ref={menu} onKeyDown={key}>
			<li class="frame-menu-name mono" role="presentation">{name}</li>
			{transforms.map((each) => (
				<li key={each.key} role="presentation">
					<button type="button" role="menuitem" onClick={() => {
						close();
						each.run(name);
					}}>
						<span>{each.title}</span><kbd>{each.key}</kbd>
					</button>
				</li>
			))}
		</ul>
	);
}
