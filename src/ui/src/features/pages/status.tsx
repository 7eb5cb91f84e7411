// SPDX-License-Identifier: Apache-2.0
/* status - the page on the server: store, memory, disk, running queries, build. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { type RunningQuery, type Status, fetchQueries, fetchStatus, stopQuery } from "../../data/operations";
import { formatBytes, formatCount, formatPercent, formatTime } from "../../model/quantity";
import { clockTime, dayOf, describeAge } from "../../model/timerange";
import { Answered, Copyable, Facts, PageTable, useAnswer } from "../../kit/answer";

const EVERY_MS = 5000;
const QUERIES_EVERY_MS = 1500;
const DISK_LOW = 0.05;
const BUCKET_LATE_S = 600;

/* "90 s", "25 min". */
const formatAge = (s: number) => (s < 120 ? `${Math.round(s)} s` : `${Math.round(s / 60)} min`);

/* The server's own words. */
const sentence = (error = "") => (error ? `The last error: ${error}.` : "");

type Fact = [title: string, value: ComponentChildren];

const when = (ms: number) => (ms ? `${dayOf(ms)} ${clockTime(ms)}` : "–");

/* What is wrong, and what to do about it. */
function Warnings({ status: { store, disk, bucket, remote } }: { status: Status }): JSX.Element | null {
	const low = disk.bytes && disk.free_bytes !== undefined && disk.free_bytes / disk.bytes < DISK_LOW;
	const said = [
		store.poisoned && (
			<>
				<b>The store takes no more profiles.</b> Writing to the disk failed; the log says how.
				When that is mended, restart the server: what was acknowledged is safe.
			</>
		),
		store.parts_quarantined > 0 && (
			<>
				<b>{formatCount(store.parts_quarantined)} parts of the store could not be read</b> and
				were set aside: answers that would need them are partial.{" "}
				<code>firn store verify {disk.path ?? "FOLDER"}</code> says what is wrong.
			</>
		),
		remote && !remote.answers && (
			<>
				<b>{remote.kind} does not answer</b>: until it does, senders keep their profiles and
				nothing can be shown. {sentence(remote.error)}
			</>
		),
		bucket?.fenced && (
			<>
				<b>Another server writes to this store's bucket</b>: this one takes no more profiles.
				Stop one of the two, or give each a bucket or prefix of its own.
			</>
		),
		bucket?.looked_ms !== undefined && (bucket.error || bucket.behind_s > BUCKET_LATE_S) && (
			<>
				<b>What is shown ends {formatAge(bucket.behind_s)} ago</b>: later profiles are not in
				the bucket yet, or cannot be read there. {sentence(bucket.error)}
			</>
		),
		bucket && bucket.looked_ms === undefined && !bucket.fenced && bucket.behind_s > BUCKET_LATE_S && (
			<>
				<b>The copy in the bucket is {formatAge(bucket.behind_s)} old</b>: what came since
				would be lost with this machine's disk. {sentence(bucket.error)}
			</>
		),
		low && (
			<>
				<b>The disk is nearly full</b>: {formatBytes(disk.free_bytes!)} are free. A smaller
				retention makes room.
			</>
		),
	].filter(Boolean);
	return (
		<>
			{said.map((text, index) => (
				<div key={index} class="notice bad" role="alert">
					<span>{text}</span>
				</div>
			))}
		</>
	);
}

/* Where the bytes are. */
function StoreBytes({ bytes, parts }: { bytes: Status["store"]["bytes"]; parts: number }): JSX.Element {
	const rows: [string, number][] = [
		["Samples", bytes.samples],
		["Stacks", bytes.stacks],
		["Symbols", bytes.symbols],
		["Sums by hour and day", bytes.rollups],
		["Times of samples", bytes.sample_times],
		["Write-ahead log: what is still in memory", bytes.wal],
	];
	return (
		<PageTable label={`Bytes of ${parts} parts and the log`} head={["What", "Bytes", "Share"]}>
			{rows.map(([title, size]) => (
				<tr key={title}>
					<th scope="row">{title}</th>
					<td class="number">{formatBytes(size)}</td>
					<td class="number share-cell">
						<meter
							min={0}
							max={bytes.total || 1}
							value={size}
							aria-label={title}
						/>
						{formatPercent(size, bytes.total)}
					</td>
				</tr>
			))}
		</PageTable>
	);
}

function Query({ query, onDone }: { query: RunningQuery; onDone(): void }): JSX.Element {
	const stopping = useSignal("");
	const stop = () => {
		stopping.value = "Stopping…";
		stopQuery(query.id).then(
			onDone,
			(error: unknown) => (stopping.value = error instanceof Error ? error.message : String(error)),
		);
	};
	return (
		<tr>
			<th scope="row">
				<code class="page-query">{query.query || query.path}</code>
				<span class="muted under">
					{query.path} · {query.by}
				</span>
			</th>
			<td class="number">{formatTime(query.took_ms * 1e6)}</td>
			<td class="number">
				{query.bytes_all > 0 ? (
					<>
						<progress
							max={query.bytes_all}
							value={query.bytes_done}
							aria-label={`Query ${query.id}`}
						/>
						<span class="muted under">
							{formatBytes(query.bytes_done)} of{" "}
							{formatBytes(query.bytes_all)}
						</span>
					</>
				) : (
					"–"
				)}
			</td>
			<td>
				{query.cancelled || stopping.value ? (
					<span class="muted" role="status">
						{stopping.value || "Stopping…"}
					</span>
				) : (
					<button type="button" class="button" onClick={stop}>
						Cancel
					</button>
				)}
			</td>
		</tr>
	);
}

function Queries(): JSX.Element {
	const answer = useAnswer(fetchQueries, QUERIES_EVERY_MS);
	return (
		<Answered answer={answer}>
			{(queries) =>
				!queries.length ? (
					<p class="muted" role="status">
						No query is running.
					</p>
				) : (
					<PageTable label="Queries" head={["Query", "Runs for", "Read", "Cancel"]}>
						{queries.map((query) => (
							<Query key={query.id} query={query} onDone={answer.again} />
						))}
					</PageTable>
				)
			}
		</Answered>
	);
}

const describeRetention = ({ time_s, bytes }: Status["retention"]) =>
	[time_s ? describeAge(time_s * 1000) : "for ever", bytes ? `at most ${formatBytes(bytes)}` : ""]
		.filter(Boolean)
		.join(", ");

const serverFacts = ({ version, uptime_s, started_ms, now_ms, memory, build }: Status): Fact[] => [
	["Version", <b>firn {version}</b>],
	["Running for", `${describeAge(uptime_s * 1000)}, since ${when(started_ms)}`],
	["Clock", `${when(now_ms)}, ${skew(now_ms)}`],
	["Memory", formatBytes(memory.resident_bytes)],
	["Queries use", used(memory.queries_bytes, memory.queries_limit_bytes)],
	["Built by", `${build.compiler}, for ${build.architecture}`],
	["Kernel", build.kernel],
];

const used = (bytes: number, limit: number | null) =>
	limit === null ? formatBytes(bytes) : `${formatBytes(bytes)} of at most ${formatBytes(limit)}`;

/* Where profiles are besides, or instead of, this server's disk. */
function elsewhere({ remote, bucket }: Status): Fact[] {
	const facts: Fact[] = [];
	if (remote)
		facts.push(["Profiles are in",
			`${remote.kind}, which ${remote.answers ? "answers" : "does not answer"}`]);
	if (bucket?.store)
		facts.push(["Bucket", <code>{bucket.store}</code>]);
	if (bucket?.looked_ms !== undefined)
		facts.push(["Shown from the bucket", `everything until ${formatAge(bucket.behind_s)} ago`],
			["Last looked there", when(bucket.looked_ms)]);
	else if (bucket)
		facts.push(["Copy in the bucket", bucket.fenced ? "another server writes it"
			: bucket.behind_s ? `lacks the last ${formatAge(bucket.behind_s)}` : "complete"]);
	if (bucket?.saved_ms)
		facts.push([bucket.looked_ms === undefined ? "Last copied" : "Last written there",
			when(bucket.saved_ms)]);
	return facts;
}

const storeFacts = (status: Status): Fact[] => [
	["Size", <b>{formatBytes(status.store.bytes.total)}</b>],
	...elsewhere(status),
	...diskFacts(status),
];

const diskFacts = ({ store, disk, retention }: Status): Fact[] => [
	["Kept", describeRetention(retention)],
	["Disk", disk.bytes ? `${formatBytes(disk.free_bytes!)} free of ${formatBytes(disk.bytes)}` : "–"],
	["Folder", disk.path ? <Copyable text={disk.path} what="folder" /> : "only administrators see it"],
	["Oldest", when(store.oldest_ms)],
	["Newest", when(store.newest_ms)],
	["Reports", formatCount(store.reports)],
	["Rows", formatCount(store.rows)],
	["Series", formatCount(store.series)],
	["Stacks", formatCount(store.stacks)],
	["Parts", `${formatCount(store.parts)}, and ${formatCount(store.memtables)} in memory`],
	["Unreadable parts", formatCount(store.parts_quarantined)],
];

function Section({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
	return (
		<section aria-label={title}>
			<h2>{title}</h2>
			{children}
		</section>
	);
}

export function StatusPage(): JSX.Element {
	const answer = useAnswer(fetchStatus, EVERY_MS);
	return (
		<Answered answer={answer}>
			{(status) => (
				<>
					<Warnings status={status} />
					<Section title="Server"><Facts facts={serverFacts(status)} /></Section>
					<Section title="Running queries"><Queries /></Section>
					<Section title="Store">
						<Facts facts={storeFacts(status)} />
						<StoreBytes bytes={status.store.bytes} parts={status.store.parts} />
					</Section>
				</>
			)}
		</Answered>
	);
}

/* This browser's clock against the server's; half a second is the way. */
function skew(serverMs: number): string {
	const seconds = Math.round((serverMs - Date.now()) / 1000);
	if (Math.abs(seconds) < 2) return "the same as this browser's";
	return `${describeAge(Math.abs(seconds) * 1000)} ${seconds > 0 ? "ahead of" : "behind"} this browser's`;
}
