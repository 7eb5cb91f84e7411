// SPDX-License-Identifier: Apache-2.0
/* app - the layout of the main screen: header, chart strip, tools, main view with its side pane, status line. */
import type { JSX } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { type KeyEntry, addKeys } from "../../state/keys";
import { place } from "../../state/place";
import { minimapOpen, paneOpen, toggleTheme, toggleZone, zone } from "../../state/preferences";
import { cursor } from "../../state/reading";
import { busy, failure, profile, refresh } from "../../state/session";
import { toggleInverted, toggleUpright, transform, transforms } from "../../state/transforms";
import { FilterRow } from "../filters/filter_row";
import { FlameView, graphOnScreen } from "../graph/flame_view";
import { FunctionTable } from "../table/function_table";
import { Header } from "./header";
import { Pane } from "../pane/pane";
import { ProgressNote } from "../states/progress_note";
import { Failed, Skeleton, isEmpty } from "../states/states";
import { StatusLine } from "./status_line";
import { Strip } from "../chart/strip";
import { PathRow, Tools, VIEWS, showView as openView } from "../tools/tools";
import { lazy } from "../../kit/lazy";
import { Drop } from "../local/drop";
import { chooseLocal, isLocal, shown } from "../../state/local";
import { formatPlace } from "../../model/place";
import { frameMenu, helpOpen, paletteOpen } from "../../state/overlays";
import { page, root } from "../../state/pages";
import { Palette } from "../keys/palette";

const focusOn = (id: string) => {
	const element = document.getElementById(id);
	element?.focus();
	if (element instanceof HTMLInputElement)
		element.select();
};

const SandwichView = lazy(() => import("../sandwich/sandwich").then((view) => view.SandwichView));
const CompareBar = lazy(() => import("../compare/compare").then((view) => view.CompareBar));

const FrameMenu = lazy(() => import("../graph/frame_menu").then((view) => view.FrameMenu));
const Help = lazy(() => import("../keys/help").then((view) => view.Help));
const Empty = lazy(() => import("../states/empty").then((view) => view.Empty));
const LocalGone = lazy(() => import("../local/local").then((view) => view.LocalGone));
const Pages = lazy(() => import("../pages/pages").then((pages) => pages.Pages));

const showView = (key: string) => openView(VIEWS.find((each) => each.key === key)!.view);

function openMenu(): void {
	const host = document.querySelector(".flame-host")?.getBoundingClientRect();
	const box = graphOnScreen.value?.rectangle(Math.max(0, cursor.value));
	if (host)
		frameMenu.value = { x: host.x + (box?.x ?? 0) + 20, y: host.y + (box?.y ?? 0) + 20 };
}

const pageKeys: KeyEntry[] = [
	{ keys: ["/"], does: "Search functions", where: "page", group: "Search", run: () => focusOn("search") },
	{ keys: ["e"], does: "Edit the label filter", where: "page", group: "Query", run: () => focusOn("query") },
	{ keys: ["t"], does: "Time range", where: "page", group: "Query",
		run: () => document.getElementById("range")?.click() },
	{ keys: ["r"], does: "Refresh", where: "page", group: "Query", run: () => refresh() },
	{
		keys: VIEWS.map(({ key }) => key), does: "Views, in the order of their tabs", where: "page",
			run: showView,
		commands: VIEWS.map(({ title }) => `View: ${title}`),
	},
	{ keys: ["p"], does: "Side pane", where: "page", run: () => (paneOpen.value = !paneOpen.value) },
	{ keys: ["i"], does: "Invert: functions first", where: "page", group: "Flame graph", run: toggleInverted },
	{ keys: ["u"], does: "Roots at the bottom", where: "page", group: "Flame graph", run: toggleUpright },
	...transforms.map(({ key, title }) =>
		({ keys: [key], does: `Selected frame: ${title}`, where: "page" as const, group: "Selected frame",
			run: transform })),
	{ keys: ["x"], does: "Selected frame: menu", where: "page", group: "Selected frame", run: openMenu },
	{ keys: ["M"], does: "Small map of the graph", where: "page", group: "Flame graph", run: () =>
		(minimapOpen.value = !minimapOpen.value) },
	{ keys: ["Z"], does: "Local time or UTC", where: "page", run: toggleZone },
	{ keys: ["o"], does: "Open a file in this page, without upload", where: "page", run: chooseLocal },
	{ keys: ["T"], does: "Light or dark", where: "page", run: toggleTheme },
	{ keys: ["?"], does: "This help", where: "page", run: () => (helpOpen.value = true) },
];

const HeatmapView = lazy(() => import("../heatmap/heatmap").then((view) => view.HeatmapView));
const TimelineView = lazy(() => import("../timeline/timeline").then((view) => view.TimelineView));
const CallGraphView = lazy(() => import("../callgraph/callgraph").then((view) => view.CallGraphView));

function View(): JSX.Element {
	if (isLocal.value && !shown.value)
		return <LocalGone />;
	/* It stays when the chosen cells are empty. */
	if (profile.value && place.value.view === "heatmap")
		return <HeatmapView />;
	if (isEmpty())
		return <Empty />;
	if (!profile.value)
		return failure.value ? <Failed /> : <Skeleton />;
	if (place.value.view === "sandwich")
		return <SandwichView />;
	if (place.value.view === "timeline")
		return <TimelineView />;
	if (place.value.view === "callgraph")
		return <CallGraphView />;
	return place.value.view === "table" ? <FunctionTable compact={false} /> : <FlameView />;
}

/* What frames in other pages go without. */
function Around(): JSX.Element {
	return (
		<>
			<Header />
			<section class="landmark" aria-label="Controls">
				{!isLocal.value && <Strip />}
				{place.value.view === "compare" && !isLocal.value && <CompareBar />}
				<Tools />
				<FilterRow />
				<PathRow />
			</section>
		</>
	);
}

function EmbedLink(): JSX.Element {
	const whole = root + formatPlace({ ...place.value, embed: false });
	return (
		<nav class="landmark" aria-label="firn">
			<a class="embed-link" href={whole} target="_blank" rel="noopener">Open in firn</a>
		</nav>
	);
}

function Explorer(): JSX.Element {
	useLayoutEffect(() => addKeys("Page", pageKeys), []);
	return (
		<div class="app" key={zone.value}>
			{!place.value.embed && <Around />}
			<main class={`main${busy.value ? " busy" : ""}`}>
				<div class="view">
					<View />
					{profile.value && <Failed />}
					<ProgressNote />
				</div>
				{!place.value.embed && <Pane />}
			</main>
			{place.value.embed && <EmbedLink />}
			<StatusLine />
			{frameMenu.value && <section class="landmark" aria-label="Frame"><FrameMenu /></section>}
		</div>
	);
}

export function App(): JSX.Element {
	return (
		<>
			{page.value ? <Pages /> : <Explorer />}
			<Drop />
			{helpOpen.value && <Help />}
			{paletteOpen.value && <Palette />}
		</>
	);
}
