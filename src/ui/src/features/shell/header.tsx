// SPDX-License-Identifier: Apache-2.0
/* header - product name, query (type, matchers, range), refresh, theme, help. */
import type { JSX } from "preact";
import { typeTitle } from "../../model/quantity";
import { endsNow } from "../../model/timerange";
import { go, place, selector } from "../../state/place";
import { helpOpen } from "../../state/overlays";
import { dark, toggleTheme } from "../../state/preferences";
import { busy, refresh, types } from "../../state/session";
import { isLocal } from "../../state/local";
import { Icon, Logo } from "../../kit/icons";
import { lazy } from "../../kit/lazy";
import { Menu, PageLink } from "../pages/menu";
import { Picker } from "../../kit/picker";
import { QueryBar } from "../query/query_bar";
import { RangePicker } from "../query/range_picker";

function TypePicker(): JSX.Element {
	const list = types.value ?? [];
	const first = list.map((type) => typeTitle(type.type));
	/* The same counted since the program started, and from one profile to the next. */
	const titles = list.map(({ delta }, index) => first[index]! +
		(!delta && first.filter((title) => title === first[index]).length > 1 ? " (since start)" : ""));
	const isUnique = (title: string) => titles.indexOf(title) === titles.lastIndexOf(title);
	const options = list.map((type, index) => ({
		value: type.type,
		label: isUnique(titles[index]!) ? titles[index]! : type.type,
		hint: type.type,
	}));
	const { type } = place.value;
	if (type && !list.some((known) => known.type === type))
		options.push({ value: type, label: typeTitle(type), hint: type });
	return (
		<Picker label="Profile type" class="type-picker" options={options} chosen={type ? [type] : []}
			none={types.value ? "No profiles" : "…"}
			empty={types.value ? "No profiles yet." : "The server is being asked."}
			onChange={([chosen]) => go({ type: chosen!, zoom: "" })} />
	);
}

function LiveButton(): JSX.Element {
	const { live, range } = place.value;
	const possible = endsNow(range);
	const press = () => {
		if (possible)
			go({ live: !live }, "replace");
		if (!live)
			refresh();
	};
	return (
		<button type="button" id="live" class={`control live${live ? " on" : ""}`} aria-pressed={live}
			title={possible ? "Refresh every 10 s" : "Refresh"} onClick={press}>
			{possible ? <span class="live-dot" /> : <Icon name="refresh" />}
			<span>{possible ? "Live" : "Refresh"}</span>
		</button>
	);
}

const LocalHeader = lazy(() => import("../local/local").then((view) => view.LocalHeader));

/* What is asked of the server. */
function Asked(): JSX.Element {
	return (
		<>
			<TypePicker />
			{place.value.view === "compare" && <b class="side side-b" title="What it is now">B</b>}
			<QueryBar id="query" label={`Label filter for ${selector.value}`}
				matchers={place.value.matchers}
				onApply={(matchers) => go({ matchers })} />
			<RangePicker id="range" label="Time range" range={place.value.range}
				onChange={(range) => go({ range })} />
			<LiveButton />
		</>
	);
}

export function Header(): JSX.Element {
	return (
		<header class="header">
			<h1 class="landmark">
				<a class="logo" href="./" aria-label="firn: start anew"><Logo /><span>firn</span></a>
			</h1>
			{isLocal.value ? <LocalHeader /> : <><PageLink to="services" title="Services" /><Asked /></>}
			<span class="header-end">
				<button type="button" class="icon-button" id="theme" onClick={toggleTheme}
					aria-label={dark.value ? "Use the light theme" : "Use the dark theme"}
					title={dark.value ? "Light theme" : "Dark theme"}>
					<Icon name={dark.value ? "sun" : "moon"} />
				</button>
				<button type="button" class="icon-button" id="help"
					aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)"
					onClick={() => (helpOpen.value = true)}>
					<Icon name="help" />
				</button>
				<Menu />
			</span>
			<div class={`progress${busy.value ? " busy" : ""}`} role="progressbar"
				aria-label="Loading" aria-hidden={!busy.value} />
		</header>
	);
}
