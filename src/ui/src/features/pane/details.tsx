// SPDX-License-Identifier: Apache-2.0
/* details - the side pane's details of the selected frame: values, place, callees; else the doubts. */
import type { JSX } from "preact";
import {
	GROUP, type Profile, childrenOf, depthOf, functionBuildId, functionFile, functionMapping, functionName,
	functionSystemName, functionUnresolved, kindName, nodeName,
} from "../../model/profile";
import {
	THIN_SAMPLES, formatCount, formatPercent, formatRate, formatSamples, formatValue, samplesOf,
} from "../../model/quantity";
import { unnamedText } from "../../model/doubts";
import { Copy } from "../../kit/copy";
import { changeTexts } from "../../state/changes";
import { isLocal } from "../../state/local";
import { cursor, focus, selectedFunction, top, widestOf, zoomTo } from "../../state/reading";
import { profile, seconds, unit } from "../../state/session";
import { DoubtsInFull } from "../doubts/doubts";
import { NamesToCome } from "../doubts/names";

function Measure({ title, value, whole }: { title: string; value: number; whole: number }): JSX.Element {
	const rate = formatRate(unit.value, value, seconds.value);
	const values = [rate, formatValue(unit.value, value), formatSamples(unit.value, value)];
	return (
		<div class="measure">
			<dt>{title}</dt>
			<dd class="number">
				<b>{formatPercent(value, whole)}</b> <span class="muted">of total</span>
				{value > 0 && <span class="measure-values">{values.filter(Boolean).join(" · ")}</span>}
			</dd>
		</div>
	);
}

const CALLEES_MAX = 8;
const NAME_MAX = 24; // of a function, on a button

function Callee({ current, node, of }: { current: Profile; node: number; of: number }): JSX.Element {
	const name = nodeName(current, node);
	const binary = functionMapping(current, current.func[node]!);
	return (
		<li>
			<button type="button" onClick={() => zoomTo(node)} title={`${name}\n${binary}`}>
				<span class="number">
					{current.sides ? changeTexts(current, node).words
						: formatPercent(current.total[node]!, current.total[of]!)}
				</span>
				<span class="mono callee-name">{name}</span>
				{of === 0 && <span class="muted callee-binary">{binary.replace(/.*\//, "")}</span>}
			</button>
		</li>
	);
}

function Callees({ current, node }: { current: Profile; node: number }): JSX.Element | null {
	const [first, end] = childrenOf(current, node, depthOf(current, node));
	if (first === end)
		return null;
	const shown = Array.from({ length: Math.min(end - first, CALLEES_MAX) }, (_, index) => first + index);
	const more = end - first - shown.length;
	return (
		<section class="callees" aria-label="Called from here">
			<h3>Called from here</h3>
			<ul>
				{shown.map((child) => <Callee key={child} current={current} node={child} of={node} />)}
			</ul>
			{more > 0 && <p class="muted">and {formatCount(more)} more</p>}
		</section>
	);
}

function Facts({ current, fn }: { current: Profile; fn: number }): JSX.Element {
	const facts: [string, string][] = [
		["Source", functionFile(current, fn)],
		["System name", functionSystemName(current, fn)],
		["Binary", functionMapping(current, fn)],
		["Build ID", functionBuildId(current, fn)],
		["Kind", fn ? kindName(current, fn) : ""],
	];
	return (
		<dl class="facts">
			{facts.filter(([, value]) => value).map(([title, value]) => (
				<div key={title}>
					<dt>{title}</dt>
					<dd title={value}>
						<span class="fact mono"><bdi>{value}</bdi></span>
						<Copy text={value} what={title.toLowerCase()} />
					</dd>
				</div>
			))}
		</dl>
	);
}

/* What to do is between backquotes: it can be copied. */
function Reason({ text }: { text: string }): JSX.Element {
	const [before, command, after] = text.split("`");
	return (
		<>
			{before}
			{command && <><code>{command}</code><Copy text={command} what="command" /></>}
			{after}
		</>
	);
}

function Unresolved({ current }: { current: Profile }): JSX.Element | null {
	const { reasons, reasons_total } = current.header.unresolved;
	const whole = current.total[0]!;
	if (!reasons.length)
		return null;
	return (
		<section class="unresolved" aria-label="Without names">
			<h3>{unnamedText(current)}</h3>
			{!isLocal.value && <NamesToCome />}
			<ul>
				{reasons.map((reason, index) => (
					<li key={index}>
						<span class="number">{formatPercent(reason.value, whole)}</span>
						<span>
							{reason.mapping && <><b class="mono">{reason.mapping}</b>: </>}
							<Reason text={reason.text} />
						</span>
					</li>
				))}
			</ul>
			{reasons_total > reasons.length && (
				<p class="muted">and {formatCount(reasons_total - reasons.length)} more</p>
			)}
		</section>
	);
}

const GUESS = /^~(.+)::\?\+0x[0-9a-f]+$/;

/* What "~" means, and what it is drawn from. */
function Guess({ name }: { name: string }): JSX.Element | null {
	const [, of] = GUESS.exec(name) ?? [];
	return of ? (
		<p class="no-symbols" role="note">
			<b>A guess (~).</b> The function stands in the table of virtual methods
			of <code>{of}</code> (run-time type information), and in no other table but those of classes
			derived from it. So it is a method of that class; which one, symbols alone can tell.
		</p>
	) : null;
}

function Compared({ current, node }: { current: Profile; node: number }): JSX.Element {
	const { a, b, words, doubt } = changeTexts(current, node);
	const facts = [["A", a], ["B", b], ["Change", `${words || "none"}${doubt && `, ${doubt}`}`]];
	return (
		<dl class="measures">
			{facts.map(([title, value]) => (
				<div key={title} class="measure">
					<dt>{title}</dt>
					<dd class="number"><b>{value}</b></dd>
				</div>
			))}
		</dl>
	);
}

export function Details(): JSX.Element {
	const current = profile.value;
	if (!current)
		return <p class="pane-note">Nothing to show yet.</p>;
	const fn = selectedFunction.value;
	const node = cursor.value >= 0 ? cursor.value : fn ? widestOf(current, fn) : focus.value;
	const name = nodeName(current, Math.max(0, node));
	const whole = current.total[0]!;
	const widest = functionName(current, fn);
	const table = top.value;
	/* The row of a label's value is no function. */
	const isGroup = (current.flags[Math.max(0, node)]! & GROUP) !== 0;
	return (
		<div class="details">
			<div class="details-name">
				<h2 class="mono"><bdi>{name}</bdi></h2>
				<Copy text={name} what="name" />
			</div>
			{current.sides ? <Compared current={current} node={node} /> : <dl class="measures">
				<Measure title="Total here" value={current.total[node]!} whole={whole} />
				<Measure title="Self here" value={current.self[node]!} whole={whole} />
				{fn > 0 && !isGroup && table && <>
					<Measure title="Total, all callers" value={table.total[fn]!} whole={whole} />
					<Measure title="Self, all callers" value={table.self[fn]!} whole={whole} />
				</>}
			</dl>}
			{fn > 0 && samplesOf(current.header, unit.value, current.total[node]!) < THIN_SAMPLES && (
				<p class="thin">Statistically thin: fewer than {THIN_SAMPLES} samples.</p>
			)}
			<Guess name={name} />
			{functionUnresolved(current, current.func[node]!) && (
				<p class="no-symbols" role="note">
					No symbols: <Reason text={functionUnresolved(current, current.func[node]!)} />
				</p>
			)}
			{!fn && <DoubtsInFull />}
			{!isGroup && <Facts current={current} fn={current.func[node]!} />}
			<Callees current={current} node={node} />
			{!fn && <Unresolved current={current} />}
			{!fn && <p class="pane-note">Click a frame to zoom to it and see it here.</p>}
			{fn > 0 && cursor.value < 0 && (
				<button type="button" class="button" onClick={() => zoomTo(node)}>
					Zoom to the widest {widest.length > NAME_MAX ? "frame" : widest}
				</button>
			)}
		</div>
	);
}
