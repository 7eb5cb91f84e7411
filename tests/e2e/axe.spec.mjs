// SPDX-License-Identifier: Apache-2.0
/* axe - every page, view, dialog and state by the rules of axe, in both themes, on a screen and on a telephone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { base, firn, fixedRange, inviting, open, settled, violations, withPage } from "./page.mjs";

const key = (...keys) => async (page) => {
	await page.evaluate(() => document.activeElement.blur());
	for (const each of keys)
		await page.keyboard.press(each);
};
const button = (name) => (page) => page.getByRole("button", { name }).first().click();
const tools = (name) => async (page) => {
	const fold = page.getByRole("button", { name: "Tools" });
	if (await fold.isVisible())
		await fold.click();
	await button(name)(page);
};
const pane = (name) => async (page) => {
	const frame = await inviting(page);
	await page.mouse.click(frame.x + 10, frame.y + frame.height / 2);
	await settled(page);
	if (!(await page.getByRole("button", { name: "Close the side pane" }).isVisible()))
		await page.keyboard.press("p");
	await page.getByRole("group", { name: "Side pane shows" }).getByRole("button", { name, exact: true }).click();
};

/* What is looked at: a name, more of the place's query, and what is done there. */
const STATES = [
	["graph", ""],
	["grouped", "&group_by=comm"],
	["chart of many lines", "&sum_by=comm"],
	["details", "", pane("Details")],
	["source", "", pane("Source")],
	["callers", "", pane("Callers")],
	["menu of a frame", "", async (page) => {
		const frame = await inviting(page);
		await page.mouse.click(frame.x + 10, frame.y + frame.height / 2, { button: "right" });
		await page.getByRole("menu").waitFor();
	}],
	["types", "", (page) => page.locator("header button[aria-haspopup]").first().click()],
	["range", "", key("t")],
	["labels", "", async (page) => {
		await page.locator("#query").click();
		await page.getByRole("option").first().waitFor();
	}],
	["wrong filter", "", async (page) => {
		await page.locator("#query").fill('comm=="a');
		await page.keyboard.press("Escape");
		await page.keyboard.press("Enter");
	}],
	["group by", "", tools(/^Group by/)],
	["filter", "", tools("Filter")],
	["filtered", "&filter=hide-frame:kind:kernel"],
	["share", "", tools("Share and download")],
	["help", "", key("?")],
	["palette", "", async (page) => {
		await page.keyboard.press("Control+k");
		await page.keyboard.type("view");
	}],
	["found", "&search=a"],
	["wrong expression", `&search=${encodeURIComponent("/(/")}`],
	["table", "&view=table"],
	["sandwich", "&view=sandwich"],
	["comparison", "&view=compare", (page) => page.waitForFunction(() =>
		!/Checking/.test(document.querySelector(".sentence")?.textContent ?? "Checking"))],
	["timeline", "&view=timeline"],
	["heatmap", "&view=heatmap"],
	["call graph", "&view=callgraph"],
];
const EMPTY = [
	["no data", "&from=1000000000000&to=1000000600000", /No data/],
	["nothing with these labels", "", /excludes everything/, '{comm="nobody"}'],
	["unknown type", "", /No profile type/, "", "nothing:samples:count:cpu:nanoseconds:delta"],
];
const PAGES = ["settings", "status", "targets", "debuginfo", "nosuchpage"];

for (const colorScheme of ["light", "dark"])
	for (const [width, height] of [[1440, 860], [400, 800]])
		test(`axe finds nothing in ${colorScheme} at ${width} pixels`, () =>
			withPage({ colorScheme, viewport: { width, height } }, async (page, complaints) => {
				const query = fixedRange();
				const wrong = [];
				const look = async (name) =>
					wrong.push(...(await violations(page)).map((text) => `${name}: ${text}`));
				for (const [name, more, act] of STATES) {
					await open(page, query + more);
					await act?.(page);
					await settled(page);
					await look(name);
				}
				const { type } = await firn(page, "profile");
				for (const [name, more, heading, matchers = "", other = type] of EMPTY) {
					const asked = `?query=${encodeURIComponent(other + matchers)}&live=0${more}`;
					await page.goto(new URL(asked, base).href);
					await page.getByRole("heading", { name: heading }).waitFor();
					await look(name);
				}
				for (const name of PAGES) {
					await page.goto(new URL(name, base).href);
					await page.getByRole("heading", { level: 1 }).waitFor();
					await look(name);
				}
				assert.deepEqual(wrong, []);
				/* The address without a page. */
				const others = complaints.filter((text) => !/404/.test(text));
				complaints.splice(0, complaints.length, ...others);
			}));
