// SPDX-License-Identifier: Apache-2.0
/*
 * arrow_rows - reads an Arrow IPC stream from standard input with apache-arrow and writes it as JSON:
 * { fields: [[name, type]], metadata: { key: value }, rows: [{ column: value }] }. Texts of bytes are decoded, 64-bit
 * numbers are strings. With --each-line each line is a stream in base64, answered by a line of JSON.
 */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const { tableFromIPC } = createRequire(new URL("../e2e/package.json", import.meta.url))("apache-arrow");
const plain = (value) => {
	if (value instanceof Uint8Array)
		return Buffer.from(value).toString();
	if (typeof value === "bigint")
		return value.toString();
	if (value && typeof value[Symbol.iterator] === "function" && typeof value !== "string")
		return [...value].map(plain);
	return value ?? null;
};
function text(stream) {
	const table = tableFromIPC(stream);
	const fields = table.schema.fields.map((field) => [field.name, String(field.type)]);
	const rows = table.toArray().map((row) => Object.fromEntries(fields.map(([name]) => [name, plain(row[name])])));
	return JSON.stringify({ fields, metadata: Object.fromEntries(table.schema.metadata), rows });
}

if (process.argv.includes("--each-line")) {
	for await (const line of createInterface({ input: process.stdin }))
		process.stdout.write(`${text(Buffer.from(line, "base64"))}\n`);
} else {
	process.stdout.write(text(readFileSync(0)));
}
