// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { firn, fixedRange, inviting, open, picture, settled, withPage } from "./page.mjs";

const escape = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

test("a search marks, sums up without double counting, and changes no other number",
	() => withPage({}, async (page) => {
		await open(page, fixedRange());
		const frame = await inviting(page);
		const before = await firn(page, "profile");
		await page.keyboard.press("/");
		const text = `/^${escape(frame.name)}$/`;
		await page.keyboard.type(text);
		/* What was found of half the text comes first. */
		await page.waitForFunction((whole) =>
			window.__firn.place().search === whole && window.__firn.search()?.functions > 0, text);
		const found = await firn(page, "search");
		assert.ok(found.functions >= 1 && found.frames >= 1);
		assert.ok(found.value >= frame.total && found.value <= before.root);
		assert.deepEqual((await firn(page, "profile")).root, before.root);
		assert.equal((await firn(page, "frame", frame.name)).total, frame.total);
		const said = await page.locator(".search-result b").textContent();
		const percent = (100 * found.value) / before.root;
		assert.ok(Math.abs(parseFloat(said.replace(/[<>]/, "")) - percent) <= 0.1, said);
		assert.equal(new URL(page.url()).searchParams.get("search"), text);
		await picture(page, "search");
	}));

test("Enter goes to a match and reads it in full, n and N walk on", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	await page.keyboard.press("/");
	await page.keyboard.type("/./");
	await page.keyboard.press("Enter");
	await settled(page);
	const first = await firn(page, "selected");
	assert.equal(await firn(page, "focus"), first);
	await page.keyboard.press("Tab");
	await page.evaluate(() => document.activeElement.blur());
	await page.keyboard.press("n");
	await settled(page);
	const place = await firn(page, "frame", await firn(page, "selected"));
	assert.ok(place);
	await page.keyboard.press("N");
	assert.equal(await firn(page, "selected"), first);
}));

test("an invalid regular expression says so and does nothing else", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	await page.fill("#search", "/(/");
	await page.getByRole("alert").waitFor();
	assert.equal(await firn(page, "search"), null);
	await page.keyboard.press("Escape");
	assert.equal((await firn(page, "place")).search, "");
}));
