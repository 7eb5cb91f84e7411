// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { clickFrame, fixedRange, inviting, open, picture, settled, violations, withPage } from "./page.mjs";

for (const colorScheme of ["light", "dark"])
	test(`every view is accessible in ${colorScheme}`, () => withPage({ colorScheme }, async (page) => {
		const query = fixedRange();
		await open(page, query);
		assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
		assert.deepEqual(await violations(page), [], "graph");
		await picture(page, colorScheme);
		await clickFrame(page, await inviting(page));
		await page.getByRole("button", { name: "Details", exact: true }).click();
		assert.deepEqual(await violations(page), [], "details");
		await picture(page, `details-${colorScheme}`);
		await page.keyboard.press("t");
		assert.deepEqual(await violations(page), [], "range");
		await page.keyboard.press("Escape");
		await page.getByRole("combobox").click();
		await page.getByRole("option").first().waitFor();
		assert.deepEqual(await violations(page), [], "completion");
		await open(page, `${query}&view=table&search=a&sum_by=comm`);
		assert.deepEqual(await violations(page), [], "table");
		await page.evaluate(() => document.activeElement.blur());
		await page.keyboard.press("?");
		await page.getByRole("dialog").waitFor();
		assert.deepEqual(await violations(page), [], "help");
	}));

test("the theme follows the system, toggles at once, and is remembered",
	() => withPage({ colorScheme: "light" }, async (page) => {
		await open(page);
		const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
		const corner = async () => (await page.locator(".flame-base").screenshot()).toString("base64");
		const light = await corner();
		await page.click("#theme");
		await settled(page);
		assert.equal(await theme(), "dark");
		assert.notEqual(await corner(), light, "the canvas kept its colours");
		await page.reload();
		assert.equal(await theme(), "dark");
		await page.click("#theme");
		assert.equal(await theme(), "light");
		await page.emulateMedia({ colorScheme: "dark" });
		await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
	}));

/* What may reach beyond the window: it scrolls by itself, or is for screen readers. */
const SCROLLED = ".crumbs, .legend, .line-keys, .function-table, .pane-body, .sr-only";

async function assertNothingCutOff(page, what) {
	const scrolls = await page.evaluate(() =>
		document.documentElement.scrollWidth > innerWidth || document.body.scrollHeight > innerHeight);
	assert.ok(!scrolls, `the page scrolls ${what}`);
	const outside = await page.evaluate((scrolled) => [...document.querySelectorAll("button, input, a")]
		.filter((element) => element.checkVisibility() && !element.closest(scrolled))
		.filter((element) => {
			const box = element.getBoundingClientRect();
			return box.left < 0 || box.right > innerWidth + 0.5 || box.bottom > innerHeight + 0.5;
		}).map((element) => element.getAttribute("aria-label") ?? element.textContent), SCROLLED);
	assert.deepEqual(outside, [], what);
}

/* What people write has any length. */
const LABEL = "a_label_that_somebody_named_in_full_sentences_and_nobody_shortened";
const LONG = [
	`&group_by=comm,${LABEL},container_name&sum_by=${LABEL}`,
	`&search=${encodeURIComponent("/(/")}&demangle=none&colour=function`,
	`&view=${LABEL}&colour=${LABEL}&zoom=9.abcdef`,
];

for (const [width, height] of [[1280, 720], [900, 700], [600, 900]]) {
	const viewport = { width, height };
	test(`at ${width}x${height} nothing is cut off`, () => withPage({ viewport }, async (page) => {
		const query = fixedRange();
		await open(page, query);
		await assertNothingCutOff(page, "at first");
		const graph = await page.locator(".flame-host").boundingBox();
		assert.ok(graph.height >= height * 0.5, `the graph has ${graph.height} of ${height} pixels`);
		await picture(page, `${width}x${height}`);
		for (const more of LONG) {
			await open(page, query + more);
			await assertNothingCutOff(page, `with ${more}`);
		}
		const days = `&from=${Number(new URLSearchParams(query).get("to")) - 100 * 3600_000}`;
		await open(page, query.replace(/&from=\d+/, days));
		await assertNothingCutOff(page, "with a range of days");
	}));
}

test("at 400 pixels the tools fold into one button, which opens them all", () =>
	withPage({ viewport: { width: 400, height: 800 } }, async (page) => {
		await open(page, fixedRange());
		await assertNothingCutOff(page, "at 400 pixels");
		assert.ok(!(await page.locator("#add-filter").isVisible()));
		await page.getByRole("button", { name: "Tools" }).click();
		/* What an icon means stands beside it, not over the next one. */
		const tall = await page.locator(".tools-folded button").evaluateAll((buttons) => buttons
			.filter(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight + 1)
			.map(({ ariaLabel, textContent }) => ariaLabel ?? textContent));
		assert.deepEqual(tall, []);
		await page.getByRole("button", { name: "Invert" }).click();
		await page.waitForFunction(() => window.__firn.place().inverted && !window.__firn.busy());
		await page.getByRole("button", { name: /^Group by/ }).click();
		await page.getByRole("option", { name: "node" }).click();
		await page.waitForFunction(() => window.__firn.place().groupBy.includes("node"));
		await assertNothingCutOff(page, "with the tools open");
		assert.deepEqual(await violations(page), []);
		await picture(page, "400x800");
	}));
