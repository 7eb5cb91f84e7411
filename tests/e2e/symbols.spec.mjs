// SPDX-License-Identifier: Apache-2.0
/* What symbols_test has prepared, as a reader sees it: names, why there are none, and their coming. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { clickFrame, firn, open, picture, settled, withPage } from "./page.mjs";

const TYPE = "on_cpu:samples:count:cpu:nanoseconds:delta";
const place = (comm) => `?query=${encodeURIComponent(`${TYPE}{comm="${comm}"}`)}&from=now-15m&to=now`;
const full = (name) => `${name}::cart<unsigned int>::fill(unsigned int)`;
const [upload, ...uploadArguments] = JSON.parse(process.env.FIRN_UPLOAD);
const buildId = process.env.FIRN_BUILD_ID;

for (const name of ["gone", "boxed"])
	test(`${name}: names, source and system name`, () => withPage({}, async (page) => {
		await open(page, place(name));
		await page.waitForFunction((text) => window.__firn.frame(text), full(name));
		await settled(page);
		await clickFrame(page, await firn(page, "frame", full(name)));
		await page.getByRole("button", { name: "Details", exact: true }).click();
		const details = page.getByRole("region", { name: "Details" });
		await details.getByText(`_ZN${name.length}${name}4cartIjE4fillEj`).waitFor();
		await details.getByText(/shop\.cc:\d+$/).waitFor();
	}));

test("names in the form that was chosen, and the link keeps it", () => withPage({}, async (page) => {
	await open(page, place("gone"));
	await page.getByRole("button", { name: /^Names/ }).click();
	await page.getByRole("option", { name: /Simple/ }).click();
	await page.waitForFunction(() => window.__firn.frame("gone::cart::fill"));
	assert.equal(new URL(page.url()).searchParams.get("demangle"), "simple");
	await page.reload();
	await page.waitForFunction(() => window.__firn?.frame("gone::cart::fill"));
	assert.equal(await firn(page, "frame", full("gone")), null);
}));

test("a stripped program says why, and has its names when they have come", () => withPage({}, async (page) => {
	await open(page, place("late"));
	assert.equal(await firn(page, "frame", full("late")), null);
	await page.getByRole("button", { name: /^Leaf unnamed/ }).click();
	const pane = page.getByRole("region", { name: "Details" });
	await pane.getByText(buildId).waitFor();
	await picture(page, "unresolved");
	const unnamed = (await firn(page, "frames")).find((frame) => /^late\+0x/.test(frame.name));
	await clickFrame(page, unnamed);
	await pane.getByRole("note").getByText(/firn debuginfo upload/).waitFor();
	await promisify(execFile)(upload, uploadArguments);
	/* The view is live: the next picture has the names, of all samples that it shows. */
	await page.waitForFunction((name) => window.__firn.frame(name), full("late"));
	await settled(page);
	/* At one moment: the page goes on by itself. */
	const [own, all] = await page.evaluate((name) =>
		[window.__firn.frame(name).total, window.__firn.profile().root], full("late"));
	assert.ok(own > 0.9 * all, `${own} of ${all}`);
	await picture(page, "resolved");
}));
