// SPDX-License-Identifier: Apache-2.0
/* frame_menu - the context menu of a frame: right click, or x. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { frameMenu } from "../../state/overlays";
import { narrow, selectedGroup, transformable, transforms } from "../../state/transforms";

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
	/* Its keys wherever focus is: a press between the entries takes it from them. */
	useLayoutEffect(() => {
		if (!at)
			return;
		const outside = (event: Event) => {
			if (!menu.current?.contains(event.target as Node))
				close();
		};
		document.addEventListener("keydown", key, true);
		document.addEventListener("pointerdown", outside);
		return () => {
			document.removeEventListener("keydown", key, true);
			document.removeEventListener("pointerdown", outside);
		};
	}, [at]);
	const group = selectedGroup();
	const name = transformable() || group?.value;
	const entries = group ? [
		{ key: "f", title: `Show only ${group.label}=${group.value}`, run: () => narrow(group, "=") },
		{ key: "D", title: `Leave ${group.label}=${group.value} out`, run: () => narrow(group, "!=") },
	] : transforms;
	const key = (event: KeyboardEvent) => {
		const items = [...(menu.current?.querySelectorAll("button") ?? [])];
		if (!items.length || event.isComposing || event.ctrlKey || event.metaKey || event.altKey)
			return;
		const here = items.indexOf(document.activeElement as HTMLButtonElement);
		const entry = entries.find((each) => each.key === event.key);
		if (event.key === "Escape" || event.key === "Tab") {
			close();
			document.getElementById("graph")?.focus({ preventScroll: true });
		} else if (event.key === "ArrowDown" || event.key === "ArrowUp")
			items[(here + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length]!.focus();
		else if (entry) {
			close();
			entry.run(name!);
		} else
			return;
		event.preventDefault();
		event.stopPropagation();
	};
	if (!at || !name)
		return null;
	return (
		<ul class="frame-menu options" role="menu" aria-label={name} ref={menu}>
			<li class="frame-menu-name mono" role="presentation">{name}</li>
			{entries.map((each) => (
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
