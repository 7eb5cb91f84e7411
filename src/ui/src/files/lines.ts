// SPDX-License-Identifier: Apache-2.0
/* lines - a stream of text line by line, so that files larger than memory can be read. */

const LINE_MAX = 1 << 20;

/* Calls `take` with each line (without its end) and its number from 1 on. */
export async function eachLine(
	text: ReadableStream<string>,
	take: (line: string, number: number) => void,
): Promise<void> {
	const reader = text.getReader();
	let rest = "";
	let number = 0;
	for (;;) {
		const { value, done } = await reader.read();
		if (done) break;
		const chunk = rest + value;
		let from = 0;
		for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", from)) {
			take(chunk.slice(from, chunk[end - 1] === "\r" ? end - 1 : end), ++number);
			from = end + 1;
		}
		rest = chunk.slice(from);
		if (rest.length > LINE_MAX)
			throw new Error(`line ${number + 1} is longer than ${LINE_MAX} characters`);
	}
	if (rest) take(rest, ++number);
}
