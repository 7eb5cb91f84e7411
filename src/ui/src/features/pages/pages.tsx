// SPDX-License-Identifier: Apache-2.0
/* pages - the pages besides the profiles: their common layout with links to each, and the chosen page. */
import type { ComponentType, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { type KeyEntry, addKeys } from "../../state/keys";
import { PAGES, type Shown, page } from "../../state/pages";
import { dark, toggleTheme } from "../../state/preferences";
import { helpOpen } from "../../state/overlays";
import { showProfiles } from "../../state/place";
import { Icon, Logo } from "../../kit/icons";
import { lazy } from "../../kit/lazy";
import { PageLink } from "./menu";
import { DebuginfoPage } from "./debuginfo";
import { SettingsPage } from "./settings";
import { StatusPage } from "./status";
import { TargetsPage } from "./targets";
import "./pages.css";

const ServicesPage = lazy(() => import("../services/services").then((view) => view.ServicesPage));

function MissingPage(): JSX.Element {
	return (
		<>
			<p>
				firn has no page at <code>{location.pathname}</code>. Its pages are:
			</p>
			<ul>
				<li><PageLink to="" title="Profiles" /></li>
				{PAGES.map((each) => (
					<li key={each.page}><PageLink to={each.page} title={each.title} /></li>
				))}
			</ul>
		</>
	);
}

const BODIES: Record<Exclude<Shown, "">, ComponentType> = {
	missing: MissingPage,
	services: ServicesPage,
	targets: TargetsPage,
	debuginfo: DebuginfoPage,
	status: StatusPage,
	settings: SettingsPage,
};

const keys: KeyEntry[] = [
	{ keys: ["Escape"], does: "Back to the profiles", where: "page", run: showProfiles },
	{ keys: ["T"], does: "Light or dark", where: "page", run: toggleTheme },
	{ keys: ["?"], does: "This help", where: "page", run: () => (helpOpen.value = true) },
];

export function Pages(): JSX.Element {
	const now = page.value as Exclude<Shown, "">;
	const title = PAGES.find((each) => each.page === now)?.title ?? "No such page";
	const Body = BODIES[now];
	useEffect(() => addKeys("Page", keys), []);
	useEffect(() => {
		const before = document.title;
		document.title = `${title} · firn`;
		return () => (document.title = before);
	}, [title]);
	return (
		<div class="app">
			<header class="header page-header">
				<a
					class="logo"
					href="./"
					aria-label="firn: the profiles"
					onClick={(event) => {
						event.preventDefault();
						showProfiles();
					}}
				>
					<Logo />
					<span>firn</span>
				</a>
				<nav class="page-tabs" aria-label="Pages">
					<PageLink to="" title="Profiles" />
					{PAGES.map((each) => (
						<PageLink key={each.page} to={each.page} title={each.title} />
					))}
				</nav>
				<span class="header-end">
					<button
						type="button"
						class="icon-button"
						id="theme"
						onClick={toggleTheme}
						aria-label={dark.value ? "Use the light theme" : "Use the dark theme"}
						title={dark.value ? "Light theme" : "Dark theme"}
					>
						<Icon name={dark.value ? "sun" : "moon"} />
					</button>
				</span>
			</header>
			<main class="page" tabIndex={-1} aria-labelledby="page-title">
				<div class="page-body">
					<h1 id="page-title">{title}</h1>
					<Body key={now} />
				</div>
			</main>
		</div>
	);
}
