// SPDX-License-Identifier: Apache-2.0
/* status_line - shows the hovered frame, or else the selected one, in full. */
import type { JSX } from "preact";
import { functionFile, functionMapping, functionUnresolved, nodeName } from "../../model/profile";
import { counted, formatCount, formatPercent, formatRate, formatSamples, formatValue } from "../../model/quantity";
import { changeTexts } from "../../state/changes";
import { cursor, focus, focusLost, hovered } from "../../state/reading";
import { profile, seconds, unit } from "../../state/session";
import { problems } from "../../state/place";
import { lazy } from "../../kit/lazy";

const DoubtsBrief = lazy(() => import("../doubts/doubts").then((view) => view.DoubtsBrief), false);

const FOCUS_LOST = "The frame of this link is not in this range; showing everything.";

const baseName = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/* The same of a comparison. */
function ChangedFrame({ node }: { node: number }): JSX.Element {
	const current = profile.value!;
	const { a, b, words, doubt } = changeTexts(current, node);
	return (
		<>
			<span class="status-name mono"><bdi>{nodeName(current, node)}</bdi></span>
			<span class="number"><i>A</i> {a}</span>
			<span class="number"><i>B</i> {b}</span>
			<span class="number"><b>{words}</b></span>
			{doubt && <span class="muted">{doubt}</span>}
		</>
	);
}

function Frame({ node }: { node: number }): JSX.Element {
	const current = profile.value!;
	if (current.sides)
		return <ChangedFrame node={node} />;
	const total = current.total[node]!;
	const self = current.self[node]!;
	const fn = current.func[node]!;
	const parent = current.parent[node]!;
	const shareOf = (larger: number) => formatPercent(total, current.total[larger]!);
	const samples = formatSamples(unit.value, total);
	return (
		<>
			<span class="status-name mono"><bdi>{nodeName(current, node)}</bdi></span>
			<span class="number status-self"><i>self</i> {formatValue(unit.value, self)}</span>
			<span class="number"><i>total</i> {formatValue(unit.value, total)}</span>
			<span class="number status-rate">{formatRate(unit.value, total, seconds.value)}</span>
			<span class="number"><b>{shareOf(0)}</b></span>
			{focus.value > 0 && <span class="number"><b>{shareOf(focus.value)}</b> <i>of view</i></span>}
			{node > 0 && <span class="number status-parent">{shareOf(parent)} <i>of parent</i></span>}
			{samples && <span class="number status-samples">{samples}</span>}
			<span class="status-file mono">
				<bdi>
					{functionFile(current, fn) || functionUnresolved(current, fn).replace(/`/g, "")}
				</bdi>
			</span>
			<span class="status-binary">{baseName(functionMapping(current, fn))}</span>
		</>
	);
}

function Summary(): JSX.Element {
	const { header } = profile.value!;
	if (!header.total)
		return <span />;
	/* The total is neither. */
	const count = profile.value!.count - 1;
	const trimmed = formatPercent(header.trimmed, header.total);
	const shown = header.trimmed
		? `${formatCount(count)} frames; ${trimmed} is in frames too narrow to see`
		: counted(count, "frame");
	const facts = [
		shown,
		counted(header.functions - 1, "function"),
		header.reports ? counted(header.reports, "report") : "",
	];
	return <span class="muted number">{facts.filter(Boolean).join(" · ")}</span>;
}

export function StatusLine(): JSX.Element {
	const current = profile.value;
	const node = hovered.value >= 0 ? hovered.value : cursor.value > 0 ? cursor.value : -1;
	const notice = focusLost.value ? FOCUS_LOST : problems.value.join(" ");
	return (
		<footer class="status" aria-label="Frame under the pointer">
			{notice && <span class="status-notice" role="status">{notice}</span>}
			{current && node >= 0 && node < current.count
				? <Frame node={node} />
				: current && !notice && <Summary />}
			{current && <DoubtsBrief />}
		</footer>
	);
}
