// SPDX-License-Identifier: Apache-2.0
/*
 * arrow_read - reads an Arrow IPC stream from standard input with arrow-rs (parquet-wasm), which knows run ends and
 * views, and writes the number of its rows; fails when it is none.
 */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const { Table } = createRequire(new URL("../e2e/package.json", import.meta.url))("parquet-wasm");
let rows = 0;
for (const batch of Table.fromIPCStream(readFileSync(0)).recordBatches())
	rows += batch.numRows;
process.stdout.write(String(rows));
