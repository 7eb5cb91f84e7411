// SPDX-License-Identifier: Apache-2.0
/* What debuginfod_consent_test has prepared: whether names may be fetched is asked once; then they come. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { base, firn, open, picture, settled, violations, withPage } from "./page.mjs";

const TYPE = "process_cpu:samples:count:cpu:nanoseconds:delta";
const place = `?query=${encodeURIComponent(TYPE)}&from=now-15m&to=now`;
const programs = process.env.FIRN_PROGRAMS.split(" ");
const server = process.env.FIRN_ASKED;
const tail = Number(process.env.FIRN_TAIL);
const number = (text) => Number(text.replace(/[^0-9.]/g, ""));

const question = (page) => page.getByRole("button", { name: "Fetch names?" });
const region = (page) => page.getByRole("region", { name: "Names from the distribution" });

test("unnamed leaves and frames are told, and a refusal is remembered", () => withPage({}, async (page) => {
	await open(page, place);
	const told = page.getByRole("button", { name: /^Leaf unnamed/ });
	const [, leaf, some] = /Leaf unnamed ([0-9.]+).*some frame unnamed ([0-9.]+)/.exec(await told.textContent());
	const answer = await (await fetch(new URL(`api/v1/query${place}&format=json`, base))).json();
	const share = (value) => (100 * value) / answer.total;
	assert.ok(Math.abs(Number(leaf) - share(answer.unresolved.leaf)) < 0.06, `${leaf}: ${answer.unresolved.leaf}`);
	const { value } = answer.unresolved;
	assert.ok(Math.abs(Number(some) - share(value)) < 0.06, `${some}: ${value}`);
	await question(page).click();
	await region(page).getByText(server).waitFor();
	await region(page).getByText(/build IDs/).waitFor();
	assert.deepEqual(await violations(page), []);
	await picture(page, "consent");
	await region(page).getByRole("button", { name: "No", exact: true }).click();
	await region(page).getByText(/is not asked/).waitFor();
	await question(page).waitFor({ state: "detached" });
	await page.reload();
	await page.waitForFunction(() => window.__firn?.profile());
	await told.click();
	await region(page).getByText(/is not asked/).waitFor();
	assert.equal(await question(page).count(), 0, "it is asked again");
	await page.goto(new URL("debuginfo", base).href);
	await region(page).getByText(/is not asked/).waitFor();
}));

test("binaries by their share of CPU, the tail folded, each with what to do", () =>
	withPage({ permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
		await page.goto(new URL("debuginfo", base).href);
		const rows = page.getByRole("region", { name: "Missing symbols" }).locator("tbody tr");
		await rows.first().waitFor();
		const shares = (await rows.locator("td:nth-child(2)").allTextContents()).map(number);
		assert.deepEqual(shares, [...shares].sort((a, b) => b - a));
		/* Each program's part of all samples, without names: gzip 200, programs 10 to 100, the tail 1. */
		const whole = 200 + 550 + tail;
		const all = 1 + programs.length + tail;
		assert.ok(Math.abs(shares[0] - (100 * 200) / whole) < 0.06, `${shares[0]}`);
		const sum = shares.reduce((all, each) => all + each, 0);
		const last = shares.at(-1);
		assert.ok(sum > 94.5 && sum - last < 95.5, `what costs much is shown, and nothing else: ${shares}`);
		const first = rows.first();
		await first.getByText("package gzip").waitFor();
		await first.getByRole("button", { name: "Copy command" }).click();
		const copied = await page.evaluate(() => navigator.clipboard.readText());
		assert.match(copied, /install .*gzip-dbgsym/);
		assert.equal(copied, await first.locator("td:nth-child(4) code").textContent());
		await picture(page, "missing");
		const more = page.getByRole("button", { name: /^and \d+ more, each with at most/ });
		assert.equal(number(/and (\d+) more/.exec(await more.textContent())[1]), all - shares.length);
		await more.click();
		await page.waitForFunction((count) => document.querySelectorAll(
			"[aria-label='Missing symbols'] tbody tr").length === count, all);
	}));

test("consent brings the names, with their progress", () => withPage({}, async (page) => {
	await open(page, place);
	assert.equal(await firn(page, "frame", `hot_${programs[0]}`), null);
	await page.getByRole("button", { name: /^Leaf unnamed/ }).click();
	await region(page).getByRole("button", { name: /after all/ }).click();
	await region(page).getByText(new RegExp(`\\b${programs.length} of \\d+ here`)).waitFor();
	await region(page).getByRole("progressbar").waitFor();
	for (const name of programs)
		await page.waitForFunction((text) => window.__firn.frame(text), `hot_${name}`);
	await settled(page);
	await picture(page, "fetched");
	await page.goto(new URL("debuginfo", base).href);
	await page.getByText("/opt/program0").first().waitFor();
	const names = await page.getByRole("region", { name: "Symbols that are here" }).locator("tbody tr").count();
	assert.ok(names >= programs.length, `${names} files`);
}));
