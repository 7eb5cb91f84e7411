// SPDX-License-Identifier: Apache-2.0
/*
 * pages - the pages besides the profiles, each at a path of its own after the prefix that a proxy may
 * add: /services, /targets, /debuginfo, /status, /settings. The server answers all of them with index.html, and
 * every other path, too (with 404), so that this module can report a wrong address.
 */
import { signal } from "@preact/signals";

export const PAGES = [
	{ page: "services", title: "Services" },
	{ page: "targets", title: "Targets" },
	{ page: "debuginfo", title: "Debug information" },
	{ page: "status", title: "Status" },
	{ page: "settings", title: "Settings" },
] as const;

export type Page = (typeof PAGES)[number]["page"];
/* "" is the profiles. */
export type Shown = Page | "" | "missing";

export function pageOf(pathname: string): Shown {
	const last = pathname.slice(pathname.lastIndexOf("/") + 1);
	if (last === "" || last === "index.html") return "";
	return PAGES.find(({ page: name }) => name === last)?.page ?? "missing";
}

/* The path that all of them share. */
export const root = new URL(".", location.href).pathname;

export const page = signal<Shown>(pageOf(location.pathname));

export function openPage(next: Page, how: "push" | "replace" = "push"): void {
	if (next !== page.value) history[`${how}State`]({ zooms: 0 }, "", root + next);
	page.value = next;
}

addEventListener("popstate", () => (page.value = pageOf(location.pathname)));
