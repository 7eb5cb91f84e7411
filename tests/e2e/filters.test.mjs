// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { clickFrame, firn, fixedRange, inviting, open, painted, picture, settled, withPage } from "./page.mjs";

const filters = (page) => firn(page, "place").then((place) => place.filters);
const filtered = (page) => page.waitForFunction(() => window.__firn.profile().filtered > 0 && !window.__firn.busy());

test("a preset hides the kernel's frames, says so in a chip, and Back brings them back",
	() => withPage({}, async (page) => {
		await open(page, fixedRange());
		const { root } = await firn(page, "profile");
		await page.click("#add-filter");
		await page.getByRole("button", { name: "Kernel" }).click();
		await page.getByRole("button", { name: "Remove the filter hide-frame kind=kernel" }).waitFor();
		await painted(page);
		assert.deepEqual(await filters(page), ["hide-frame kind=kernel"]);
		assert.ok((await firn(page, "profile")).root <= root);
		assert.equal(new URL(page.url()).searchParams.get("filter"), "hide-frame kind=kernel");
		await picture(page, "filters");
		await page.goBack();
		await page.waitForFunction((whole) => !window.__firn.place().filters.length &&
			window.__firn.profile().root === whole, root);
	}));

test("one key hides the stacks of the selected frame, and their share is said", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	const { root } = await firn(page, "profile");
	const frame = await inviting(page);
	await clickFrame(page, frame);
	await page.keyboard.press("D");
	await filtered(page);
	const after = await firn(page, "profile");
	assert.equal(after.root + after.filtered, root);
	assert.ok(after.filtered >= frame.total);
	assert.equal(await firn(page, "frame", frame.name), null);
	await page.getByRole("group", { name: "Filters" }).getByText(/% hidden/).waitFor();
}));

test("the form writes filters of any field, and what hides everything is named", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	await page.click("#add-filter");
	await page.getByRole("combobox", { name: "Do", exact: true }).selectOption("show-stack");
	await page.getByRole("combobox", { name: "Where the frame's" }).selectOption("binary");
	await page.getByLabel("Value", { exact: true }).fill("BUS");
	const values = await page.locator("#filter-values option").evaluateAll((all) => all.map(({ value }) => value));
	assert.ok(values.includes("busy"), `offered: ${values}`);
	assert.ok(values.every((each) => /bus/i.test(each) && !each.includes("/")), `offered: ${values}`);
	await page.getByLabel("Value", { exact: true }).fill('no "such", binary');
	await page.getByRole("button", { name: "Add filter" }).click();
	await page.getByRole("heading", { name: "The filters hide everything" }).waitFor();
	await page.getByRole("button", { name: "Clear the filters" }).click();
	await page.waitForFunction(() => window.__firn.profile().root > 0);
}));

test("inverted, functions come first and every sum stays", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	const { root } = await firn(page, "profile");
	const first = () => window.__firn.frames().filter(({ depth }) => depth === 1).map(({ name }) => name).join();
	const starts = await page.evaluate(first);
	await page.keyboard.press("i");
	await page.waitForFunction(() => new URLSearchParams(location.search).get("invert") === "1");
	await page.waitForFunction((before) => before !== window.__firn.frames().filter(({ depth }) => depth === 1)
		.map(({ name }) => name).join(), starts);
	await painted(page);
	assert.equal((await firn(page, "profile")).root, root);
	await page.keyboard.press("u");
	await settled(page);
	const host = await page.locator(".flame-host").boundingBox();
	const bottom = await firn(page, "frame", "total");
	const gap = host.y + host.height - (bottom.y + bottom.height + 1);
	assert.ok(Math.abs(gap) <= 1, "the root is not at the bottom");
	const frame = (await firn(page, "frames")).find(({ depth, width }) => depth === 1 && width > 20);
	await page.mouse.move(frame.x + 5, frame.y + 5);
	await page.waitForFunction((name) => window.__firn.hovered() === name, frame.name);
}));

test("the sandwich of a frame names it in the link; its menu offers the same as the keys",
	() => withPage({}, async (page) => {
		await open(page, fixedRange());
		const frame = await inviting(page);
		await page.mouse.click(frame.x + Math.min(20, frame.width / 2), frame.y + 5, { button: "right" });
		await page.getByRole("menu", { name: frame.name, exact: true }).waitFor();
		await page.getByRole("menuitem", { name: /^Pivot/ }).click();
		await page.getByRole("heading", { name: frame.name, exact: true }).waitFor();
		assert.equal(new URL(page.url()).searchParams.get("function"), frame.name);
		await page.getByRole("region", { name: "Callers" }).or(page.locator(".half").first()).first().waitFor();
		await picture(page, "sandwich");
		await page.goBack();
		await page.waitForFunction(() => window.__firn.place().view === "flame");
	}));
