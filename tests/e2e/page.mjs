// SPDX-License-Identifier: Apache-2.0
/* page - a browser for one spec file, and pages of it that fail on any complaint of the browser. */
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { chromium } from "playwright-core";

export const base = new URL(process.env.FIRN_URL ?? "http://127.0.0.1:7070/");

/* Chromium without a window costs two thirds of what the whole browser does. */
const SHELL = "/usr/bin/chromium-headless-shell";
const BROWSER = process.env.FIRN_CHROMIUM ?? (existsSync(SHELL) ? SHELL : "/usr/bin/chromium");

export const launch = (...more) => chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", ...more] });

/* However busy the machine is. */
const PATIENCE_MS = Number(process.env.FIRN_PATIENCE_MS ?? 100_000);
/* Of a page's text in a failure, and how long it is waited for. */
const SEEN_MAX = 3_000;
const SEEN_MS = 10_000;

let browser;
before(async () => {
	browser = await launch();
});
after(() => browser?.close());

/* What a reader sees of the page, in words: a failed wait does not say what was there in place of it. */
async function seen(page, complaints) {
	const text = await Promise.race([
		page.evaluate(() => `${location.href}\n${document.body.innerText}`).catch(String),
		new Promise((resolve) => setTimeout(resolve, SEEN_MS, "(it does not answer)")),
	]);
	return [text.slice(0, SEEN_MAX), ...complaints].join("\n");
}

/* Runs `work` on a fresh page (own storage); then checks that nothing was complained about. */
export async function withPage(options, work) {
	const context = await browser.newContext({ viewport: { width: 1600, height: 1000 }, ...options });
	context.setDefaultTimeout(PATIENCE_MS);
	const page = await context.newPage();
	const complaints = [];
	page.on("console", (message) => {
		if (["error", "warning"].includes(message.type()))
			complaints.push(`console ${message.type()}: ${message.text()}`);
	});
	page.on("pageerror", (error) => complaints.push(`page error: ${error.message}`));
	page.on("request", (request) => {
		const url = new URL(request.url());
		if (url.protocol !== "data:" && url.host !== base.host)
			complaints.push(`request to another host: ${url}`);
	});
	try {
		await work(page, complaints);
		assert.deepEqual(complaints, []);
	} catch (error) {
		throw new Error(`${error.message}\nThe page then:\n${await seen(page, complaints)}`, { cause: error });
	} finally {
		await context.close();
	}
}

/* From now on the page computes as on a machine `times` as slow. */
export async function slowed(page, times) {
	const session = await page.context().newCDPSession(page);
	await session.send("Emulation.setCPUThrottlingRate", { rate: times });
}

/* Opens a place and waits until its profile is painted. */
export async function open(page, query = "") {
	await page.goto(new URL(query, base).href);
	await painted(page);
}

/* How long names are waited for: symbols are read when nothing else needs the CPUs, which may be never. */
const NAMES_MS = Number(process.env.FIRN_NAMES_MS ?? 30_000);

export async function painted(page) {
	/* Names that are still read would change it. */
	await page.waitForFunction((most) => {
		const shown = window.__firn?.profile();
		return shown && (shown.pending === 0 || performance.now() > most) && !window.__firn.busy() &&
			(window.__firn.paint().count > 0 || !window.__firn.viewport());
	}, NAMES_MS);
	await settled(page);
}

/* Waits until the canvas has not been repainted for a few frames (animations are over). */
export async function settled(page) {
	await page.evaluate(async () => {
		const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
		for (let still = 0, seen = -1; still < 5; still++) {
			await frame();
			const { count } = window.__firn.paint();
			if (count !== seen)
				still = 0;
			seen = count;
		}
	});
}

export const firn = (page, query, ...args) =>
	page.evaluate(([name, list]) => window.__firn[name](...list), [query, args]);

/* A query whose answer does not change any more: ten minutes that ended when every report had come. */
export function fixedRange() {
	const to = Number(process.env.FIRN_RANGE_END ?? Math.floor(Date.now() / 10_000) * 10_000 - 20_000);
	const type = encodeURIComponent("on_cpu:samples:count:cpu:nanoseconds:delta");
	return `?query=${type}&from=${to - 600_000}&to=${to}`;
}

/* A frame that is worth a click: wide, but not everything, with frames below it. */
export async function inviting(page) {
	const frames = await firn(page, "frames");
	const width = frames[0].width;
	const candidates = frames.filter((frame) =>
		frame.depth >= 1 && frame.width > 40 && frame.width < width * 0.7 && frame.self < frame.total);
	candidates.sort((a, b) => b.width - a.width);
	assert.ok(candidates.length, "no frame to click; is there data?");
	return candidates[0];
}

/* Milliseconds that the page's main thread computes for each of `steps`, until the frame after it is made. */
export async function taskTimes(page, steps) {
	const session = await page.context().newCDPSession(page);
	await session.send("Performance.enable", { timeDomain: "threadTicks" });
	const spent = async () => {
		await page.evaluate(() => new Promise((resolve) =>
			requestAnimationFrame(() => requestAnimationFrame(resolve))));
		const { metrics } = await session.send("Performance.getMetrics");
		return 1000 * metrics.find(({ name }) => name === "TaskDuration").value;
	};
	const times = [];
	for (const step of steps) {
		const before = await spent();
		await step();
		times.push(await spent() - before);
	}
	await session.detach();
	return times;
}

export async function clickFrame(page, frame) {
	await page.mouse.click(frame.x + Math.min(frame.width / 2, 200), frame.y + frame.height / 2);
	await settled(page);
}

export async function picture(page, name) {
	const folder = process.env.FIRN_SCREENSHOTS;
	if (!folder)
		return;
	mkdirSync(folder, { recursive: true });
	await page.screenshot({ path: path.join(folder, `${name}.png`) });
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/* By the debugger, so that the page's own policy against foreign scripts stays in force. */
export async function violations(page) {
	await page.evaluate(axe);
	const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
	return found.violations
		.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join("; ")}`);
}
