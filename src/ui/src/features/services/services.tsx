// SPDX-License-Identifier: Apache-2.0
/* services - the list of profiled services: cores, trend, share of the host or of all, senders, newest report. */
import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import { fetchLabelValues } from "../../data/api";
import { type Service, type Services, fetchServices } from "../../data/operations";
import { counted, digits, formatCount, formatPercent, typeTitle } from "../../model/quantity";
import { quote } from "../../model/selector";
import { type TimeRange, describeAge, describeRange, endsNow } from "../../model/timerange";
import { START, formatPlace, type Place } from "../../model/place";
import { root } from "../../state/pages";
import { go, place } from "../../state/place";
import { Picker } from "../../kit/picker";
import { Answered, PageTable, useAnswer } from "../../kit/answer";
import { RangePicker } from "../query/range_picker";
import { Trend } from "./trend";
import "./services.css";

const EVERY_MS = 10_000;
/* Agents send every ten seconds what they took in the ten before. */
const LATE_MS = 60_000;

/* What a click on a service shows: its CPU time, else the first of its profiles. */
function placeOf({ service, types, cores_of: cores }: Service, node: string): Partial<Place> {
	const type = types.find((each) => cores && each.startsWith(`${cores}:`)) ?? types[0] ?? "";
	const host = node ? `,node=${quote(node)}` : "";
	return {
		type, matchers: `service_name=${quote(service)}${host}`, groupBy: [], range: place.value.range,
		view: "flame", filters: [], zoom: "",
	};
}

function ServiceLink({ service, node }: { service: Service; node: string }): JSX.Element {
	const there = placeOf(service, node);
	const press = (event: MouseEvent) => {
		if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
		event.preventDefault();
		go(there);
	};
	return (
		<a href={root + formatPlace({ ...START, ...there })} onClick={press}>
			<bdi>{service.service}</bdi>
		</a>
	);
}

/* The last step is not over yet. */
const wholeSteps = ({ cores }: Service, { from_ms: from, to_ms: to, step_ms: step }: Services) =>
	cores.length > 2 && from + cores.length * step > to ? cores.slice(0, -1) : cores;

function Row({ service, all, node, isLive }: {
	service: Service;
	all: Services;
	node: string;
	isLive: boolean;
}): JSX.Element {
	const age = all.now_ms - service.newest_ms;
	const titles = [...new Set(service.types.map(typeTitle))];
	return (
		<tr>
			<th scope="row">
				<ServiceLink service={service} node={node} />
				<span class="muted under">{titles.join(", ")}</span>
			</th>
			<td class="number">{service.cores_mean === null ? "–" : digits(service.cores_mean)}</td>
			<td>
				<Trend cores={wholeSteps(service, all)} />
			</td>
			<td class="number">{service.share === null ? "–" : formatPercent(service.share, 1)}</td>
			<td class="senders">
				{service.senders.length ? (
					service.senders.map(({ sender }) =>
						<div key={sender}>{sender || "no user agent"}</div>)
				) : (
					<span class="muted" title="Nothing has come since the start">–</span>
				)}
			</td>
			<td class="number">
				{isLive && <span class={`health${age > LATE_MS ? " late" : ""}`} />}{" "}
				{describeAge(age)} ago
			</td>
		</tr>
	);
}

function Table({ all, shown, node, isLive }: {
	all: Services;
	shown: Service[];
	node: string;
	isLive: boolean;
}): JSX.Element {
	const share = `Share of ${node ? "host" : "all"}`;
	return (
		<div class="services">
			<PageTable label="Services"
				head={["Service", "Cores", "Trend", share, "Sent by", "Newest profile"]}>
				{shown.map((each) => (
					<Row key={each.service} service={each} all={all} node={node} isLive={isLive} />
				))}
			</PageTable>
		</div>
	);
}

function List({ range, node, text }: { range: TimeRange; node: string; text: string }): JSX.Element {
	const query = node ? `{node=${quote(node)}}` : "";
	const answer = useAnswer((signal) => fetchServices(query, range, signal), EVERY_MS);
	const wanted = text.toLowerCase();
	const isLive = endsNow(range);
	const nothing = wanted ? "No service is called so." : `No profiles: ${describeRange(range)}.`;
	const sumOf = ({ services, cores_mean: cores, left_out: left }: Services) =>
		`${counted(services.length, "service")}, ${digits(cores)} cores of CPU time together` +
		(left ? `; ${formatCount(left)} smaller ones are left out.` : ".");
	return (
		<Answered answer={answer}>
			{(all) => {
				const shown = all.services.filter(({ service }) =>
					service.toLowerCase().includes(wanted));
				return (
					<>
						<p class="muted page-note" role="status">{sumOf(all)}</p>
						{shown.length > 0
							? <Table all={all} shown={shown} node={node} isLive={isLive} />
							: <p>{nothing}</p>}
					</>
				);
			}}
		</Answered>
	);
}

export function ServicesPage(): JSX.Element {
	const { range } = place.value;
	const [nodes, setNodes] = useState<string[]>([]);
	const [node, setNode] = useState("");
	const [text, setText] = useState("");
	useEffect(() => {
		const controller = new AbortController();
		fetchLabelValues("node", "", range, controller.signal).then(setNodes, () => undefined);
		return () => controller.abort();
	}, [range.from, range.to]);
	const hosts = ["", ...nodes].map((value) => ({ value, label: value || "All" }));
	return (
		<>
			<div class="services-tools">
				<input type="search" class="page-filter" aria-label="Filter the services"
					placeholder="Filter" value={text}
					onInput={(event) => setText(event.currentTarget.value)} />
				{nodes.length > 1 && (
					<Picker label="Host" showLabel options={hosts} chosen={[node]}
						onChange={([chosen]) => setNode(chosen ?? "")} />
				)}
				<RangePicker id="range" label="Time range" range={range}
					onChange={(next) => go({ range: next }, "replace")} />
			</div>
			<List key={JSON.stringify([range, node])} range={range} node={node} text={text} />
		</>
	);
}
