// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { clickFrame, firn, fixedRange, inviting, open, painted, picture, settled, withPage } from "./page.mjs";

const canvas = (page) => page.locator(".flame-base").screenshot();

test("a click zooms; breadcrumb, Escape and Back undo it exactly", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	/* Names that come later would change the picture. */
	await page.waitForFunction(() => window.__firn.profile().pending === 0 && !window.__firn.busy());
	await settled(page);
	await page.mouse.move(2, 2);
	const whole = await canvas(page);
	const frame = await inviting(page);
	await clickFrame(page, frame);
	assert.equal(await firn(page, "focus"), frame.name);
	const zoomed = await firn(page, "frame", frame.name);
	assert.ok(zoomed.width > frame.width);
	assert.equal(await page.locator("[aria-current=location]").textContent().then((text) => text.length > 0), true);
	await picture(page, "zoomed");

	await page.keyboard.press("Escape");
	await page.mouse.move(2, 2);
	await page.waitForFunction(() => window.__firn.focus() === "total");
	await settled(page);
	await page.keyboard.press("0");
	await page.evaluate(() => document.activeElement.blur());

	await clickFrame(page, await inviting(page));
	await page.goBack();
	await page.waitForFunction(() => window.__firn.focus() === "total");
	await settled(page);

	await clickFrame(page, await inviting(page));
	await page.getByRole("navigation", { name: "Zoom path" }).getByRole("button", { name: "total" }).click();
	await page.waitForFunction(() => window.__firn.focus() === "total");
	await page.mouse.move(2, 2);
	await page.evaluate(() => document.activeElement.blur());
	await settled(page);
	assert.ok((await canvas(page)).equals(whole), "the picture differs from the one before");
}));

test("a reload and a copied link show the very same picture", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	await clickFrame(page, await inviting(page));
	await page.mouse.move(2, 2);
	const focus = await firn(page, "focus");
	const seen = await canvas(page);
	const place = await firn(page, "place");
	await page.reload();
	await painted(page);
	assert.deepEqual(await firn(page, "place"), place);
	assert.equal(await firn(page, "focus"), focus);
	assert.ok((await canvas(page)).equals(seen));
	const other = await page.context().newPage();
	await other.setViewportSize(page.viewportSize());
	await other.goto(page.url());
	await painted(other);
	assert.ok((await canvas(other)).equals(seen));
	assert.ok(page.url().length < 2000);
}));

test("hovering says at once what the frame is", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	const frame = await inviting(page);
	await page.mouse.move(frame.x + frame.width / 2, frame.y + frame.height / 2);
	assert.equal(await firn(page, "hovered"), frame.name);
	const status = page.locator(".status");
	await status.getByText(frame.name, { exact: true }).waitFor();
	const root = (await firn(page, "profile")).root;
	const share = Number((await status.locator("b").first().textContent()).replace(" %", ""));
	assert.ok(Math.abs(share - (100 * frame.total) / root) <= 0.1, `${share} %`);
}));

test("control and wheel zoom at the pointer, dragging pans", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	const frame = await inviting(page);
	const x = Math.round(frame.x + frame.width / 2);
	const y = frame.y + frame.height / 2;
	const view = () => firn(page, "viewport");
	const at = ({ left, right, width }, host) => left + ((x - host) / width) * (right - left);
	const host = (await page.locator(".flame-host").boundingBox()).x;
	const before = await view();
	await page.mouse.move(x, y);
	await page.keyboard.down("Control");
	await page.mouse.wheel(0, -120);
	await page.mouse.wheel(0, -120);
	await page.keyboard.up("Control");
	await settled(page);
	const zoomed = await view();
	const pixel = (zoomed.right - zoomed.left) / zoomed.width;
	assert.ok(zoomed.right - zoomed.left < before.right - before.left);
	assert.ok(Math.abs(at(zoomed, host) - at(before, host)) <= pixel, "the frame under the pointer moved");
	await page.mouse.down();
	await page.mouse.move(x - 60, y, { steps: 4 });
	await page.mouse.up();
	await settled(page);
	const panned = await view();
	assert.ok(Math.abs((panned.left - zoomed.left) / pixel - 60) <= 1.5);
	assert.equal(await firn(page, "focus"), "total", "a drag is not a click");
}));

test("the keyboard alone walks, zooms and comes back, and the tree says where it is",
	() => withPage({}, async (page) => {
		await open(page, fixedRange());
		await page.locator("#graph").focus();
		await page.keyboard.press("ArrowDown");
		await page.keyboard.press("ArrowDown");
		const name = await firn(page, "selected");
		const item = page.getByRole("treeitem");
		assert.ok((await item.textContent()).startsWith(`${name}, `));
		assert.equal(await item.getAttribute("aria-level"), "2");
		assert.match(await item.textContent(), /% of total, .*% self$/);
		await page.keyboard.press("Enter");
		await settled(page);
		assert.equal(await firn(page, "focus"), name);
		await page.keyboard.press("Escape");
		await page.waitForFunction(() => window.__firn.focus() === "total");
		await page.keyboard.press("?");
		const help = page.getByRole("dialog", { name: "Keys and pointer" });
		await help.waitFor();
		for (const [group, entry] of [["Search", "Next, previous match"], ["Selected frame", "Copy its name"]])
			await help.getByRole("region", { name: group }).getByText(entry).waitFor();
		await page.keyboard.press("Escape");
		await page.getByRole("dialog", { name: "Keys and pointer" }).waitFor({ state: "detached" });
	}));

test("grouping by a label adds a level that sums up to the total", () => withPage({}, async (page) => {
	const query = fixedRange();
	await open(page, query);
	const { root } = await firn(page, "profile");
	await open(page, `${query}&group_by=comm`);
	const frames = await firn(page, "frames");
	assert.equal((await firn(page, "profile")).root, root);
	const values = frames.filter((frame) => frame.depth === 1).reduce((sum, frame) => sum + frame.total, 0);
	assert.ok(values > root * 0.95 && values <= root);
	await page.getByRole("button", { name: /^Group by/ }).click();
	await page.getByRole("option", { name: "comm" }).click();
	await page.waitForFunction(() => !new URL(location.href).searchParams.has("group_by"));
}));

test("the table sorts, keeps few rows in the page, and leads back to the graph", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	await page.keyboard.press("2");
	const table = page.getByRole("grid", { name: "Functions" });
	await table.waitFor();
	const totals = async () => {
		const texts = await table.locator(".table-body .row").evaluateAll((rows) =>
			rows.map((row) => row.querySelectorAll(".share-percent")[1].textContent));
		return texts.map((text) => parseFloat(text.replace(/[<>]/, "")));
	};
	await table.getByRole("button", { name: /^Total/ }).click();
	const sorted = await totals();
	assert.ok(sorted.length > 3 && sorted.length < 120);
	assert.deepEqual(sorted, sorted.slice().sort((a, b) => b - a));
	await table.getByRole("columnheader", { name: /^Total/, exact: false })
		.and(page.locator("[aria-sort=descending]")).waitFor();
	await picture(page, "table");
	await table.locator(".table-body .row").nth(2).dblclick();
	await page.waitForFunction(() => window.__firn.place().view === "flame" && window.__firn.focus() !== "total");
}));
