// SPDX-License-Identifier: Apache-2.0
/* scraped - the targets that the server scrapes: result of the last scrape, labels, and targets dropped by a rule. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { ScrapedTarget, Scraped } from "../../data/operations";
import { digits, formatCount } from "../../model/quantity";
import { clockTime, dayOf, describeAge } from "../../model/timerange";
import { PageTable } from "../../kit/answer";

const ROWS_MAX = 500;
const HEALTH = {
	up: { health: "ok", word: "Up" },
	down: { health: "bad", word: "Down" },
	unknown: { health: "late", word: "Not asked yet" },
};

type Labels = Record<string, string>;
const textOf = (labels: Labels) =>
	Object.keys(labels)
		.sort()
		.map((name) => `${name}="${labels[name]}"`)
		.join(" ");

const keyOf = ({ scrapePool, scrapeUrl, labels }: ScrapedTarget) => `${scrapePool} ${scrapeUrl} ${textOf(labels)}`;

function Row({ target, nowMs }: { target: ScrapedTarget; nowMs: number }): JSX.Element {
	const { health, word } = HEALTH[target.health];
	const lastMs = Date.parse(target.lastScrape);
	const nextMs = Date.parse(target.nextScrape);
	const asked = lastMs > 0;
	return (
		<tr>
			<td>
				<span class={`health ${health}`}>{word}</span>
			</td>
			<th scope="row">
				<b>{target.labels.instance}</b>
				<span class="muted under">
					{target.scrapePool} · {target.profile}
				</span>
			</th>
			<td class="page-query">
				<details>
					<summary>{textOf(target.labels)}</summary>
					<p>
						<span class="muted">Asked at</span> {target.scrapeUrl}
					</p>
					<p>
						<span class="muted">Before the rules</span>{" "}
						{textOf(target.discoveredLabels)}
					</p>
				</details>
			</td>
			<td class="number" title={asked ? `${dayOf(lastMs)} ${clockTime(lastMs)}` : ""}>
				{asked ? `${describeAge(nowMs - lastMs)} ago` : "–"}
				<span class="muted under">
					{asked && `took ${digits(target.lastScrapeDuration)} s; `}
					{nextMs > nowMs ? `next in ${describeAge(nextMs - nowMs)}` : "next now"}
				</span>
			</td>
			<td>
				<span class="troubles">{target.lastError || <span class="muted">none</span>}</span>
			</td>
		</tr>
	);
}

type Wanted = (text: string) => boolean;

function Dropped({ scraped, wanted }: { scraped: Scraped; wanted: Wanted }): JSX.Element | null {
	const count = Object.values(scraped.droppedTargetCounts).reduce((sum, more) => sum + more, 0);
	const shown = scraped.droppedTargets
		.filter(({ discoveredLabels, reason, scrapePool }) =>
			wanted(`${scrapePool} ${reason} ${textOf(discoveredLabels)}`),
		)
		.slice(0, ROWS_MAX);
	if (!count) return null;
	return (
		<details>
			<summary>
				{formatCount(count)} {count === 1 ? "profile is" : "profiles are"} left out by the rules
			</summary>
			<PageTable label="Who is left out" head={["Job", "Labels that were found", "Why"]}>
				{shown.map(({ discoveredLabels, reason, scrapePool }) => (
					<tr key={`${scrapePool} ${textOf(discoveredLabels)}`}>
						<th scope="row">{scrapePool}</th>
						<td class="page-query">{textOf(discoveredLabels)}</td>
						<td class="page-query">{reason}</td>
					</tr>
				))}
			</PageTable>
		</details>
	);
}

export function ScrapedTargets({ scraped, nowMs }: { scraped: Scraped; nowMs: number }): JSX.Element {
	const filter = useSignal("");
	const words = filter.value.toLowerCase().split(" ").filter(Boolean);
	const wanted: Wanted = (text) => words.every((word) => text.toLowerCase().includes(word));
	const all = scraped.activeTargets;
	const found = all.filter(({ health, scrapePool, profile, lastError, labels }) =>
		wanted(`${health} ${scrapePool} ${profile} ${lastError} ${textOf(labels)}`),
	);
	const down = all.filter(({ health }) => health === "down").length;
	return (
		<section class="scraped" aria-label="Scraped">
			<h2>Scraped</h2>
			<p class="muted page-note" role="status">
				{formatCount(all.length)} {all.length === 1 ? "profile" : "profiles"} of the targets in
				--config-file; {down ? `${formatCount(down)} cannot be had` : "none fails"}.
			</p>
			{scraped.discoveryErrors.map(({ scrapePool, discovery, line, error }) => (
				<div class="notice bad" role="alert" key={`${scrapePool} ${line}`}>
					<span>
						<b>
							{scrapePool}: {discovery} of line {line} fails; what it found
							before stays.
						</b>{" "}
						{error}
					</span>
				</div>
			))}
			<p class="page-note">
				<input
					type="search"
					class="page-filter"
					placeholder="Filter: job, label, up, down"
					aria-label="Filter the scraped targets"
					value={filter.value}
					onInput={(event) => (filter.value = event.currentTarget.value)}
				/>
			</p>
			<PageTable label="Who is scraped" head={["State", "Target", "Labels", "Last asked", "Error"]}>
				{found.slice(0, ROWS_MAX).map((target) => (
					<Row key={keyOf(target)} target={target} nowMs={nowMs} />
				))}
			</PageTable>
			{found.length > ROWS_MAX && (
				<p class="muted">{formatCount(found.length - ROWS_MAX)} more: filter to see them.</p>
			)}
			<Dropped scraped={scraped} wanted={wanted} />
		</section>
	);
}
