// SPDX-License-Identifier: Apache-2.0
/* debuginfo - the page on symbols: missing files and how to send them, uploads in progress, stored files. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { type Debuginfo, fetchDebuginfo } from "../../data/operations";
import { formatBytes, formatCount, formatPercent } from "../../model/quantity";
import { dayOf, describeAge } from "../../model/timerange";
import { ConsentView } from "./consent";
import { Answered, Copyable, PageTable, useAnswer } from "../../kit/answer";

const EVERY_MS = 5000;
const ROWS_SHOWN = 200;

const QUALITIES: Record<string, string> = {
	debug_info: "names, lines, inlined calls",
	some_debug_info: "names, some lines",
	symtab: "names",
	gopclntab: "names and lines (Go)",
	gnu_debugdata: "names of functions (.gnu_debugdata)",
	dynsym: "exported names only",
};
const KINDS = {
	program: "program", debug: "separate debug file", sources: "source files", package: "package",
} as const;

function BuildId({ id }: { id: string }): JSX.Element {
	return id ? <Copyable text={id} what="build ID" /> : <span class="muted">no build ID</span>;
}

type MissingBinary = Debuginfo["missing"][number];
type Asked = Debuginfo["debuginfod"][number];

/* What is folded is at most this share of the code without names, and never the first rows. */
const TAIL = 0.05;
const ROWS_MIN = 5;
const ROWS_MAX = 20;

/* How many of the costliest to show at first. */
function rowsAtFirst(missing: readonly MissingBinary[]): number {
	const all = missing.reduce((sum, { cost_ns }) => sum + cost_ns, 0);
	let sum = 0;
	let rows = 0;
	while (rows < missing.length && (rows < ROWS_MIN || (rows < ROWS_MAX && sum < (1 - TAIL) * all)))
		sum += missing[rows++]!.cost_ns;
	return rows === missing.length - 1 ? missing.length : rows;
}

const shareOf = ({ cost_ns, of_ns }: MissingBinary) => (of_ns ? formatPercent(cost_ns, of_ns) : "–");

/* The command that brings the names, ready to be copied. */
function Remedy({ binary: { install, package: name, command } }: { binary: MissingBinary }): JSX.Element {
	const shown = install ?? command;
	return (
		<>
			{name && <span class="muted under">package {name}</span>}
			{shown ? <Copyable text={shown} what="command" /> : <span class="muted">–</span>}
		</>
	);
}

/* How far a fetch is. */
function Fetching({ asked }: { asked: Asked }): JSX.Element {
	const { build_id, state, why, received = 0, bytes = 0 } = asked;
	return (
		<>
			{bytes > 0 && <progress max={bytes} value={received} aria-label={`Fetch of ${build_id}`} />}
			<span class="muted under">
				debuginfod: {state}
				{received > 0 && ` ${formatBytes(received)}${bytes ? ` of ${formatBytes(bytes)}` : ""}`}
				{why && `: ${why}`}
			</span>
		</>
	);
}

function Missing({ missing, debuginfod }: Pick<Debuginfo, "missing" | "debuginfod">): JSX.Element {
	const isWhole = useSignal(false);
	const asked = new Map(debuginfod.map((each) => [each.build_id, each]));
	const first = rowsAtFirst(missing);
	const shown = missing.slice(0, isWhole.value ? ROWS_SHOWN : first);
	const folded = missing.slice(shown.length);
	if (!missing.length)
		return <p class="muted">Nothing: all that was asked for since the server started has names.</p>;
	return (
		<>
			<p class="muted page-note">
				Programs and libraries whose functions have no names in the profiles that were looked
				at, those that take the most CPU time first. Profiles that are stored already get the
				names as soon as they are here.
			</p>
			<PageTable label="Missing symbols" head={["Binary", "CPU", "Why", "What to do"]}>
				{shown.map((binary) => (
					<tr key={binary.build_id + binary.name}>
						<th scope="row">
							<b class="mono">{binary.name || "(unknown)"}</b>
							<BuildId id={binary.build_id} />
						</th>
						<td class="number">{shareOf(binary)}</td>
						<td>
							{binary.reason}
							{binary.detail && (
								<span class="muted under">{binary.detail}</span>
							)}
							{asked.has(binary.build_id) && (
								<Fetching asked={asked.get(binary.build_id)!} />
							)}
						</td>
						<td><Remedy binary={binary} /></td>
					</tr>
				))}
			</PageTable>
			{folded.length > 0 && (
				<p class="page-note">
					<button type="button" class="button" onClick={() => (isWhole.value = true)}
						disabled={isWhole.value}>
						and {formatCount(folded.length)} more
						{folded[0]!.of_ns > 0 &&
							`, each with at most ${shareOf(folded[0]!)} of CPU time`}
					</button>
				</p>
			)}
		</>
	);
}

function Coming({ coming, debuginfod }: Pick<Debuginfo, "coming" | "debuginfod">): JSX.Element | null {
	const fetching = debuginfod.filter(({ state }) => state !== "here");
	const fetched = new Set(fetching.map(({ build_id }) => build_id));
	coming = coming.filter(({ build_id }) => !fetched.has(build_id));
	if (!coming.length && !fetching.length) return null;
	return (
		<section aria-label="On the way">
			<h2>On the way</h2>
			<PageTable label="Symbols on the way" head={["Build ID", "State", "Progress, since"]}>
				{coming.map(({ build_id, state, bytes, received }) => (
					<tr key={build_id}>
						<th scope="row">
							<BuildId id={build_id} />
						</th>
						<td>upload: {state}</td>
						<td class="number">
							{bytes > 0 ? (
								<>
									<progress
										max={bytes}
										value={received}
										aria-label={`Upload of ${build_id}`}
									/>
									<span class="under muted">
										{formatBytes(received)} of{" "}
										{formatBytes(bytes)}
									</span>
								</>
							) : (
								"–"
							)}
						</td>
					</tr>
				))}
				{fetching.slice(0, ROWS_SHOWN).map((asked) => (
					<tr key={`d${asked.build_id}`}>
						<th scope="row">
							<BuildId id={asked.build_id} />
						</th>
						<td><Fetching asked={asked} /></td>
						<td class="muted">
							{asked.at_ms
								? `${describeAge(Date.now() - asked.at_ms)} ago`
								: "–"}
						</td>
					</tr>
				))}
			</PageTable>
		</section>
	);
}

function Here({ files }: { files: Debuginfo["files"] }): JSX.Element {
	const wanted = useSignal("");
	const shown = files.filter(({ name, build_id }) => `${name} ${build_id}`.includes(wanted.value.trim()));
	const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
	if (!files.length)
		return (
			<>
				<p class="muted page-note">
					No file yet. Agents send what is missing by themselves; to send a file
					by hand:
				</p>
				<Copyable text="firn debuginfo upload FILE" what="command" />
			</>
		);
	return (
		<>
			<p class="page-note">
				<span class="muted">
					{formatCount(files.length)} files, {formatBytes(bytes)}.{" "}
				</span>
				<input
					type="search"
					class="page-filter"
					placeholder="Name or build ID"
					aria-label="Find a file"
					value={wanted.value}
					onInput={(event) => (wanted.value = event.currentTarget.value)}
				/>
			</p>
			<PageTable
				label="Symbols that are here"
				head={["File", "Kind", "What it gives", "Size", "From", "Last used"]}
			>
				{shown.slice(0, ROWS_SHOWN).map((file) => (
					<tr key={file.build_id + file.kind}>
						<th scope="row">
							<b class="mono">{file.name || "(no name)"}</b>
							<BuildId id={file.build_id} />
						</th>
						<td>{KINDS[file.kind]}</td>
						<td>
							{file.quality
								? (QUALITIES[file.quality] ?? file.quality)
								: "–"}
						</td>
						<td class="number">{formatBytes(file.bytes)}</td>
						<td>
							{file.from}
							<span class="muted under">{dayOf(file.uploaded_ms)}</span>
						</td>
						<td class="number">
							{file.used_ms
								? `${describeAge(Date.now() - file.used_ms)} ago`
								: "never"}
						</td>
					</tr>
				))}
			</PageTable>
			{shown.length > ROWS_SHOWN && (
				<p class="muted page-note">
					and {formatCount(shown.length - ROWS_SHOWN)} more: type a part of a name above
				</p>
			)}
		</>
	);
}

export function DebuginfoPage(): JSX.Element {
	const answer = useAnswer(fetchDebuginfo, EVERY_MS);
	return (
		<Answered answer={answer}>
			{({ missing, coming, debuginfod, files }) => (
				<>
					<section aria-label="Missing">
						<h2>Missing</h2>
						<ConsentView />
						<Missing missing={missing} debuginfod={debuginfod} />
					</section>
					<Coming coming={coming} debuginfod={debuginfod} />
					<section aria-label="Here">
						<h2>Here</h2>
						<Here files={files} />
					</section>
				</>
			)}
		</Answered>
	);
}
