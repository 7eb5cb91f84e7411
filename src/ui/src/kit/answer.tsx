// SPDX-License-Identifier: Apache-2.0
/* answer - polls the server for a page, and shows a note while there is no answer. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Copy } from "./copy";

export interface Answer<T> {
	/* The last one; null until the first is there. */
	data: T | null;
	/* Why there is none, or none newer. */
	failed: string;
	again(): void;
}

/* Asks at once and then every `everyMs`, while the page is looked at. */
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>, everyMs: number): Answer<T> {
	const data = useSignal<T | null>(null);
	const failed = useSignal("");
	const [round, setRound] = useState(0);
	useEffect(() => {
		const controller = new AbortController();
		let timer = 0;
		const run = async () => {
			if (!document.hidden || !data.peek())
				try {
					data.value = await ask(controller.signal);
					failed.value = "";
				} catch (error) {
					if (!controller.signal.aborted)
						failed.value = error instanceof Error ? error.message : String(error);
				}
			if (!controller.signal.aborted) timer = window.setTimeout(run, everyMs);
		};
		void run();
		return () => {
			controller.abort();
			clearTimeout(timer);
		};
	}, [round]);
	return { data: data.value, failed: failed.value, again: () => setRound((last) => last + 1) };
}

/* The page's body once there is an answer; before and besides, what is wrong. */
export function Answered<T>({
	answer,
	children,
}: {
	answer: Answer<T>;
	children(data: T): ComponentChildren;
}): JSX.Element {
	const { data, failed, again } = answer;
	return (
		<>
			{failed && (
				<div class="notice bad" role="alert">
					<span>
						<b>{data ? "Not up to date." : "This could not be loaded."}</b>{" "}
						{failed}
					</span>
					<button type="button" class="button" onClick={again}>
						Retry
					</button>
				</div>
			)}
			{data
				? children(data)
				: !failed && (
						<p class="muted" role="status">
							Asking the server…
						</p>
					)}
		</>
	);
}

export function Copyable({ text, what }: { text: string; what: string }): JSX.Element {
	return (
		<span class="copyable">
			<code>{text}</code>
			<Copy text={text} what={what} />
		</span>
	);
}

/* A table that scrolls sideways by itself when there is no room. */
export function PageTable({
	label,
	head,
	children,
}: {
	label: string;
	head: string[];
	children: ComponentChildren;
}): JSX.Element {
	return (
		<div class="page-table" tabIndex={0} role="region" aria-label={label}>
			<table>
				<thead>
					<tr>
						{head.map((title) => (
							<th key={title} scope="col">
								{title}
							</th>
						))}
					</tr>
				</thead>
				<tbody>{children}</tbody>
			</table>
		</div>
	);
}

export function Facts({ facts }: { facts: [title: string, value: ComponentChildren][] }): JSX.Element {
	return (
		<dl class="page-facts">
			{facts.map(([title, value]) => (
				<div key={title}>
					<dt>{title}</dt>
					<dd class="number">{value}</dd>
				</div>
			))}
		</dl>
	);
}
