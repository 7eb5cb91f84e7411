// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { firn, fixedRange, open, withPage } from "./page.mjs";

test("a slow answer shows how far it is; Cancel ends the query and keeps the picture",
	() => withPage({}, async (page) => {
		await open(page, fixedRange());
		const { root } = await firn(page, "profile");
		await page.route("**/api/v1/query?*", () => undefined); // no answer, ever
		const ended = page.waitForEvent("requestfailed", (request) => request.url().includes("/api/v1/query?"));
		await page.keyboard.press("r");
		const note = page.getByRole("status").filter({ has: page.getByRole("button", { name: "Cancel" }) });
		await note.waitFor();
		const said = await note.textContent();
		await page.waitForFunction((old) =>
			document.querySelector(".progress-note")?.textContent !== old, said);
		await page.getByRole("button", { name: "Cancel" }).click();
		await note.waitFor({ state: "detached" });
		await page.waitForFunction(() => !window.__firn.busy());
		await ended;
		assert.equal((await firn(page, "profile")).root, root);
	}));
