// SPDX-License-Identifier: Apache-2.0
/* source - the rows of the source view, from a text and values by line. */
export interface SourceRow {
	/* Its number, or address. */
	line: string;
	text: string;
	self: number;
	total: number;
	/* Of machine code: the source it was made of. */
	origin: string;
}

/* As one word of a shell. */
function shellWord(text: string): string {
	return /^[\w+./:=@-]+$/.test(text) && !text.startsWith("-") ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

/* Sends the folder of a source file, from the host that has it, to this server. */
export function sourceUpload(server: string, file: string, program: string): string {
	const folder = file.slice(0, Math.max(1, file.lastIndexOf("/")));
	const words = [server, folder, program || "PROGRAM"].map(shellWord);
	return `firn debuginfo upload --server ${words[0]} --source ${words[1]} ${words[2]}`;
}

/* Without a text, only the lines that have values; line 0, which is no line, comes first. */
export function sourceRows(
	text: string | null, values: readonly (readonly [line: number, self: number, total: number])[],
): SourceRow[] {
	const byLine = new Map(values.map((value) => [value[0], value]));
	const row = (number: number, line: string): SourceRow => {
		const [, self = 0, total = 0] = byLine.get(number) ?? [];
		return { line: number ? String(number) : "?", text: line, self, total, origin: "" };
	};
	const lines = text === null ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
	const beyond = values.filter(([number]) => number === 0 || number > lines.length);
	const unknown = beyond.filter(([number]) => number === 0).map(([number]) => row(number, "(line not known)"));
	const rest = beyond.filter(([number]) => number !== 0).map(([number]) => row(number, ""));
	return [...unknown, ...lines.map((line, index) => row(index + 1, line)), ...rest];
}
