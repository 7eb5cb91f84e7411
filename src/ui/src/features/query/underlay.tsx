// SPDX-License-Identifier: Apache-2.0
/* underlay - syntax colours of an input: a copy of its text behind it, token by token. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Token, tokenise } from "../../model/selector";

export function Underlay({ text, wrongAt, scroll }: { text: string; wrongAt: number; scroll: number }): JSX.Element {
	const layer = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		layer.current!.scrollLeft = scroll;
	});
	const isWrong = (token: Token) => token.at <= wrongAt && wrongAt < token.at + token.text.length;
	return (
		<div class="query-underlay" ref={layer} aria-hidden="true">
			{tokenise(text).map((token) => (
				<span key={token.at}
					class={`token-${token.kind}${isWrong(token) ? " token-error" : ""}`}>
					{token.text}
				</span>
			))}
			{wrongAt >= text.length && text && <span class="token-error">{"\u00a0"}</span>}
		</div>
	);
}
