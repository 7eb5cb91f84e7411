// SPDX-License-Identifier: Apache-2.0
/* settings_list - the available settings, one entry each; state/preferences has their meaning. */
import type { Signal } from "@preact/signals";
import { motion, paneOpen, stripOpen, theme } from "../../state/preferences";

export interface SettingEntry {
	title: string;
	note?: string;
	options: { value: never; label: string }[];
	signal: Signal<never>;
}

const entry = <T extends string | boolean>(
	title: string,
	signal: Signal<T>,
	options: { value: T; label: string }[],
	note?: string,
) => ({ title, signal, options, note }) as unknown as SettingEntry;

export const SETTINGS: SettingEntry[] = [
	entry("Theme", theme, [
		{ value: "system", label: "As the system" },
		{ value: "light", label: "Light" },
		{ value: "dark", label: "Dark" },
	]),
	entry(
		"Motion",
		motion,
		[
			{ value: "system", label: "As the system" },
			{ value: "reduced", label: "None" },
		],
		"Whether zooming is animated, for a tenth of a second.",
	),
	entry("Side pane", paneOpen, [
		{ value: true, label: "Open" },
		{ value: false, label: "Closed" },
	]),
	entry("Chart over time", stripOpen, [
		{ value: true, label: "Open" },
		{ value: false, label: "Folded" },
	]),
];
