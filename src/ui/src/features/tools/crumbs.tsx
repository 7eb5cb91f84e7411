// SPDX-License-Identifier: Apache-2.0
/* crumbs - the path from the root to the zoomed frame. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Profile, nodeName, pathOf } from "../../model/profile";
import { shorten } from "../../model/shortname";
import { focus, zoomTo } from "../../state/reading";
import { profile } from "../../state/session";

function Crumb({ current, node, here }: { current: Profile; node: number; here: boolean }): JSX.Element {
	const name = nodeName(current, node);
	if (here)
		return <span class="crumb-here" aria-current="location" title={name}>{shorten(name, 48)}</span>;
	return <button type="button" title={name} onClick={() => zoomTo(node)}>{shorten(name, 28)}</button>;
}

export function Crumbs(): JSX.Element {
	const list = useRef<HTMLOListElement>(null);
	const current = profile.value!;
	const path = pathOf(current, focus.value);
	useLayoutEffect(() => {
		list.current!.scrollLeft = list.current!.scrollWidth;
	}, [focus.value, current]);
	const shown = path.length > 40 ? [0, ...path.slice(-39)] : path;
	const last = shown.length - 1;
	return (
		<nav class="crumbs" aria-label="Zoom path">
			<ol ref={list}>
				{shown.map((node, index) => (
					<li key={index}>
						<Crumb current={current} node={node} here={index === last} />
					</li>
				))}
			</ol>
		</nav>
	);
}
