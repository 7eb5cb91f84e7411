// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { firn, fixedRange, inviting, open, painted, picture, withPage } from "./page.mjs";

const sentence = (page) => page.locator(".sentence");
const range = (query) => {
	const { from, to } = Object.fromEntries(new URLSearchParams(query));
	return { from: Number(from), to: Number(to) };
};

test("compared to itself, nothing has changed", () => withPage({}, async (page) => {
	const query = fixedRange();
	const { from, to } = range(query);
	await open(page, `${query}&view=compare&base_from=${from}&base_to=${to}`);
	const [a, b] = await firn(page, "sides");
	assert.ok(a.total > 0);
	assert.deepEqual(a, b);
	const frame = await inviting(page);
	const change = await firn(page, "change", frame.name);
	assert.equal(change.words, "=");
	assert.equal(change.a, change.b);
	await sentence(page).getByText(/^A and B use the same/).waitFor();
	assert.doesNotMatch(await page.locator("body").innerText(), /NaN|Infinity|undefined/);
}));

test("the two halves of a range compare, swap, and name what changed most", () => withPage({}, async (page) => {
	const query = fixedRange();
	const { to } = range(query);
	const [early, late] = [to - 30_000, to - 15_000];
	const lateHalf = query.replace(/from=\d+/, `from=${late}`);
	await open(page, `${lateHalf}&view=compare&base_from=${early}&base_to=${late}`);
	const [a, b] = await firn(page, "sides");
	assert.ok(a.total > 0 && b.total > 0);
	const table = page.getByRole("grid", { name: "Changes" });
	await table.getByRole("row").nth(2).waitFor();
	await picture(page, "compare");
	await page.getByRole("button", { name: "Swap" }).click();
	await page.waitForFunction((total) => window.__firn.sides()?.[0].total === total, b.total);
	assert.equal((await firn(page, "sides"))[1].total, a.total);
	await page.goBack();
	await page.waitForFunction((total) => window.__firn.sides()?.[0].total === total, a.total);
}));

test("a side without data says so: everything is gone", () => withPage({}, async (page) => {
	const query = fixedRange();
	const { from, to } = range(query);
	const type = new URLSearchParams(query).get("query");
	await open(page, `?query=${encodeURIComponent(`${type}{comm="no such one"}`)}` +
		`&from=${from}&to=${to}&view=compare&base_from=${from}&base_to=${to}` +
		`&base_query=${encodeURIComponent(type)}`);
	await sentence(page).getByText("B has no data: everything is gone.").waitFor();
	const [, frame] = await firn(page, "frames");
	assert.equal((await firn(page, "change", frame.name)).words, "gone");
	assert.doesNotMatch(await page.locator("body").innerText(), /NaN|Infinity|undefined/);
}));

test("presets and a brush choose what A is", () => withPage({}, async (page) => {
	const query = fixedRange();
	const { from } = range(query);
	await open(page, query);
	await page.keyboard.press("4");
	await page.waitForFunction(() => window.__firn.sides());
	await page.getByRole("button", { name: /^Compare to/ }).click();
	await page.getByRole("option", { name: "An hour before" }).click();
	await page.waitForFunction((ms) => window.__firn.place().base?.range.from === String(ms), from - 3600_000);
	await painted(page);
	await page.getByRole("button", { name: "Dragging sets the range of A" }).click();
	const plot = await page.locator(".u-over").boundingBox();
	await page.mouse.move(plot.x + plot.width * 0.9, plot.y + 20);
	await page.mouse.down();
	await page.mouse.move(plot.x + plot.width * 0.95, plot.y + 20, { steps: 5 });
	await page.mouse.up();
	await page.waitForFunction((ms) => Number(window.__firn.place().base.range.from) > ms, from - 1800_000);
	assert.equal((await firn(page, "place")).range.from, String(from));
}));
