// SPDX-License-Identifier: Apache-2.0
/* preferences - the reader's settings, which are never part of a link; stored in localStorage. */
import { effect, signal, type Signal } from "@preact/signals";
import { type Zone, setZone } from "../model/timerange";

function stored<T>(key: string, fallback: T, valid: (value: unknown) => value is T): Signal<T> {
	let start = fallback;
	try {
		const value: unknown = JSON.parse(localStorage.getItem(`firn.${key}`) ?? "null");
		if (valid(value))
			start = value;
	} catch {
		/* storage is off or holds something else: the default will do */
	}
	const preference = signal(start);
	let written = start;
	effect(() => {
		const { value } = preference;
		if (value === written)
			return;
		written = value;
		try {
			localStorage.setItem(`firn.${key}`, JSON.stringify(value));
		} catch {
			/* it holds for this page only */
		}
	});
	return preference;
}

/* "reduced" besides what the system asks for. */
export type Motion = "system" | "reduced";
export type Theme = "system" | "light" | "dark";

const PANE_TABS = ["details", "top", "source", "callers"] as const;
export type PaneTab = (typeof PANE_TABS)[number];

const isTheme = (value: unknown): value is Theme => value === "system" || value === "light" || value === "dark";
const isMotion = (value: unknown): value is Motion => value === "system" || value === "reduced";
const isWidth = (value: unknown): value is number => typeof value === "number" && value >= 200 && value <= 1200;
const isPane = (value: unknown): value is PaneTab =>
	typeof value === "string" && PANE_TABS.includes(value as PaneTab);
const isOpen = (value: unknown): value is boolean => typeof value === "boolean";
const isZone = (value: unknown): value is Zone => value === "local" || value === "utc";

export const theme = stored<Theme>("theme", "system", isTheme);
export const motion = stored<Motion>("motion", "system", isMotion);
export const paneWidth = stored("pane_width", 400, isWidth);
/* Of the pane when it shows code, whose lines are longer than names. */
export const codeWidth = stored("code_width", 640, isWidth);
export const paneTab = stored<PaneTab>("pane_tab", "top", isPane);
export const paneOpen = stored("pane_open", innerWidth >= 1180, isOpen);
export const stripOpen = stored("strip_open", true, isOpen);
export const minimapOpen = stored("minimap_open", true, isOpen);
export const zone = stored<Zone>("zone", "local", isZone);

effect(() => setZone(zone.value));

export function toggleZone(): void {
	zone.value = zone.value === "utc" ? "local" : "utc";
}

const systemDark = matchMedia("(prefers-color-scheme: dark)");
export const dark = signal(false);

effect(() => {
	dark.value = theme.value === "dark" || (theme.value === "system" && systemDark.matches);
	document.documentElement.dataset.theme = dark.value ? "dark" : "light";
});
effect(() => void (document.documentElement.dataset.motion = motion.value));
systemDark.addEventListener("change", () => {
	if (theme.value === "system") {
		dark.value = systemDark.matches;
		document.documentElement.dataset.theme = dark.value ? "dark" : "light";
	}
});

export function toggleTheme(): void {
	const next = dark.value ? "light" : "dark";
	theme.value = next === (systemDark.matches ? "dark" : "light") ? "system" : next;
}
