// SPDX-License-Identifier: Apache-2.0
/* icons - line drawings of 16 px in the colour of the surrounding text. */
import type { JSX } from "preact";

const drawings = {
	chevron: "M4.5 6.5 8 10l3.5-3.5",
	search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5l3 3",
	clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 4.8V8l2.2 1.6",
	filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
	sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6" +
		"M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M3.4 12.6l1.1-1.1M11.5 4.5l1.1-1.1",
	moon: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8Z",
	help: "M5.9 6a2.1 2.1 0 1 1 3.1 1.9c-.7.4-1 .8-1 1.6M8 12v.1",
	close: "m4.5 4.5 7 7m0-7-7 7",
	up: "m4 10 4-4 4 4",
	down: "m4 6 4 4 4-4",
	copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
	check: "m3.5 8.5 3 3 6-7",
	pane: "M2.5 3h11v10h-11zM9.5 3v10",
	refresh: "M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.8V6H9.8",
	invert: "M5 13V3M2.5 5.5 5 3l2.5 2.5M11 3v10m-2.5-2.5L11 13l2.5-2.5",
	upright: "M2.5 13.5h11M4 10h8M6 6.5h4M7 3h2",
	swap: "M3 5.5h9m-2.5-2.5 2.5 2.5-2.5 2.5M13 10.5H4m2.5-2.5L4 10.5l2.5 2.5",
	zoomout: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5l3 3M5 7h4",
	file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
	menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
	share: "M8 10V2.5M5.5 5 8 2.5 10.5 5M4.5 7.5H3v6h10v-6h-1.5",
	download: "M8 2.5v7.5m-3-3 3 3 3-3M3 13.5h10",
} as const;

export type IconName = keyof typeof drawings;

export function Icon({ name }: { name: IconName }): JSX.Element {
	return (
		<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
			<path d={drawings[name]} />
		</svg>
	);
}

export function Logo(): JSX.Element {
	return (
		<svg class="logo-mark" viewBox="0 0 20 20" aria-hidden="true">
			<rect x="1" y="3" width="18" height="3.6" rx="1" />
			<rect x="1" y="8.2" width="11" height="3.6" rx="1" />
			<rect x="13" y="8.2" width="4" height="3.6" rx="1" opacity=".55" />
			<rect x="1" y="13.4" width="6" height="3.6" rx="1" opacity=".75" />
		</svg>
	);
}
