// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { base, firn, fixedRange, open, painted, picture, withPage } from "./page.mjs";

test("completion leads from a label to its value, and the graph follows", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	const { root } = await firn(page, "profile");
	const field = page.getByRole("combobox");
	await field.click();
	await page.keyboard.type("{com");
	await page.getByRole("option", { name: /^comm( program)?$/ }).waitFor();
	await page.keyboard.press("ArrowDown");
	assert.equal(await field.getAttribute("aria-activedescendant"), "query-item-0");
	await page.keyboard.press("Enter");
	assert.equal(await field.inputValue(), "{comm=");
	await page.getByRole("listbox", { name: "Suggestions" }).getByRole("option").first().waitFor();
	await picture(page, "completion");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => /^comm="/.test(window.__firn.place().matchers));
	await painted(page);
	await page.waitForFunction((whole) => window.__firn.profile().root < whole, root);
	assert.match(new URL(page.url()).searchParams.get("query"), /\{comm="[^"]+"\}$/);
	await page.getByRole("button", { name: "Clear the label filter" }).click();
	await page.waitForFunction((whole) => window.__firn.profile().root === whole, root);
}));

test("a syntax error names its column and keeps the old result", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	const { root } = await firn(page, "profile");
	await page.getByRole("combobox").click();
	await page.keyboard.type("comm nginx");
	await page.keyboard.press("Enter");
	await page.getByRole("alert").getByText(/Column 6/).waitFor();
	assert.equal((await firn(page, "profile")).root, root);
	assert.equal((await firn(page, "place")).matchers, "");
}));

test("matchers that exclude everything are named as the reason, and can be removed",
	() => withPage({}, async (page) => {
		const query = fixedRange();
		await open(page, query);
		await page.getByRole("combobox").fill('comm="there is no such command"');
		await page.keyboard.press("Enter");
		await page.getByRole("heading", { name: "The label filter excludes everything" }).waitFor();
		await page.getByRole("button", { name: "Remove the label filter" }).click();
		await painted(page);
		assert.equal(new URL(page.url()).search, new URL(query, page.url()).search.replaceAll("%3A", ":"));
	}));

test("a brush over the strip sets the range, and the graph is the sum of the strip",
	() => withPage({}, async (page) => {
		await open(page, fixedRange());
		const plot = await page.locator(".u-over").boundingBox();
		const before = await firn(page, "place");
		const whole = (await firn(page, "profile")).root;
		const y = plot.y + plot.height / 2;
		/* Of the samples, which may be of the last minute alone, some are in it and some after it. */
		const [from, to] = [0.55, 0.97].map((share) => plot.x + plot.width * share);
		await page.mouse.move(from, y);
		await page.mouse.down();
		await page.mouse.move(to, y, { steps: 6 });
		await page.mouse.up();
		await page.waitForFunction((old) => window.__firn.place().range.from !== old, before.range.from);
		await painted(page);
		const { range } = await firn(page, "place");
		await page.waitForFunction(() => window.__firn.series());
		const step = (await firn(page, "series")).step_ms;
		const span = Number(before.range.to) - Number(before.range.from);
		assert.ok(Math.abs(Number(range.from) - (Number(before.range.from) + 0.55 * span)) <= 2 * step);
		assert.ok(Math.abs(Number(range.to) - (Number(before.range.from) + 0.97 * span)) <= 2 * step);
		await page.waitForFunction((all) => {
			const { root } = window.__firn.profile();
			return root > 0 && root < all && Math.abs(window.__firn.series().sum / root - 1) <= 0.001;
		}, whole);
		assert.equal((await firn(page, "place")).live, false);
		await page.goBack();
		await page.waitForFunction((old) => window.__firn.place().range.from === old, before.range.from);
	}));

test("presets and absolute times set the range", () => withPage({}, async (page) => {
	await open(page);
	await page.keyboard.press("t");
	await page.getByRole("button", { name: "Last 5 minutes" }).click();
	await page.waitForFunction(() => window.__firn.place().range.from === "now-5m");
	await page.keyboard.press("t");
	await page.getByRole("button", { name: "Show", exact: true }).click();
	await page.waitForFunction(() => /^\d+$/.test(window.__firn.place().range.from));
	assert.equal((await firn(page, "place")).live, false);
}));

test("sum by a label draws a line per value", () => withPage({}, async (page) => {
	await open(page, `${fixedRange()}&sum_by=comm`);
	await page.waitForFunction(() => window.__firn.series()?.lines > 1);
	assert.ok(await page.getByRole("list", { name: "Lines of the chart" }).getByRole("button").count() > 1);
	await picture(page, "sum-by");
}));

test("a link of an unknown profile type offers those that there are", () => withPage({}, async (page) => {
	await page.goto(new URL("?query=nosuch:samples:count:cpu:nanoseconds:delta", base).href);
	await page.getByRole("heading", { name: "No profile type of this name" }).waitFor();
	await page.getByText("nosuch:samples:count:cpu:nanoseconds:delta").waitFor();
	await page.getByRole("main").getByRole("button", { name: "CPU", exact: true }).click();
	await painted(page);
	assert.match((await firn(page, "place")).type, /^on_cpu:/);
}));

test("the palette finds functions, label values and profile types", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	const take = async (typed, option) => {
		await page.keyboard.press("Control+k");
		await page.getByRole("combobox", { name: "Command" }).fill(typed);
		await page.getByRole("option", { name: option }).first().click();
		await painted(page);
	};
	await take("spi", /^spin function/);
	assert.equal(await firn(page, "selected"), "spin");
	const all = (await firn(page, "profile")).root;
	await take("comm busy", /^comm=busy label$/);
	assert.match((await firn(page, "place")).matchers, /comm="busy"/);
	await page.waitForFunction((total) => window.__firn.profile().root < total, all);
	await take("on_cpu", /^CPU .* type$/);
	assert.match((await firn(page, "place")).type, /^on_cpu:/);
}));
