// SPDX-License-Identifier: Apache-2.0
/* live - what a page costs that shows a changing host: bytes and memory, a line a minute; run by bench/live_bench. */
import { bareTab } from "./bare.mjs";

const base = process.env.FIRN_URL;
const minutes = Number(process.env.MINUTES ?? 10);
const TYPE = "on_cpu:samples:count:cpu:nanoseconds:delta";
const place = `?query=${encodeURIComponent(TYPE)}&group_by=comm&from=now-${process.env.MINUTES_SHOWN ?? 5}m&to=now`;
const MB = 1024 * 1024;

const tab = await bareTab(new URL(place, base).href);
await tab.send("HeapProfiler.enable");
await tab.evaluate(`(() => {
	window.sent = {};
	new PerformanceObserver((list) => list.getEntries().forEach(({ name, transferSize }) => {
		const { pathname } = new URL(name);
		const sum = (window.sent[pathname] ??= [0, 0]);
		sum[0]++;
		sum[1] += transferSize;
	})).observe({ type: "resource" });
})()`);

async function weight() {
	await tab.send("HeapProfiler.collectGarbage");
	const { usedSize, embedderHeapUsedSize = 0, backingStorageSize = 0 } = await tab.send("Runtime.getHeapUsage");
	return { heap: (usedSize + embedderHeapUsedSize + backingStorageSize) / MB, process: await tab.memory() };
}

const rows = [];
for (let minute = 0; minute <= minutes; minute++) {
	if (minute)
		await new Promise((resolve) => setTimeout(resolve, 60_000));
	const sent = await tab.evaluate("(() => { const all = window.sent; window.sent = {}; return all; })()");
	const frames = await tab.evaluate("window.__firn?.profile()?.count ?? 0");
	const bytes = Object.values(sent).reduce((sum, [, each]) => sum + each, 0);
	const { heap, process: own } = await weight();
	rows.push({ bytes, frames, heap, own });
	console.log(`${minute} min: ${(bytes / 1e6).toFixed(2)} MB, ${frames} frames, heap ${heap.toFixed(1)} MiB, ` +
		`process ${own.toFixed(1)} MiB; ${JSON.stringify(sent)}`);
}
await tab.close();
/* The first minute has the whole page and all its names. */
const [, first, ...steady] = rows;
const most = Math.max(...steady.map(({ bytes }) => bytes)) / 1e6;
const grown = rows.at(-1).heap - first.heap;
const grownProcess = rows.at(-1).own - first.own;
const holds = most < 1 && grown < 10 && grownProcess < 10;
console.log(`${holds ? "holds" : "MISSES"}: at most ${most.toFixed(2)} MB a minute (limit 1); grown by ` +
	`${grown.toFixed(1)} MiB of heap, ${grownProcess.toFixed(1)} MiB of the process (limit 10)`);
process.exit(holds ? 0 : 1);
