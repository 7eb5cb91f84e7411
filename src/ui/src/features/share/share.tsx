// SPDX-License-Identifier: Apache-2.0
/* share - links to the current view, downloads of it for other tools, and the picture itself. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { queryUrl } from "../../data/api";
import { svgText } from "../../flame/svg";
import { readTheme } from "../../flame/theme";
import { foldedText, speedscopeText } from "../../model/export";
import { type Place, formatPlace } from "../../model/place";
import { formatPercent, formatValue, typeTitle } from "../../model/quantity";
import { absoluteRange, dayOf, clockTime, isRelative, resolveRange } from "../../model/timerange";
import { Icon } from "../../kit/icons";
import { changeTexts } from "../../state/changes";
import { isLocal } from "../../state/local";
import { root } from "../../state/pages";
import { base, place } from "../../state/place";
import { colouring, focus } from "../../state/reading";
import { profile, query, unit } from "../../state/session";
import "./share.css";

const PICTURE_WIDTH = 1600;
const PNG_SCALE = 2;

/* The same place with its times as they are now. */
export function pinned(from: Place, nowMs: number): Place {
	const fixed = (range: Place["range"]) => absoluteRange(resolveRange(range, nowMs));
	return {
		...from,
		range: fixed(from.range),
		live: false,
		base: from.view === "compare" ? { ...base.value, range: fixed(base.value.range) } : from.base,
	};
}

const linkTo = (where: Place) => new URL(root + formatPlace(where), location.href).href;

const isMoving = () => !isLocal.value && [place.value.range.from, place.value.range.to].some(isRelative);

/* "on_cpu 2026-01-02 15.04.05" */
function fileName(ending: string): string {
	const { fromMs } = resolveRange(place.value.range, Date.now());
	const stem = isLocal.value
		? place.value.file.replace(/(\.pb)?(\.gz)?$/, "")
		: `${place.value.type.split(":")[0]} ${dayOf(fromMs)} ${clockTime(fromMs).replace(/:/g, ".")}`;
	return `${stem}.${ending}`;
}

function save(content: Blob, ending: string): void {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(content);
	link.download = fileName(ending);
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function describe(node: number): string {
	const current = profile.value!;
	if (current.sides) {
		const { a, b, words } = changeTexts(current, node);
		return `${words} (A ${a}, B ${b})`;
	}
	const total = current.total[node]!;
	return `${formatPercent(total, current.total[0]!)}, ${formatValue(unit.value, total)}`;
}

function picture(): string {
	const { matchers, file, type } = place.value;
	const { from_ms: from, to_ms: to } = profile.value!.header;
	const times = from && to > from ? `${new Date(from).toISOString()} to ${new Date(to).toISOString()}` : "";
	return svgText({
		profile: profile.value!,
		colouring: colouring.value!,
		theme: readTheme(document.documentElement),
		focus: focus.value,
		width: PICTURE_WIDTH,
		describe,
		title: [file || typeTitle(type), matchers, times].filter(Boolean).join("  "),
	});
}

/* The browser draws it. */
async function png(): Promise<Blob> {
	const image = new Image();
	const svg = picture();
	image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
	await image.decode();
	const canvas = document.createElement("canvas");
	canvas.width = image.width * PNG_SCALE;
	canvas.height = image.height * PNG_SCALE;
	canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
	return new Promise((resolve, reject) =>
		canvas.toBlob(
			(blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))),
			"image/png",
		),
	);
}

function CopyRow({ text, title, note }: { text(): string; title: string; note?: string }): JSX.Element {
	const said = useSignal("");
	const copy = () => {
		const done = navigator.clipboard ? navigator.clipboard.writeText(text()) : Promise.reject(new Error());
		/* Pages that came without TLS have no clipboard: then it can be selected. */
		done.then(
			() => {
				said.value = "copied";
				setTimeout(() => (said.value = ""), 1500);
			},
			() => (said.value = text()),
		);
	};
	return (
		<li>
			<button type="button" onClick={copy}>
				<Icon name={said.value === "copied" ? "check" : "copy"} />
				<span>{title}</span>
				<span class="muted share-note">{said.value === "copied" ? "Copied" : note}</span>
			</button>
			{said.value && said.value !== "copied" && (
				<input
					class="mono share-text"
					readOnly
					aria-label={title}
					value={said.value}
					onFocus={(event) => event.currentTarget.select()}
				/>
			)}
		</li>
	);
}

const embedCode = () =>
	`<iframe src="${linkTo({ ...place.value, embed: true }).replace(/&/g, "&amp;")}" ` +
	'width="100%" height="600" title="firn"></iframe>';

/* Formats that the server writes, with exact stacks; of a comparison, B. */
const SERVER_FORMATS = [
	{ format: "pprof", title: "pprof", ending: "pb.gz" },
	{ format: "folded", title: "Folded stacks", ending: "folded" },
	{ format: "speedscope", title: "speedscope", ending: "speedscope.json" },
];

function Links(): JSX.Element {
	return (
		<ul aria-label="Links">
			<CopyRow
				title="Copy link"
				text={() => location.href}
				note={isMoving() ? "moves with the clock" : undefined}
			/>
			{isMoving() && (
				<CopyRow
					title="Copy link to these times"
					note="stays as you see it"
					text={() => linkTo(pinned(place.value, Date.now()))}
				/>
			)}
			{!isLocal.value && <CopyRow title="Copy code to embed it" note="iframe" text={embedCode} />}
		</ul>
	);
}

function Files(): JSX.Element {
	const current = profile.value;
	const text = (content: string, type: string) => new Blob([content], { type });
	const { from, to } = pinned(place.value, Date.now()).range;
	const asked = { ...query.value, range: { from, to } };
	return (
		<ul aria-label="Files">
			{!isLocal.value &&
				SERVER_FORMATS.map(({ format, title, ending }) => (
					<li key={format}>
						<a href={queryUrl(asked, format)} download={fileName(ending)}>
							<Icon name="download" />
							<span>{title}</span>
							<span class="muted share-note">.{ending}</span>
						</a>
					</li>
				))}
			{isLocal.value && current && (
				<>
					<SaveRow
						title="Folded stacks"
						ending="folded"
						make={() => text(foldedText(current), "text/plain")}
					/>
					<SaveRow
						title="speedscope"
						ending="speedscope.json"
						make={() =>
							text(
								speedscopeText(current, place.value.file),
								"application/json",
							)
						}
					/>
				</>
			)}
			{current && current.total[0]! > 0 && (
				<>
					<SaveRow
						title="Picture"
						ending="svg"
						make={() => text(picture(), "image/svg+xml")}
					/>
					<SaveRow title="Picture" ending="png" make={png} />
				</>
			)}
		</ul>
	);
}

function SaveRow({
	title,
	ending,
	make,
}: {
	title: string;
	ending: string;
	make(): Blob | Promise<Blob>;
}): JSX.Element {
	const press = async () => save(await make(), ending);
	return (
		<li>
			<button type="button" onClick={() => void press()}>
				<Icon name="download" />
				<span>{title}</span>
				<span class="muted share-note">.{ending}</span>
			</button>
		</li>
	);
}

export function SharePanel(): JSX.Element {
	return (
		<div class="share-panel" role="dialog" aria-label="Share and download">
			<Links />
			<Files />
			{isLocal.value && (
				<p class="popover-note">
					A link to a local file opens for nobody else: send the file along.
				</p>
			)}
		</div>
	);
}
