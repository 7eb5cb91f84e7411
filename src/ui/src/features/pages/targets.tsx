// SPDX-License-Identifier: Apache-2.0
/* targets - the senders of profiles: age, volume, losses, refusals, errors; and the scraped targets. */
import type { JSX } from "preact";
import { fetchTargets, type Scraped, type Target } from "../../data/operations";
import { agentCommand } from "../../model/agent_command";
import { counted, digits, formatBytes, formatCount, formatPercent } from "../../model/quantity";
import { clockTime, dayOf, describeAge } from "../../model/timerange";
import { ScrapedTargets } from "./scraped";
import { Answered, Copyable, PageTable, useAnswer } from "../../kit/answer";

const EVERY_MS = 5000;
/* So many intervals without a word are too many; agents send every ten seconds. */
const LATE_INTERVALS = 3;
const LATE_MS_MIN = 30_000;
const ERROR_FRESH_MS = 10 * 60_000;

type Health = "ok" | "late" | "bad";

function healthOf(target: Target, nowMs: number): { health: Health; word: string } {
	if (target.last_error_ms && target.last_error_ms >= target.last_ms) return { health: "bad", word: "Refused" };
	const silent = nowMs - target.last_ms;
	if (silent > Math.max(LATE_MS_MIN, LATE_INTERVALS * target.interval_ms))
		return { health: "late", word: "Silent" };
	if (target.last_error_ms && nowMs - target.last_error_ms < ERROR_FRESH_MS)
		return { health: "bad", word: "Errors" };
	return { health: "ok", word: "Sending" };
}

const keyOf = ({ peer, sender, labels }: Target) => `${peer} ${sender} ${labels.node ?? ""}`;
const nameOf = ({ labels, peer }: Target) => labels.node ?? peer;

function Troubles({ target, nowMs }: { target: Target; nowMs: number }): JSX.Element {
	const { lost, samples, refused, errors } = target;
	const ago = (ms: number) => `${describeAge(nowMs - ms)} ago`;
	const said = [
		lost > 0 && (
			<li key="lost">
				<b>{formatCount(lost)} samples lost</b> at the sender (
				{formatPercent(lost, lost + samples)} of what it took
				{target.lost_ms ? `; last heard ${ago(target.lost_ms)}` : ""})
			</li>
		),
		refused > 0 && (
			<li key="refused">
				<b>{counted(refused, "report")} refused</b>: too old for the retention, or from the
				future (is its clock right?)
			</li>
		),
		errors > 0 && (
			<li key="errors">
				<b>{counted(errors, "request")} failed</b>
				{target.last_error_ms ? `, the last ${ago(target.last_error_ms)}` : ""}:{" "}
				{target.last_error}
			</li>
		),
	].filter(Boolean);
	return said.length ? <ul class="troubles">{said}</ul> : <span class="muted">none</span>;
}

function Row({ target, nowMs }: { target: Target; nowMs: number }): JSX.Element {
	const { health, word } = healthOf(target, nowMs);
	const at = `${dayOf(target.last_ms)} ${clockTime(target.last_ms)}`;
	return (
		<tr>
			<td>
				<span class={`health ${health}`}>{word}</span>
			</td>
			<th scope="row">
				<b>{nameOf(target)}</b>
				<span class="muted under">
					{target.labels.node && `${target.peer} · `}
					{target.sender || "does not say what it is"}
				</span>
			</th>
			<td class="number" title={at}>
				{describeAge(nowMs - target.last_ms)} ago
				<span class="muted under">
					{target.interval_ms > 0 && `every ${digits(target.interval_ms / 1000)} s`}
				</span>
			</td>
			<td class="number">
				{target.samples_per_s > 0 ? `${digits(target.samples_per_s)}/s` : "–"}
				<span class="muted under">{formatCount(target.samples)} in all</span>
			</td>
			<td class="number">
				{formatCount(target.reports)}
				<span class="muted under">
					{formatBytes(target.bytes)} in {counted(target.requests, "request")}
				</span>
			</td>
			<td>
				<Troubles target={target} nowMs={nowMs} />
			</td>
		</tr>
	);
}

function Nobody(): JSX.Element {
	return (
		<div class="page-empty">
			<h2>Nobody has sent profiles since the server started</h2>
			<p>Start an agent on a host, as root, and it appears here within seconds:</p>
			<Copyable
				what="command"
				text={agentCommand(location)}
			/>
		</div>
	);
}

function Senders({ targets, nowMs }: { targets: Target[]; nowMs: number }): JSX.Element {
	const bad = targets.filter((target) => healthOf(target, nowMs).health !== "ok").length;
	return (
		<>
			<p class="muted page-note" role="status">
				{counted(targets.length, "sender")} since the server started, the latest first;{" "}
				{bad ? `${bad} ${bad === 1 ? "needs" : "need"} a look` : "all send without errors"}.
			</p>
			<PageTable
				label="Who sends profiles"
				head={["State", "Sender", "Last heard of", "Samples", "Reports", "Trouble"]}
			>
				{targets.map((target) => (
					<Row key={keyOf(target)} target={target} nowMs={nowMs} />
				))}
			</PageTable>
		</>
	);
}

/* Whether the file says that anybody is to be asked. */
const asksAny = ({ activeTargets, droppedTargetCounts }: Scraped) =>
	activeTargets.length > 0 || Object.keys(droppedTargetCounts).length > 0;

export function TargetsPage(): JSX.Element {
	const answer = useAnswer(fetchTargets, EVERY_MS);
	return (
		<Answered answer={answer}>
			{({ targets, data, now_ms: nowMs }) => {
				const asks = data && asksAny(data);
				return (
					<>
						{targets.length > 0 && <Senders targets={targets} nowMs={nowMs} />}
						{asks && <ScrapedTargets scraped={data} nowMs={nowMs} />}
						{!targets.length && !asks && <Nobody />}
					</>
				);
			}}
		</Answered>
	);
}
