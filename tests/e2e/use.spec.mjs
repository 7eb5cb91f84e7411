// SPDX-License-Identifier: Apache-2.0
/* The page by keys alone, by fingers, in other zones, colours and sizes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AT, compared, placeOf } from "./fixture.mjs";
import { clickFrame, firn, open, painted, picture, settled, slowed, withPage } from "./page.mjs";

const canvas = (page) => page.locator(".flame-base").screenshot();
const clipboard = { permissions: ["clipboard-read", "clipboard-write"] };

const pressing = (page) => async (...keys) => {
	for (const key of keys)
		await page.keyboard.press(key);
};

/* What has focus, as a reader finds it; every step has to show a ring. */
async function focused(page) {
	return page.evaluate(() => {
		const element = document.activeElement;
		return element.getAttribute("aria-label") ?? element.textContent.trim();
	});
}

test("a whole session by keys alone, and the focus is never lost", () => withPage(clipboard, async (page) => {
	await open(page, placeOf("grown"));
	const press = pressing(page);
	/* Through everything there is, and back at the start: no trap. */
	await page.evaluate(() => document.activeElement.blur());
	const stops = [];
	for (let at = 0; at < 80; at++) {
		await press("Tab");
		const stop = await page.evaluate(() => {
			const element = document.activeElement;
			if (element === document.body)
				return null;
			const box = element.getBoundingClientRect();
			const style = getComputedStyle(element);
			const around =
				getComputedStyle(element.closest(".search, .query-bar, .tree-proxy, .flame-host") ??
				element);
			const ring = [style, around].some(({ outlineStyle, outlineWidth, boxShadow }) =>
				(outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none");
			return { name: element.getAttribute("aria-label") ?? element.textContent.trim(), top: box.top,
				ring,
				graph: element.id === "graph" };
		});
		if (!stop)
			break;
		stops.push(stop);
	}
	assert.ok(stops.length > 15 && stops.length < 80, `${stops.length} stops`);
	assert.deepEqual(stops.filter(({ ring, graph }) => !ring && !graph).map(({ name }) => name), []);

	await press("e");
	assert.match(await focused(page), /^Label filter/);
	await page.fill("#query", "");
	await page.keyboard.type('{job="kn');
	await page.getByRole("option", { name: "known" }).waitFor();
	await press("ArrowDown", "Enter", "Enter");
	await page.waitForFunction(() => window.__firn.place().matchers === 'job="known"');
	await painted(page);
	await press("Escape");
	await page.evaluate(() => document.activeElement.blur());

	await press("/");
	await page.keyboard.type("deflate");
	await press("Enter");
	await settled(page);
	assert.equal(await firn(page, "focus"), "deflate");
	await page.locator("#graph").focus();
	await press("y");
	await page.waitForFunction(async () => await navigator.clipboard.readText() === "deflate");
	await press("c");
	await page.getByRole("heading", { name: "deflate" }).waitFor();
	await press("1");
	await page.waitForFunction(() => window.__firn.place().view === "flame");
	await press("t");
	await page.getByRole("dialog", { name: "Time range" }).waitFor();
	await press("Escape");
	assert.match(await focused(page), /^Time range/);
	await press("Control+k");
	await page.keyboard.type("compare");
	await press("Enter");
	await page.waitForFunction(() => window.__firn.place().view === "compare");
	await press("Control+k");
	await page.keyboard.type("side pane");
	await press("Enter", "Control+k");
	await page.getByRole("dialog", { name: "Commands" }).waitFor();
	await press("Escape");
	await page.getByRole("dialog", { name: "Commands" }).waitFor({ state: "detached" });
}));

test("keys that come before their part of the page is there are not lost, nor another part's", () =>
	withPage({}, async (page) => {
	await open(page, placeOf("grown"));
	/* A slow machine and a slow network: everything comes after the keys that are for it. */
	await slowed(page, 6);
	for (const late of ["**/api/v1/label**", "**/assets/**"])
		await page.route(late, async (route) => {
			await new Promise((resolve) => setTimeout(resolve, 700));
			await route.continue();
		});
	const press = pressing(page);
	const place = () => firn(page, "place");
	await press("e", "Control+a", "Delete");
	await page.keyboard.type('{job="kn');
	await press("ArrowDown", "Enter", "Enter");
	await page.waitForFunction(() => window.__firn.place().matchers === 'job="known"');
	await painted(page);
	await page.evaluate(() => document.activeElement.blur());
	await press("Control+k");
	await page.keyboard.type("compare");
	await press("Enter");
	assert.equal((await place()).view, "compare");
	await press("Control+k");
	await page.keyboard.type("view: flame");
	await press("Enter", "t", "Escape");
	assert.match(await focused(page), /^Time range/);
	assert.deepEqual([(await place()).view, (await place()).file], ["flame", ""]);
	await painted(page);
	await page.locator("#graph").focus();
	/* Two steps in, both undone at once, and not one more. */
	await press("ArrowDown", "Enter", "ArrowDown", "Enter", "Escape", "Escape");
	await page.waitForFunction(() => window.__firn.place().zoom === "");
	assert.deepEqual([(await place()).view, (await place()).matchers], ["flame", 'job="known"']);
}));

test("Escape closes what is open, also when it has lost the focus", () => withPage({}, async (page) => {
	await open(page, placeOf("known"));
	await clickFrame(page, await firn(page, "frame", "serve"));
	await page.locator("#graph").focus();
	for (const [key, role, name] of [["t", "dialog", "Time range"], ["x", "menu", "serve"]]) {
		await page.keyboard.press(key);
		const panel = page.getByRole(role, { name, exact: true });
		await panel.waitFor();
		await page.evaluate(() => document.activeElement.blur());
		await page.keyboard.press("Escape");
		await panel.waitFor({ state: "detached" });
		assert.equal(await firn(page, "focus"), "serve", `${name} was closed, and nothing else`);
	}
}));

test("the list of suggestions is a combobox: arrows choose, Escape closes, Tab leaves", () =>
	withPage({}, async (page) => {
	await open(page, placeOf("known"));
	await page.fill("#query", "");
	const field = page.locator("#query");
	await page.keyboard.type("{");
	const options = page.getByRole("listbox", { name: "Suggestions" }).getByRole("option");
	await options.first().waitFor();
	assert.equal(await field.getAttribute("aria-expanded"), "true");
	await page.keyboard.press("ArrowDown");
	const active = await field.getAttribute("aria-activedescendant");
	assert.equal(await page.locator(`#${active}`).getAttribute("aria-selected"), "true");
	await page.keyboard.press("Escape");
	assert.equal(await field.getAttribute("aria-expanded"), "false");
	await page.keyboard.press("Tab");
	assert.notEqual(await page.evaluate(() => document.activeElement.id), "query");
}));

test("times are local or UTC, everywhere at once, and the choice stays",
	() => withPage({ timezoneId: "Asia/Kathmandu" }, async (page) => {
		const clock = (ms) => new Date(ms).toISOString().slice(11, 19);
		await open(page, placeOf("known"));
		const range = () => page.locator("#range").innerText();
		assert.ok((await range()).includes(clock(AT.now - 60_000 + 345 * 60_000)), "Nepal is 5:45 ahead");
		await page.getByRole("button", { name: "Local time" }).click();
		assert.ok((await range()).includes(`${clock(AT.now + 120_000)} UTC`), await range());
		await page.reload();
		await painted(page);
		await page.keyboard.press("t");
		assert.ok((await page.getByLabel("From").inputValue()).includes(clock(AT.now - 60_000).slice(0, 5)));
		await page.getByRole("dialog", { name: "Time range" }).getByText("UTC").waitFor();
		await page.getByRole("button", { name: "Show", exact: true }).click();
		assert.equal((await firn(page, "place")).range.from, String(AT.now - 60_000));
	}));

test("a finger selects and zooms, two fingers pinch", () => withPage({ hasTouch: true }, async (page) => {
	await open(page, placeOf("known"));
	const frame = await firn(page, "frame", "serve");
	await page.touchscreen.tap(frame.x + 30, frame.y + 8);
	await settled(page);
	assert.equal(await firn(page, "selected"), "serve");
	assert.equal(await firn(page, "focus"), "serve");
	const before = await firn(page, "viewport");
	const session = await page.context().newCDPSession(page);
	const fingers = (type, ...xs) => session.send("Input.dispatchTouchEvent",
		{ type, touchPoints: xs.map((x, id) => ({ x, y: frame.y + 8, id })) });
	await fingers("touchStart", 500, 600);
	for (let step = 1; step <= 5; step++)
		await fingers("touchMove", 500 - 20 * step, 600 + 20 * step);
	await fingers("touchEnd");
	await settled(page);
	const after = await firn(page, "viewport");
	assert.ok(after.right - after.left < 0.6 * (before.right - before.left), "a pinch does not zoom");
}));

test("colours by package and by file have a legend that sums up", () => withPage({}, async (page) => {
	await open(page, placeOf("known"));
	for (const [name, shown] of [["Package", "json"], ["Source file", "deflate.cc"], ["Binary", "shop"],
		["Language", "native"]]) {
		await page.getByRole("button", { name: /^Colour/ }).click();
		await page.getByRole("option", { name }).click();
		await page.getByRole("list", { name: new RegExp(`^Colours by ${name}`, "i") }).getByText(shown,
			{ exact: true }).waitFor();
	}
}));

test("the map shows where one is and moves the view; it goes when everything is seen", () =>
	withPage({}, async (page) => {
	await open(page, placeOf("grown"));
	await page.waitForFunction(() => window.__firn.profile().count > 10_000);
	const some = (await firn(page, "frames")).find(({ x, width }) => width > 50 && width < 500 && x < 800);
	await clickFrame(page, some);
	const map = page.locator(".minimap");
	await map.waitFor();
	await picture(page, "minimap");
	const before = await firn(page, "viewport");
	const box = await map.boundingBox();
	await page.mouse.click(box.x + box.width - 20, box.y + 30);
	await settled(page);
	const after = await firn(page, "viewport");
	assert.ok(after.left > before.left);
	assert.ok(Math.abs((after.right - after.left) / (before.right - before.left) - 1) < 1e-6);
	await page.keyboard.press("M");
	await map.waitFor({ state: "detached" });
	await page.keyboard.press("M");
	await open(page, placeOf("known"));
	assert.equal(await map.count(), 0);
}));

for (const [name, options] of [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }]])
	test(`the same profile is the same picture, in ${name}`, () => withPage(options, async (page) => {
		await page.clock.install({ time: new Date(AT.now) });
		await open(page, placeOf("known"));
		const { text, width } = await page.evaluate(() => {
			const base = document.querySelector(".flame-base");
			const { data } = base.getContext("2d").getImageData(0, 0, base.width, 200);
			let bytes = "";
			for (let at = 0; at < data.length; at += 32_768)
				bytes += String.fromCharCode(...data.subarray(at, at + 32_768));
			return { text: btoa(bytes), width: base.width };
		});
		const data = Buffer.from(text, "base64");
		const pixel = (x, y) => [0, 1, 2].map((part) => data[4 * (y * width + Math.floor(x)) + part]);
		const host = await page.locator(".flame-host").boundingBox();
		const colour = (token) => page.evaluate((key) => {
			const text = getComputedStyle(document.documentElement).getPropertyValue(key).trim();
			return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
		}, token);
		/* Every box begins, ends and is coloured where its numbers say. */
		assert.deepEqual(pixel(host.width - 20, 9), await colour("--frame-root"));
		for (const named of ["serve", "deflate", "idle", "json_value"]) {
			const frame = await firn(page, "frame", named);
			const [left, right] = [frame.x - host.x, frame.x - host.x + frame.width].map(Math.round);
			const y = Math.round(frame.y - host.y) + 2;
			const inside = pixel(left + 1, y);
			assert.deepEqual(pixel(right - 2, y), inside, `${named} is of one colour`);
			assert.notDeepEqual(inside, await colour("--surface"));
			assert.deepEqual(pixel(right - 1, y), await colour("--surface"), `${named} ends at its gap`);
		}
		const seen = await canvas(page);
		await page.reload();
		await painted(page);
		assert.ok((await canvas(page)).equals(seen));
	}));

test("usable in forced colours, at 200 % and on a narrow window", () =>
	withPage({ forcedColors: "active" }, async (page) => {
	await open(page, placeOf("known"));
	await picture(page, "forced-colours");
	const pressed = page.getByRole("group", { name: "View" }).getByRole("button", { pressed: true });
	assert.notEqual(await pressed.evaluate((element) => getComputedStyle(element).outlineStyle), "none");
	const [a, b] = await Promise.all(["serve", "idle"].map((name) => firn(page, "frame", name)));
	assert.ok(a.width > b.width);
	for (const viewport of [{ width: 800, height: 500 }, { width: 400, height: 640 }]) {
		await page.setViewportSize(viewport);
		await open(page, compared);
		const wide = await page.evaluate(() => document.documentElement.scrollWidth);
		assert.ok(wide <= viewport.width, `${wide} of ${viewport.width} pixels`);
	}
}));
