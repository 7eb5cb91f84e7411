// SPDX-License-Identifier: Apache-2.0
/* debuginfo - symbols: what is missing and how to send it, what is coming, what is here. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { type Debuginfo, fetchDebuginfo } from "../../data/operations";
import { formatBytes, formatCount } from "../../model/quantity";
import { dayOf, describeAge } from "../../model/timerange";
import { Answered, Copyable, PageTable, useAnswer } from "./answer";

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
const KINDS = { program: "program", debug: "separate debug file", sources: "source files" } as const;

function BuildId({ id }: { id: string }): JSX.Element {
	return id ? <Copyable text={id} what="build ID" /> : <span class="muted">no build ID</span>;
}

function Missing({ missing }: { missing: Debuginfo["missing"] }): JSX.Element {
	if (!missing.length)
		return <p class="muted">Nothing: all that was asked for since the server started has names.</p>;
	return (
		<>
			<p class="muted page-note">
				Binaries in profiles that were looked at whose functions have no names. Send their debug
				files from a host that has them: profiles that are stored already get the names at once.
			</p>
			<PageTable label="Missing symbols" head={["Binary", "Why", "What to do"]}>
				{missing.slice(0, ROWS_SHOWN).map(({ build_id, name, reason, detail, command }) => (
					<tr key={build_id + name}>
						<th scope="row">
							<b class="mono">{name || "(unknown)"}</b>
							<BuildId id={build_id} />
						</th>
						<td>
							{reason}
							{detail && <span class="muted under">{detail}</span>}
						</td>
						<td>
							{command ? (
								<Copyable text={command} what="command" />
							) : (
								<span class="muted">–</span>
							)}
						</td>
					</tr>
				))}
			</PageTable>
		</>
	);
}

function Coming({ coming, debuginfod }: Pick<Debuginfo, "coming" | "debuginfod">): JSX.Element | null {
	const fetching = debuginfod.filter(({ state }) => state !== "here");
	if (!coming.length && !fetching.length) return null;
	return (
		<section aria-label="On the way">
			<h2>On the way</h2>
			<PageTable label="Symbols on the way" head={["Build ID", "State", "Progress"]}>
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
				{fetching.map(({ build_id, state, why, at_ms }) => (
					<tr key={`d${build_id}`}>
						<th scope="row">
							<BuildId id={build_id} />
						</th>
						<td>
							debuginfod: {state}
							{why && <span class="muted under">{why}</span>}
						</td>
						<td class="muted">
							{at_ms ? `${describeAge(Date.now() - at_ms)} ago` : "–"}
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
					No file yet. Agents send what queries lack; by hand it is
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
					and {formatCount(shown.length - ROWS_SHOWN)} more: name one above
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
						<Missing missing={missing} />
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
