// SPDX-License-Identifier: Apache-2.0
/* pane - the side pane: details of the selection, and the top functions. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type PaneTab, codeWidth, paneOpen, paneTab, paneWidth } from "../../state/preferences";
import { isLocal } from "../../state/local";
import { place } from "../../state/place";
import { FunctionTable } from "../table/function_table";
import { Icon } from "../../kit/icons";
import { lazy } from "../../kit/lazy";

const Details = lazy(() => import("./details").then((view) => view.Details));
const ChangesTable = lazy(() => import("../compare/compare").then((view) => view.ChangesTable));

const SourcePane = lazy(() => import("../source/source").then((view) => view.SourcePane));
const CallersPane = lazy(() => import("./callers").then((view) => view.CallersPane));

const TABS: [PaneTab, string][] =
	[["details", "Details"], ["top", "Top"], ["source", "Source"], ["callers", "Callers"]];

/* Code has a width of its own. */
const width = () => (paneTab.value === "source" ? codeWidth : paneWidth);
const widthMax = () => Math.min(1000, innerWidth * 0.7);

function resize(next: number): void {
	width().value = Math.round(Math.min(widthMax(), Math.max(240, next)));
}

function Splitter(): JSX.Element {
	const drag = (event: PointerEvent) => {
		const handle = event.currentTarget as HTMLElement;
		const start = { x: event.clientX, width: width().value };
		handle.setPointerCapture(event.pointerId);
		handle.onpointermove = (move) => resize(start.width + start.x - move.clientX);
		handle.onpointerup = handle.onpointercancel = () => (handle.onpointermove = null);
	};
	const key = (event: KeyboardEvent) => {
		if (event.key !== "ArrowLeft" && event.key !== "ArrowRight")
			return;
		event.preventDefault();
		event.stopPropagation();
		resize(width().value + (event.key === "ArrowLeft" ? 24 : -24));
	};
	return (
		<div class="splitter" role="separator" aria-orientation="vertical" aria-label="Width of the side pane"
			aria-valuenow={Math.round(width().value)} aria-valuemin={240} aria-valuemax={1000}
			tabIndex={0} onPointerDown={drag} onKeyDown={key} />
	);
}

export function Pane(): JSX.Element | null {
	const pane = useRef<HTMLElement>(null);
	useEffect(() => {
		const shown = Math.round(Math.min(widthMax(), width().value));
		if (pane.current)
			pane.current.style.setProperty("--pane-width", `${shown}px`);
	});
	if (!paneOpen.value)
		return null;
	/* Beside the table there is no second table. */
	const { view } = place.value;
	const tabs = TABS.filter(([key]) =>
		(view !== "table" || key !== "top") && (view !== "compare" || key !== "callers"));
	const tab = tabs.some(([key]) => key === paneTab.value) ? paneTab.value : "details";
	return (
		<>
			<Splitter />
			<aside class="pane" ref={pane} aria-label="Side pane">
				<div class="pane-head">
					<div class="tabs" role="group" aria-label="Side pane shows">
						{tabs.map(([key, title]) => (
							<button key={key} type="button" aria-pressed={tab === key}
								onClick={() => (paneTab.value = key)}>
								{view === "compare" && key === "top"
									? "Changes" : title}
							</button>
						))}
					</div>
					<button type="button" class="icon-button"
						aria-label="Close the side pane" title="Close (p)"
						onClick={() => (paneOpen.value = false)}>
						<Icon name="close" />
					</button>
				</div>
				{tab === "top" && place.value.view === "compare" ? <ChangesTable />
				: tab === "top" ? <FunctionTable compact />
				: tab === "source" && isLocal.value ? (
					<p class="pane-note">
						Sources are shown of profiles on a server: <code>firn push</code> sends
						this file to one.
					</p>
				) : tab === "source" ? <SourcePane />
				: tab === "callers" ? <CallersPane /> : (
					<div class="pane-body" tabIndex={0} role="region" aria-label="Details">
						<Details />
					</div>
				)}
			</aside>
		</>
	);
}
