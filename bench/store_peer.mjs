// SPDX-License-Identifier: Apache-2.0
/*
 * store_peer - the rows of bench/store_model in DuckDB: store_peer.mjs CSV DIR
 * One table (time, series, stack, value) with dense stack numbers and no dictionary of stacks, so
 * it keeps less than firn does. One thread. Each batch is one transaction, as firn acknowledges it.
 */
import { statSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { DuckDBInstance } from "@duckdb/node-api";

const [csv, dir] = process.argv.slice(2);
const file = `${dir}/peer.duckdb`;
const db = await DuckDBInstance.create(file, { threads: "1" });
const run = await db.connect();
const seconds = async (work) => {
	const begin = performance.now();
	await work();
	return (performance.now() - begin) / 1000;
};

await run.run(`create temp table staged as select * from read_csv('${csv}', header = false,
	columns = {batch: 'uinteger', at_ms: 'bigint', series: 'uinteger', stack: 'uinteger', value: 'bigint'})`);
const counts = (await run.runAndReadAll("select count(*), max(batch) + 1 from staged")).getRows()[0].map(Number);
const [rows, batches] = counts;
await run.run("create table samples (start timestamp_ms, series uinteger, stack uinteger, value bigint)");
const insert = await run.prepare(`insert into samples
	select make_timestamp_ms(at_ms), series, stack, value from staged where batch = $1`);
const append = await seconds(async () => {
	for (let batch = 0; batch < batches; batch++) {
		insert.bindUInteger(1, batch);
		await insert.run();
	}
});
/* Sorted as a store for profiles would keep it, which is also what compresses best. */
await run.run(`create table kept as select * from samples order by series, start, stack;
	drop table samples; checkpoint`);
await run.run("vacuum; checkpoint");
const size = await run.runAndReadAll("select used_blocks * block_size from pragma_database_size()");
const used = Number(size.getRows()[0][0]);
const sumPerStack = `select count(*), sum(v)
	from (select stack, sum(value) v from kept group by stack)`;
let merge = Infinity;
for (let round = 0; round < 7; round++)
	merge = Math.min(merge, await seconds(() => run.runAndReadAll(sumPerStack)));
console.log(JSON.stringify({ rows, append_s: append, bytes: used, file_bytes: statSync(file).size, merge_s: merge }));
