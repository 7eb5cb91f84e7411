// SPDX-License-Identifier: Apache-2.0
/* A host on which no program says which service it is: programs come first, the list of services is a click away. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { base, firn, withPage } from "./page.mjs";

test("without named services the page opens on the programs, and the list of services is one click away", () =>
	withPage({}, async (page) => {
		await page.goto(base.href);
		await page.waitForFunction(() => window.__firn?.profile()?.root > 0 && window.__firn.paint().count > 0);
		assert.deepEqual((await firn(page, "place")).groupBy, ["comm"]);
		await page.getByRole("banner").getByRole("link", { name: "Services" }).click();
		await page.getByRole("region", { name: "Services" }).getByRole("row").nth(1).waitFor();
		await page.goBack();
		await page.waitForFunction(() => window.__firn.paint().count > 0);
		assert.deepEqual((await firn(page, "place")).groupBy, ["comm"]);
	}));
