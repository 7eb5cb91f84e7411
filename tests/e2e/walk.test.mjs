// SPDX-License-Identifier: Apache-2.0
/* What somebody does who sees the page for the first time, counted: no more than ten actions, no dead end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { firn, open, painted, picture, settled, withPage } from "./page.mjs";

test("from the first look to a link for a colleague in at most ten actions",
	() => withPage({ permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
		let actions = 0;
		const act = async (what) => {
			actions++;
			await what();
		};
		await act(() => open(page));
		const all = await firn(page, "profile");

		/* One process: its name into the query. */
		await act(() => page.getByRole("combobox", { name: /^Label filter/ }).fill('comm="busy"'));
		await act(() => page.keyboard.press("Enter"));
		await page.waitForFunction((root) => window.__firn.profile().root < root, all.root);
		await painted(page);

		/* Its hottest function stands first in the table beside the graph. */
		const first = page.getByRole("grid", { name: "Functions" }).locator(".table-body .row").first();
		await first.getByText("spin").waitFor();
		await act(() => first.click());
		await act(() => page.getByRole("group", { name: "Side pane shows" }).getByRole("button",
			{ name: "Source" }).click());
		const hot = page.getByRole("table", { name: "Source of spin" }).locator(".heat-5, .heat-4, .heat-3");
		await hot.first().waitFor();
		assert.match((await hot.allInnerTexts()).join("\n"), /sink = sink \* 6364136223846793005ull/);
		await picture(page, "walk-source");

		/* Now and an hour ago: there was nothing then, and the page says so. */
		await act(() => page.getByRole("group", { name: "View" }).getByRole("button",
			{ name: "Compare" }).click());
		await page.waitForFunction(() => window.__firn.sides());
		await act(() => page.getByRole("button", { name: /^Compare to/ }).click());
		await act(() => page.getByRole("option", { name: "An hour before" }).click());
		await page.locator(".sentence").getByText(/^(A has no data|B uses|A and B use)/).waitFor();
		await settled(page);

		/* The address is the link: whoever opens it sees the same. */
		const link = page.url();
		assert.ok(actions <= 10, `${actions} actions`);
		assert.ok(link.length < 2000);
		const colleague = await page.context().newPage();
		await colleague.goto(link);
		await painted(colleague);
		assert.deepEqual(await firn(colleague, "place"), await firn(page, "place"));
		assert.ok(await firn(colleague, "sides"));
	}));
