// SPDX-License-Identifier: Apache-2.0
/* progress_note - shown over the old picture while a slow query runs: progress, time, Cancel. */
import type { JSX } from "preact";
import { formatBytes } from "../../model/quantity";
import { progress } from "../../state/progress";
import { cancel } from "../../state/session";

export function ProgressNote(): JSX.Element | null {
	const now = progress.value;
	if (!now)
		return null;
	const read = now.bytesAll > 0
		? `${formatBytes(now.bytesDone)} of ${formatBytes(now.bytesAll)} read` : "Waiting";
	return (
		<div class="progress-note" role="status">
			<span class="number">{read} · {(now.tookMs / 1000).toFixed(1)} s</span>
			<button type="button" class="button" onClick={cancel}>Cancel</button>
		</div>
	);
}
