// SPDX-License-Identifier: Apache-2.0
/* menu - the menu with links to the pages, and the reader's own files. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { chooseLocal } from "../../state/local";
import { PAGES, type Page, openPage, page, root } from "../../state/pages";
import { showProfiles } from "../../state/place";
import { Icon } from "../../kit/icons";
import { Popover } from "../../kit/popover";

/* Links, so that they open in a tab of their own as well. */
export function PageLink({ to, title, onGo }: { to: Page | ""; title: string; onGo?(): void }): JSX.Element {
	const press = (event: MouseEvent) => {
		if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
		event.preventDefault();
		onGo?.();
		if (to) openPage(to);
		else showProfiles();
	};
	return (
		<a href={root + to} aria-current={page.value === to ? "page" : undefined} onClick={press}>
			{title}
		</a>
	);
}

export function Menu(): JSX.Element {
	const [open, setOpen] = useState(false);
	const close = useCallback(() => setOpen(false), []);
	const choose = () => {
		close();
		chooseLocal();
	};
	return (
		<Popover
			open={open}
			onClose={close}
			button={
				<button
					type="button"
					class="icon-button"
					id="menu"
					aria-expanded={open}
					aria-label="Pages and files"
					title="Pages and files"
					onClick={() => setOpen(!open)}
				>
					<Icon name="menu" />
				</button>
			}
		>
			<nav class="menu" aria-label="Pages and files">
				{PAGES.map(({ page: to, title }) => (
					<PageLink key={to} to={to} title={title} onGo={close} />
				))}
				<button type="button" id="open-file" onClick={choose}>
					Open a file… <kbd>o</kbd>
				</button>
				<p class="popover-note">or drop it anywhere; it is not uploaded</p>
			</nav>
		</Popover>
	);
}
