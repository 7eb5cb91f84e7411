// SPDX-License-Identifier: Apache-2.0
/*
 * A million nodes: how long until they are seen, how they move, what they weigh; and speedscope's page with the same
 * file. Run by `make test-ui`; FIRN_PROFILES names the files that the server was sent, FIRN_FIGURES one for figures.
 */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { execFileSync } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import path from "node:path";
import { bareTab, memoryOf } from "./bare.mjs";
import { base, firn, launch, open, painted, settled, withPage } from "./page.mjs";

const TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
const MB = 1024 * 1024;
const profiles = JSON.parse(process.env.FIRN_PROFILES ?? "{}");
const figures = {};
const placeOf = (job) => `?query=${encodeURIComponent(`${TYPE}{job="${job}"}`)}&from=now-6h&to=now&live=0`;

after(() => {
	console.log(JSON.stringify(figures, null, "\t"));
	if (process.env.FIRN_FIGURES)
		writeFileSync(process.env.FIRN_FIGURES, JSON.stringify(figures, null, "\t"));
});

/* Notes, from the start of the page: blocks of its thread, and when a tree of `nodes` was first painted. */
async function watch(page, nodes) {
	await page.addInitScript((wanted) => {
		const notes = { blocks: [], first: 0, full: 0 };
		Object.defineProperty(window, "notes", { value: notes });
		new PerformanceObserver((list) => list.getEntries().forEach(({ startTime, duration }) =>
			notes.blocks.push({ at: startTime, ms: duration }))).observe({ type: "longtask",
				buffered: true });
		let before = 0;
		const look = (now) => {
			const shown = window.__firn?.profile();
			const { count = 0 } = window.__firn?.paint() ?? {};
			if (shown?.root && count > 0 && !notes.first)
				notes.first = now;
			if (shown && shown.count < wanted)
				before = count;
			if (shown?.count >= wanted && count > before)
				notes.full = now;
			else
				requestAnimationFrame(look);
		};
		requestAnimationFrame(look);
	}, nodes);
}

/* Milliseconds between frames while `step` (source of a function of the frame's number) runs before each. */
const paced = (page, frames, step) => page.evaluate(async ([count, source]) => {
	const run = new Function("at", source);
	const gaps = [];
	const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
	let last = await next();
	for (let at = 0; at < count; at++) {
		run(at);
		const now = await next();
		gaps.push(now - last);
		last = now;
	}
	return gaps.sort((a, b) => a - b);
}, [frames, step]);

const percentiles = (sorted) => {
	const at = (share) =>
		Math.round(10 * sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]) / 10;
	return { p50: at(0.5), p95: at(0.95), max: at(1) };
};

/* Of the page: heap, what the browser keeps for it, and buffers. */
async function memory(session) {
	await session.send("HeapProfiler.collectGarbage");
	const { usedSize, embedderHeapUsedSize = 0, backingStorageSize = 0 } =
		await session.send("Runtime.getHeapUsage");
	return (usedSize + embedderHeapUsedSize + backingStorageSize) / MB;
}

async function processMemory(page) {
	const browser = await page.context().browser().newBrowserCDPSession();
	const told = await browser.send("SystemInfo.getProcessInfo");
	await browser.detach();
	return memoryOf(told);
}

const ZOOM_AND_PAN = `
	const host = document.querySelector(".flame-host");
	const box = host.getBoundingClientRect();
	const turn = Math.floor(at / 60);
	const common = { clientX: box.x + box.width * (0.3 + 0.1 * (turn % 4)), clientY: box.y + 200, bubbles: true,
		cancelable: true };
	const wheel = (more) => host.dispatchEvent(new WheelEvent("wheel", { ...common, ...more }));
	const phase = at % 60;
	if (phase < 20)
		wheel({ deltaY: -24, ctrlKey: true });
	else if (phase < 30)
		wheel({ deltaX: turn % 2 ? 30 : -30 });
	else if (phase < 40)
		wheel({ deltaY: turn % 2 ? 40 : -40 });
	else
		wheel({ deltaY: 24, ctrlKey: true });`;

const NODES = { k: 100_000, m: 1_000_000 };

for (const [job, nodes] of Object.entries(NODES))
	test(`${nodes} nodes: seen at once, and nothing stands still`, () => withPage({}, async (page) => {
		await watch(page, nodes);
		await page.goto(new URL(placeOf(job), base).href);
		await page.waitForFunction(() => window.notes.full > 0);
		await settled(page);
		const seen = await page.evaluate(() => {
			const answers = performance.getEntriesByType("resource").filter(({ name }) =>
				name.includes("/api/v1/query?"));
			return { ...window.notes, data: answers.at(-1).responseEnd };
		});
		assert.equal((await firn(page, "profile")).count, nodes);
		const later = seen.blocks.filter(({ at }) => at > seen.full).map(({ ms }) => ms);
		const figure = figures[`firn ${nodes}`] = {
			first_paint_ms: Math.round(seen.first), full_paint_ms: Math.round(seen.full),
			data_to_paint_ms: Math.round(seen.full - seen.data),
			longest_block_ms: Math.max(0, ...seen.blocks.map(({ ms }) => ms)),
			longest_block_after_ms: Math.max(0, ...later),
		};
		figure.move_ms = percentiles(await paced(page, 600, ZOOM_AND_PAN));
		await page.keyboard.press("0");
		await settled(page);
		assert.ok(figure.data_to_paint_ms < 1500, `${figure.data_to_paint_ms} ms from data to paint`);
		assert.ok(figure.full_paint_ms < 4000, `${figure.full_paint_ms} ms from the query to paint`);
		assert.ok(figure.longest_block_ms < 300, `the page stood still for ${figure.longest_block_ms} ms`);
		assert.ok(figure.move_ms.p95 < 33.5, `${figure.move_ms.p95} ms between frames while moving`);

		/* Not those at the lower edge, whose middle is not in the window. */
		const { height } = await firn(page, "viewport");
		const host = await page.locator(".flame-host").boundingBox();
		const frames = (await firn(page, "frames")).filter((frame) => frame.width > 3 &&
			frame.y > host.y && frame.y + frame.height < host.y + height);
		const points = Array.from({ length: 60 }, (_, at) => frames[Math.floor((at * frames.length) / 60)]);
		const wrong = [];
		const gaps = [];
		for (const frame of points) {
			const [x, y] = [frame.x + frame.width / 2, frame.y + frame.height / 2];
			gaps.push(...await paced(page, 1,
				`document.elementFromPoint(${x}, ${y})?.closest(".flame-host")?.dispatchEvent(
				new PointerEvent("pointermove", { clientX: ${x}, clientY: ${y}, bubbles: true }));`));
			if (await firn(page, "hovered") !== frame.name)
				wrong.push(frame.name);
		}
		assert.deepEqual(wrong, []);
		figure.hover_ms = percentiles(gaps.sort((a, b) => a - b));
		assert.ok(figure.hover_ms.p95 < 33.5, `${figure.hover_ms.p95} ms between frames while hovering`);

		await page.keyboard.press("0");
		const waits = [];
		for (const text of ["p", "pa", "par", "pars", "parse", "/parse.*json/"]) {
			waits.push(await page.evaluate(async (typed) => {
				const field = document.querySelector("#search");
				const { count } = window.__firn.paint();
				const began = performance.now();
				field.value = typed;
				field.dispatchEvent(new InputEvent("input", { bubbles: true }));
				const heard = performance.now() - began;
				while (window.__firn.paint().count === count ||
					!document.querySelector(".search-result b"))
					await new Promise((resolve) => requestAnimationFrame(resolve));
				return { heard, told: performance.now() - began };
			}, text));
		}
		figure.search_ms = Math.round(Math.max(...waits.map(({ told }) => told)));
		figure.key_blocked_ms = percentiles(waits.map(({ heard }) => heard).sort((a, b) => a - b)).p50;
		assert.ok(figure.search_ms < 300, `${figure.search_ms} ms until a search was told`);
		assert.ok(figure.key_blocked_ms < 50, `typing was blocked for ${figure.key_blocked_ms} ms`);
	}));

test("a frame of one sample is reached by search and read in full", () => withPage({}, async (page) => {
	await open(page, placeOf("m"));
	await page.waitForFunction(() => window.__firn.profile().count >= 1_000_000);
	await page.fill("#search", "the_one_sample");
	await page.press("#search", "Enter");
	await settled(page);
	const frame = await firn(page, "frame", "rare::the_one_sample");
	const { width } = await firn(page, "viewport");
	assert.equal(await firn(page, "focus"), "rare::the_one_sample");
	assert.ok(frame.width > width * 0.9, `${frame.width} of ${width} pixels`);
	assert.ok(frame.y > 0);
	await page.locator(".status").getByText("rare::the_one_sample", { exact: true }).waitFor();
}));

/* The longest that the page's thread computed without a pause during `work`, whatever else the machine did, in ms. */
async function longestBlock(page, work) {
	const browser = page.context().browser();
	await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline"] });
	await work();
	const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
	const mains = new Set(traceEvents.filter(({ name, args }) =>
		name === "thread_name" && args.name === "CrRendererMain").map(({ pid, tid }) => `${pid}.${tid}`));
	return Math.max(...traceEvents.filter(({ ph, pid, tid }) => ph === "X" && mains.has(`${pid}.${tid}`))
		.map(({ tdur = 0 }) => tdur)) / 1000;
}

const BLOCK_MS_MAX = 200;

test("no view, no comparison and no refresh of a million nodes blocks the page", () => withPage({}, async (page) => {
	await open(page, `${placeOf("n")}&view=table`);
	await page.waitForFunction((nodes) => window.__firn.profile().count >= nodes, NODES.m);
	const blocks = {};
	const step = async (name, act, done) => {
		blocks[name] = Math.round(await longestBlock(page, async () => {
			await act();
			await page.waitForFunction(done);
			await page.waitForFunction(() => !window.__firn.busy());
			await settled(page);
		}));
	};
	const table = page.getByRole("grid", { name: "Functions" });
	await table.getByRole("button", { name: /^Total/ }).click();
	/* What everything is below: the whole tree is cut out around it. */
	await table.locator(".table-body .row").first().click();
	await step("sandwich of what calls everything", () => page.keyboard.press("c"),
		() => document.querySelector(".sandwich-head") !== null);
	assert.match(await page.locator(".sandwich-head").innerText(), /100 % of total/);
	for (const key of ["1", "7", "5", "6"])
		await step(`view ${key}`, () => page.keyboard.press(key),
			() => document.querySelector('.view [aria-busy="true"]') === null);
	assert.equal((await firn(page, "place")).view, "heatmap");
	const base = encodeURIComponent(`${TYPE}{job="m"}`);
	await step("comparison", () => page.goto(new URL(`${placeOf("n")}&view=compare&base_query=${base}` +
		"&base_from=now-6h&base_to=now", page.url()).href), () => window.__firn?.sides() !== null &&
			document.querySelector(".sentence")?.textContent.includes("hanged") === true);
	await step("another mode", async () => {
		await page.getByRole("button", { name: /^Values/ }).click();
		await page.getByRole("option", { name: "Share" }).click();
	}, () => window.__firn.place().mode === "share");
	execFileSync(process.env.FIRN, ["push", "--server", page.url().split("?")[0], "--label", "job=n", profiles.k]);
	const { root } = await firn(page, "profile");
	await page.evaluate((was) => Object.assign(window, { was }), root);
	await step("refresh of a comparison", () => page.keyboard.press("r"),
		() => window.__firn.profile().root !== window.was);
	figures["blocks of 1000000, ms of its own"] = blocks;
	assert.ok(Math.max(...Object.values(blocks)) < BLOCK_MS_MAX, JSON.stringify(blocks));
}));

/* In a tab that no test tool looks into: those keep what was fetched. */
test("memory stays below 150 MB, and flat over 20 rounds", async () => {
	const tab = await bareTab(new URL(placeOf("m"), base).href);
	const loaded = (count) => tab.evaluate(`new Promise((resolve) => {
		const look = () => window.__firn?.profile()?.count === ${count} && !window.__firn.busy() &&
			window.__firn.paint().count > 0 ? resolve() : setTimeout(look, 20);
		look();
	})`);
	try {
		await loaded(NODES.m);
		const weigh = async () => ({ page: await memory(tab), process: await tab.memory() });
		const first = await weigh();
		const rounds = [];
		for (let round = 0; round < 20; round++) {
			for (const job of ["k", "m"]) {
				await tab.evaluate(`(() => {
					const field = document.querySelector("#query");
					field.focus();
					field.value = 'job="${job}"';
					field.dispatchEvent(new InputEvent("input", { bubbles: true }));
					const enter = { key: "Enter", bubbles: true };
					field.dispatchEvent(new KeyboardEvent("keydown", enter));
				})()`);
				await loaded(NODES[job]);
			}
			rounds.push(await weigh());
		}
		const last = rounds.at(-1);
		Object.assign(figures["firn 1000000"] ??= {}, {
			memory_mb: Math.round(first.page), memory_after_20_rounds_mb: Math.round(last.page),
			process_mb: Math.round(first.process), process_after_20_rounds_mb: Math.round(last.process),
		});
		for (const part of ["page", "process"]) {
			const all = [first, ...rounds].map((weighed) => Math.round(weighed[part]));
			assert.ok(Math.max(...all) < 150, `${part}: ${all} MB`);
			assert.ok(last[part] - rounds[4][part] < 10, `${part}: ${all} MB`);
		}
	} finally {
		await tab.close();
	}
});

test("a query that is called off leaves the server within half a second", () => withPage({}, async (page) => {
	await open(page, placeOf("k"));
	const { root } = await firn(page, "profile");
	const asked = async () => (await (await fetch(new URL("api/v1/queries", base))).json()).queries
		.filter(({ id, path: call }) => id.startsWith("ui-") && call === "/api/v1/query");
	const until = async (wanted) => {
		let list = [];
		while (Boolean((list = await asked()).length) !== wanted)
			await new Promise((resolve) => setTimeout(resolve, 1));
		return list;
	};
	const seen = until(true);
	await page.fill("#query", 'job="m"');
	await page.press("#query", "Enter");
	await seen;
	const began = performance.now();
	const gone = until(false);
	/* What the Cancel button does; that comes for queries of more than a second. */
	await page.evaluate(() => window.__firn.cancel());
	await gone;
	const took = performance.now() - began;
	assert.ok(took < 500, `${took} ms`);
	figures.cancelled_after_ms = Math.round(took);
	assert.equal((await firn(page, "profile")).root, root, "the picture stays");
}));

const PERF_BYTES = 500 * 1000 * 1000;

test("a perf script of 500 MB is read as a stream", () => withPage({}, async (page) => {
	const samples = Array.from({ length: 2000 }, (_, at) => {
		const frames = Array.from({ length: 5 + (at % 25) }, (__, depth) =>
			`\t    ${(0x55d0c9a00000 + 64 * depth).toString(16)} level_${depth}_of_${(at * 7) % 40}+0x1c ` +
			"(/usr/lib/libserver.so.1)");
		const head = `server 4242/4243 [00${at % 4}] ${1000 + at}.123456:   10101010 cpu-clock:`;
		return `${[head, ...frames].join("\n")}\n`;
	});
	const block = Buffer.from(`${samples.join("\n")}\n`);
	const file = `${profiles.m}.perf.txt`;
	const descriptor = openSync(file, "w");
	const blocks = Math.ceil(PERF_BYTES / block.length);
	for (let at = 0; at < blocks; at++)
		writeSync(descriptor, block);
	closeSync(descriptor);
	await open(page, placeOf("k"));
	const choice = page.waitForEvent("filechooser");
	await page.evaluate(() => 0); // the browser knows by then that the dialog is ours
	await page.keyboard.press("o");
	const began = Date.now();
	await (await choice).setFiles(file);
	let peak = 0;
	const shown = page.waitForFunction((name) => window.__firn.place().file === name && !window.__firn.busy() &&
		window.__firn.profile()?.root > 0, path.basename(file), { timeout: 200_000 });
	let reading = true;
	void shown.finally(() => (reading = false));
	while (reading)
		peak = Math.max(peak, await processMemory(page));
	await shown;
	rmSync(file);
	const { root } = await firn(page, "profile");
	figures["perf script of 500 MB"] = { seconds: Math.round((Date.now() - began) / 100) / 10,
		process_peak_mb: Math.round(peak) };
	assert.equal(root, blocks * samples.length * 10_101_010);
	assert.ok(peak < 1500, `${peak} MB`);
}));

test("speedscope with the same file", { timeout: 240_000 }, async () => {
	const index = new URL("node_modules/speedscope/dist/release/index.html", import.meta.url);
	const script = `${profiles.m}.js`;
	writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(profiles.m))}, ` +
		`${JSON.stringify(readFileSync(profiles.m).toString("base64"))})`);
	const browser = await launch("--allow-file-access-from-files");
	const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
	try {
		const session = await page.context().newCDPSession(page);
		await page.addInitScript(() => {
			Object.defineProperty(window, "blocks", { value: [] });
			new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) =>
				window.blocks.push(duration))).observe({ type: "longtask", buffered: true });
		});
		const began = Date.now();
		await page.goto(`${index.href}#localProfilePath=${script}`);
		await page.waitForFunction(() => document.title.includes(" - "), null, { timeout: 200_000 });
		await page.evaluate(() => new Promise((resolve) =>
			requestAnimationFrame(() => requestAnimationFrame(resolve))));
		const figure = figures["speedscope 1000000"] = { full_paint_ms: Date.now() - began };
		figure.longest_block_ms = await page.evaluate(() => Math.max(0, ...window.blocks));
		figure.memory_mb = Math.round(await memory(session));
		figure.process_mb = Math.round(await processMemory(page));
		figure.move_ms = percentiles(await paced(page, 40, `
			document.elementFromPoint(500, 400).dispatchEvent(new WheelEvent("wheel",
				{ deltaY: at < 20 ? -24 : 24, ctrlKey: true, bubbles: true,
				cancelable: true, clientX: 500, clientY: 400 }));`));
	} finally {
		await browser.close();
	}
});
