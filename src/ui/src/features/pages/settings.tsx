// SPDX-License-Identifier: Apache-2.0
/* settings - the reader's settings, and everything that firn stores in this browser. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { formatBytes } from "../../model/quantity";
import { Copyable } from "../../kit/answer";
import { SETTINGS, type SettingEntry } from "./settings_list";

const PREFIX = "firn.";

function stored(): [string, string][] {
	try {
		return Object.keys(localStorage)
			.filter((key) => key.startsWith(PREFIX))
			.sort()
			.map((key) => [key, localStorage.getItem(key) ?? ""]);
	} catch {
		return [];
	}
}

function Setting({ title, note, options, signal }: SettingEntry): JSX.Element {
	return (
		<fieldset class="setting">
			<legend>{title}</legend>
			<div class="setting-options">
				{options.map(({ value, label }) => (
					<label key={String(value)}>
						<input
							type="radio"
							name={title}
							checked={signal.value === value}
							onChange={() => (signal.value = value)}
						/>
						<span>{label}</span>
					</label>
				))}
			</div>
			{note && <p class="muted">{note}</p>}
		</fieldset>
	);
}

function Stored(): JSX.Element {
	const round = useSignal(0);
	const items = round.value >= 0 ? stored() : [];
	const forget = () => {
		for (const [key] of items) localStorage.removeItem(key);
		location.reload();
	};
	if (!items.length) return <p class="muted">Nothing: all settings are as they were at first.</p>;
	const bytes = items.reduce((sum, [key, value]) => sum + key.length + value.length, 0);
	return (
		<>
			<p class="muted page-note">
				In localStorage, {formatBytes(bytes)}. No cookies; nothing of it is sent to the server
				or stands in links.
			</p>
			<ul class="stored">
				{items.map(([key, value]) => (
					<li key={key}>
						<Copyable text={`${key} = ${value}`} what={key} />
					</li>
				))}
			</ul>
			<button type="button" class="button" onClick={forget}>
				Forget all of it
			</button>
		</>
	);
}

export function SettingsPage(): JSX.Element {
	return (
		<>
			<section aria-label="How the page looks">
				<h2>How the page looks</h2>
				{SETTINGS.map((each) => (
					<Setting key={each.title} {...each} />
				))}
				<p class="muted page-note">
					Contrast and forced colours follow the system's settings. What a picture shows
					(view, colours, names, filters) stands in its link instead, so that others see
					the same.
				</p>
			</section>
			<section aria-label="Kept in this browser">
				<h2>Kept in this browser</h2>
				<Stored />
			</section>
		</>
	);
}
