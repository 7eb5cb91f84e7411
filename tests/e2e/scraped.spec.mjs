// SPDX-License-Identifier: Apache-2.0
/* Who is scraped, as the page shows it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { base, withPage } from "./page.mjs";

test("scraped targets: how it went, why not, under which labels, and who is left out by which rule", () =>
	withPage({}, async (page) => {
		await page.goto(new URL("targets", base).href);
		const table = page.getByRole("region", { name: "Who is scraped" });
		const rows = table.getByRole("row");
		const up = rows.filter({ hasText: 'team="store"' });
		await up.getByText("Up", { exact: true }).waitFor();
		assert.match(await up.textContent(), /itself · process_cpu.*ago.*took \d.*none/);
		const down = rows.filter({ hasText: 'team="nobody"' });
		assert.match(await down.textContent(), /Down.*connect to.*refused/i);
		await up.locator("summary").click();
		await up.getByText(/http:\/\/.*\/debug\/pprof\/profile\?seconds=2/).waitFor();
		await up.getByText(/__scrape_interval__="2s"/).waitFor();
		const failure = /listed: file_sd_configs of line \d+ fails.*list\.json/;
		await page.getByRole("alert").getByText(failure).waitFor();

		const filter = page.getByRole("searchbox", { name: "Filter the scraped targets" });
		await filter.fill("down nobody");
		await up.waitFor({ state: "detached" });
		assert.equal(await rows.count(), 2);
		await filter.fill("");

		await page.getByText("1 profile is left out by the rules").click();
		const dropped = page.getByRole("region", { name: "Who is left out" }).getByRole("row").nth(1);
		assert.match(await dropped.textContent(), /itself.*team="hidden".*relabel_configs line \d+: drop/);
		if (process.env.FIRN_SHOT) await page.screenshot({ path: process.env.FIRN_SHOT });
	}));
