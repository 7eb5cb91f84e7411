// SPDX-License-Identifier: Apache-2.0
/* copy - a button that copies a text. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Icon } from "./icons";

const SAID_MS = 1_200;

export function Copy({ text, what }: { text: string; what: string }): JSX.Element {
	const done = useSignal(false);
	const copy = () => {
		void navigator.clipboard?.writeText(text).then(() => {
			done.value = true;
			setTimeout(() => (done.value = false), SAID_MS);
		});
	};
	return (
		<button type="button" class="icon-button copy" aria-label={`Copy ${what}`} title={`Copy ${what}`}
			onClick={copy}>
			<Icon name={done.value ? "check" : "copy"} />
		</button>
	);
}
