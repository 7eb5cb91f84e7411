// SPDX-License-Identifier: Apache-2.0
/*
 * arrow_rows - reads an Arrow IPC stream from standard input with apache-arrow and writes it as JSON:
 * { fields: [[name, type]], metadata: { key: value }, rows: [{ column: value }] }. Texts of bytes are decoded, 64-bit
 * numbers are strings.
 */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

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
const table = tableFromIPC(readFileSync(0));
const fields = table.schema.fields.map((field) => [field.name, String(field.type)]);
const rows = table.toArray().map((row) => Object.fromEntries(fields.map(([name]) => [name, plain(row[name])])));
process.stdout.write(JSON.stringify({ fields, metadata: Object.fromEntries(table.schema.metadata), rows }));
