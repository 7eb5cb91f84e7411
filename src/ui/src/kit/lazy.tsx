// SPDX-License-Identifier: Apache-2.0
/* lazy - parts of the page whose code is loaded when they are first shown. */
import { signal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";

/* Frames until the picture that is about to be painted is seen. */
const LATER_FRAMES = 4;

function later(run: () => void, frames = LATER_FRAMES): void {
	if (frames)
		requestAnimationFrame(() => later(run, frames - 1));
	else
		run();
}

/* What is not urgent comes after the picture. */
export function lazy<Props extends object>(
	load: () => Promise<ComponentType<Props>>, isUrgent = true,
): ComponentType<Props> {
	const loaded = signal<ComponentType<Props> | null>(null);
	const failed = signal(false);
	let asked = false;
	const fetch = () => {
		load().then((component) => (loaded.value = component), () => (failed.value = true));
	};
	const ask = () => {
		asked = true;
		failed.value = false;
		if (isUrgent)
			fetch();
		else
			later(fetch);
	};
	return function Lazy(properties: Props): JSX.Element | null {
		const Component = loaded.value;
		if (Component)
			return <Component {...properties} />;
		if (!asked)
			ask();
		if (!failed.value)
			return null;
		return (
			<p class="state" role="alert">
				This part of the page could not be loaded. <button type="button" class="button"
					onClick={ask}>Retry</button>
			</p>
		);
	};
}
