// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { clickFrame, firn, fixedRange, inviting, open, picture, settled, withPage } from "./page.mjs";

const tab = (page, name) => page.getByRole("group", { name: "Side pane shows" }).getByRole("button", { name });

/* The function that the busy program of the test spends its time in. */
async function selectBusy(page) {
	await open(page, fixedRange());
	await page.fill("#search", "/^spin$/");
	await page.press("#search", "Enter");
	await settled(page);
	return firn(page, "selected");
}

test("the side pane shows where in its source a function spends", () => withPage({}, async (page) => {
	const name = await selectBusy(page);
	await tab(page, "Source").click();
	const text = page.getByRole("table", { name: `Source of ${name}` });
	await text.getByRole("row").first().waitFor();
	assert.ok(await text.locator("[class*=heat-]:not(.heat-0)").count() > 0, "no line is hot");
	await picture(page, "source");
	const pane = await page.getByRole("complementary", { name: "Side pane" }).boundingBox();
	assert.ok(pane.width >= 600, `code has ${pane.width} pixels`);
	await page.getByRole("button", { name: "Machine code" }).click();
	await page.getByRole("table", { name: `Machine code of ${name}` }).waitFor();
	await picture(page, "machine-code");
}));

test("a live page whose data change faster than lines are read shows them", () => withPage({}, async (page) => {
	const begun = [];
	const gone = [];
	await page.route(/\/lines\?/, async (route) => {
		/* The first waits until the page has other data. */
		if (begun.push(route.request()) === 1) {
			const { root } = await firn(page, "profile");
			await page.waitForFunction((old) => window.__firn.profile().root !== old, root);
		}
		await route.continue();
	});
	page.on("requestfailed", (request) => gone.push(request));
	await open(page, fixedRange().replace(/from=.*/, "from=now-5m&to=now"));
	await page.fill("#search", "/^spin$/");
	await page.press("#search", "Enter");
	await settled(page);
	await tab(page, "Source").click();
	await page.getByRole("table", { name: "Source of spin" }).getByRole("row").first().waitFor();
	assert.ok(begun.length && !gone.includes(begun[0]), "it was asked for, and then no more");
	await page.unrouteAll({ behavior: "ignoreErrors" });
}));

test("callers are a tree that opens by keys and adds up", () => withPage({}, async (page) => {
	await open(page, fixedRange());
	await clickFrame(page, await inviting(page));
	const name = await firn(page, "selected");
	await tab(page, "Callers").click();
	const items = page.getByRole("tree", { name: "Callers" }).getByRole("treeitem");
	await items.first().waitFor();
	assert.match(await items.first().textContent(), /100 %/);
	assert.ok((await items.first().textContent()).includes(name));
	const before = await items.count();
	await items.first().focus();
	await page.keyboard.press("ArrowLeft");
	await page.waitForFunction(() => document.querySelectorAll(".callers [role=treeitem]").length === 1);
	await page.keyboard.press("ArrowRight");
	await page.waitForFunction((count) =>
		document.querySelectorAll(".callers [role=treeitem]").length === count, before);
}));
