// SPDX-License-Identifier: Apache-2.0
/* What is not all there is said where a reader looks, whatever is pointed at: thin, cut and lost samples. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { query, send, sendAs } from "./moments.mjs";
import { clickFrame, firn, open, picture, violations, withPage } from "./page.mjs";

const AT = Math.floor(Date.now() / 1000) * 1000 - 60_000;
const place = (node) => query(`node="${node}"`, AT - 60_000, Date.now() + 600_000);
/* Deeper than any stack that is kept. */
const DEEP = Array.from({ length: 600 }, (_, level) => `level_${level}`);

before(async () => {
	await send({ node: "cut" }, AT, 10_000, [{ stack: ["main", "serve"], value: 75 }, { stack: DEEP, value: 25 }]);
	await send({ node: "thin" }, AT, 10_000, [{ stack: ["main", "serve"], value: 12 }]);
	await sendAs({ "firn-lost-samples": "77" }, { node: "lossy" }, AT, 10_000,
		[{ stack: ["main"], value: 100 }]);
});

const line = (page) => page.locator(".status-doubts");
const told = (page) => page.getByRole("region", { name: "About these numbers" });

test("cut stacks: their share stays in sight, and why is a click away", () => withPage({}, async (page) => {
	await open(page, place("cut"));
	await line(page).getByText("25.0 % of stacks are cut").waitFor();
	await clickFrame(page, await firn(page, "frame", "serve"));
	await line(page).getByText("25.0 % of stacks are cut").click();
	await told(page).getByText(/callers are not known: too deep \(25\.0 %\)/).waitFor();
	assert.deepEqual(await violations(page), []);
	await picture(page, "doubts-cut");
}));

test("a handful of samples is called thin", () => withPage({ viewport: { width: 600, height: 900 } }, async (page) => {
	await open(page, place("thin"));
	await line(page).getByText("only 12 samples").click();
	await told(page).getByText("Statistically thin: 12 samples, fewer than 30.").waitFor();
	await picture(page, "doubts-thin");
}));

test("samples that a sender lost are told of what it may have sent, and of nothing else",
	() => withPage({}, async (page) => {
		const heard = page.waitForResponse(/api\/v1\/targets/);
		await open(page, place("cut"));
		await (await heard).finished();
		assert.equal(await line(page).getByText("samples were lost").count(), 0);
		await open(page, place("lossy"));
		await line(page).getByText("samples were lost").click();
		await told(page).getByText("lossy lost samples in this range: 77 since it started.").waitFor();
		await picture(page, "doubts-lost");
		await told(page).getByRole("link", { name: "Targets" }).click();
		await page.getByRole("heading", { level: 1, name: "Targets" }).waitFor();
	}));
