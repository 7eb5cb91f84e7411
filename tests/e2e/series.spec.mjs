// SPDX-License-Identifier: Apache-2.0
/* A chart of a hundred series: all drawn, read by pointing, sorted by name or size, and each alone. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { hoursAgo, query, send } from "./moments.mjs";
import { firn, open, picture, settled, taskTimes, withPage } from "./page.mjs";

const FROM = hoursAgo(5);
const SERIES = 100;
const REPORTS = 6;
const REPORT_MS = 10_000;
const place = query(`service="hundred"`, FROM, FROM + REPORTS * REPORT_MS, "&sum_by=pod");
const podOf = (at) => `pod-${String((at * 37) % SERIES).padStart(3, "0")}`;

/* The pod that is 37 * at modulo 100 has at + 1 samples in each report. */
before(async () => {
	const reportOf = (report) => Promise.all(Array.from({ length: SERIES }, (_, at) =>
		send({ service: "hundred", pod: podOf(at) }, FROM + report * REPORT_MS, REPORT_MS,
			[{ stack: ["main", "serve"], value: at + 1 }])));
	for (let report = 0; report < REPORTS; report++)
		await reportOf(report);
});

const names = (page) => page.locator(".line-keys .line-name").allInnerTexts();
/* The list is drawn a moment after its numbers are there, or its order is asked for. */
async function listed(page, wanted) {
	await page.waitForFunction((text) => text === Array.from(document.querySelectorAll(".line-keys .line-name"),
		({ textContent }) => textContent).join(), wanted.join()).catch(() => {});
	assert.deepEqual(await names(page), wanted);
}
const drawn = (page) => page.evaluate(() => {
	const { width, height } = document.querySelector(".plot canvas");
	const copy = Object.assign(document.createElement("canvas"), { width, height })
		.getContext("2d", { willReadFrequently: true });
	copy.drawImage(document.querySelector(".plot canvas"), 0, 0);
	const { data } = copy.getImageData(0, 0, width, height);
	let coloured = 0;
	for (let at = 0; at < data.length; at += 4) {
		const [red, green, blue] = [data[at], data[at + 1], data[at + 2]];
		if (Math.max(red, green, blue) - Math.min(red, green, blue) > 40)
			coloured++;
	}
	return coloured;
});

test("a hundred series: all are drawn, sorted by name and mean, each alone and with the others again",
	() => withPage({}, async (page) => {
		await open(page, place);
		await page.waitForFunction((count) => window.__firn.series()?.lines === count, SERIES);
		const bySize = Array.from({ length: SERIES }, (_, at) => podOf(SERIES - 1 - at));
		await listed(page, bySize);
		const sort = page.getByRole("group", { name: "Sort the lines by" });
		await sort.getByRole("button", { name: "Name" }).click();
		await listed(page, bySize.slice().sort());
		await sort.getByRole("button", { name: "Name, ascending" }).click();
		await listed(page, bySize.slice().sort().reverse());
		await sort.getByRole("button", { name: "Mean" }).click();
		await sort.getByRole("button", { name: "Mean, descending" }).click();
		await listed(page, bySize.slice().reverse());
		await settled(page);
		await picture(page, "hundred-series");

		const all = await drawn(page);
		const key = page.getByRole("button", { name: new RegExp(`^${podOf(60)} `) });
		await key.click();
		await page.mouse.move(5, 5);
		await settled(page);
		assert.equal(await key.getAttribute("aria-pressed"), "true");
		const one = await drawn(page);
		assert.ok(one > 0 && one < all / 5, `${one} of ${all} coloured pixels`);
		const { root } = await firn(page, "profile");
		assert.equal(root, (REPORTS * SERIES * (SERIES + 1)) / 2, "the graph is of all of them");
		await key.click();
		await page.mouse.move(5, 5);
		await settled(page);
		assert.equal(await key.getAttribute("aria-pressed"), "false");
		assert.equal(await drawn(page), all);

		/* One stop for Tab, however many lines; arrows walk them. */
		const list = page.getByRole("list", { name: "Lines of the chart" });
		assert.equal(await list.locator("button").evaluateAll((all) =>
			all.filter(({ tabIndex }) => tabIndex === 0).length), 1);
		await list.locator(".line-key").first().focus();
		for (const step of ["ArrowDown", "ArrowDown", "ArrowRight"])
			await page.keyboard.press(step);
		const third = (await names(page))[2];
		assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")),
			`Show only ${third} in all views`);
		/* The values are of the moment that is pointed at, and their heading says so. */
		const plot = await page.locator(".plot .u-over").boundingBox();
		await page.mouse.move(plot.x + plot.width * 0.4, plot.y + 20);
		await sort.getByText(/^\d\d:\d\d/).waitFor();
		await page.mouse.move(5, 5);
		await sort.getByText("Mean").waitFor();

		await key.hover();
		await page.getByRole("button", { name: `Show only ${podOf(60)} in all views` }).click();
		await page.waitForFunction((sum) => window.__firn.profile()?.root === sum, REPORTS * 61);
	}));

test("pointing at one of a hundred series reads it, within a frame's time", () => withPage({}, async (page) => {
	await open(page, place);
	await page.waitForFunction((count) => window.__firn.series()?.lines === count, SERIES);
	const box = await page.locator(".plot .u-over").boundingBox();
	/* The top of the scale is the largest line and an eighth. */
	const yOf = (at) => box.y + box.height * (1 - (at + 1) / (SERIES * 1.12));
	/* A pixel is as high as the way from a line to the next but one. */
	for (const at of [97, 50, 3]) {
		await page.mouse.move(box.x + box.width * 0.4, yOf(at));
		const near = Array.from({ length: 7 }, (_, more) => podOf(at - 3 + more));
		await page.waitForFunction((list) =>
			list.includes(document.querySelector(".strip-reading .line-name")?.textContent), near);
	}
	/* Its own time of computing: what others do on the machine does not count. */
	const times = await taskTimes(page, Array.from({ length: 60 }, (_, at) => () =>
		page.mouse.move(box.x + box.width * (0.02 + 0.016 * ((at * 23) % 60)), yOf((at * 41) % SERIES))));
	const p95 = times.sort((a, b) => a - b)[Math.floor(0.95 * times.length)];
	console.log(`# hover over 100 series: p95 ${p95.toFixed(1)} ms`);
	assert.ok(p95 < 33, `${p95} ms`);
}));
