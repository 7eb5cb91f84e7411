// SPDX-License-Identifier: Apache-2.0
/* local - the header of a file that the reader opened, and the note shown if the file is not there any more. */
import type { JSX } from "preact";
import { formatBytes } from "../../model/quantity";
import { Icon } from "../../kit/icons";
import { Picker } from "../../kit/picker";
import { chooseLocal, leaveLocal, shown } from "../../state/local";
import { go, place } from "../../state/place";
import "./local.css";

export function LocalHeader(): JSX.Element {
	const { file, type } = place.value;
	const current = shown.value;
	const types = (current?.facts.types ?? []).map((name) => ({ value: name, label: name.replace(":", " · ") }));
	return (
		<>
			{types.length > 0 && (
				<Picker
					label="Value"
					class="type-picker"
					options={types}
					chosen={[type]}
					onChange={([chosen]) => go({ type: chosen!, zoom: "" })}
				/>
			)}
			<span class="local-file" role="status">
				<span class="local-badge">local, not uploaded</span>
				<b class="local-name mono" title={file}>
					<bdi>{file}</bdi>
				</b>
				{current && (
					<span class="muted local-facts">
						{current.facts.format} · {formatBytes(current.file.size)}
					</span>
				)}
			</span>
			<button type="button" class="control" onClick={chooseLocal}>
				<Icon name="file" />
				<span>Open…</span>
			</button>
			<button type="button" class="control" id="leave-file" onClick={leaveLocal}>
				<Icon name="close" />
				<span>Close the file</span>
			</button>
		</>
	);
}

/* A page loaded anew has no files. */
export function LocalGone(): JSX.Element {
	return (
		<div class="state" role="status">
			<h2>The file has to be opened again</h2>
			<p>
				This link is of <code>{place.value.file}</code>, a file that was looked at in this
				browser alone. It was sent nowhere, so only you can open it again.
			</p>
			<div class="state-actions">
				<button type="button" class="button primary" onClick={chooseLocal}>
					Choose the file
				</button>
				<button type="button" class="button" onClick={leaveLocal}>
					Show the server's profiles
				</button>
			</div>
		</div>
	);
}
