// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { base, firn, open, painted, picture, violations, withPage } from "./page.mjs";

const PAGES = [
	["services", "Services", "Newest profile"],
	["targets", "Targets", "Sending"],
	["debuginfo", "Debug information", "Here"],
	["status", "Status", "Running queries"],
	["settings", "Settings", "How the page looks"],
];
const goTo = (page, name) => page.goto(new URL(name, base).href);
const titled = (page, title) => page.getByRole("heading", { level: 1, name: title }).waitFor();

for (const colorScheme of ["light", "dark"])
	test(`every page opens by its address, and is accessible in ${colorScheme}`, () =>
		withPage({ colorScheme }, async (page) => {
			for (const [name, title, telling] of PAGES) {
				await goTo(page, name);
				await titled(page, title);
				await page.getByText(telling, { exact: true }).first().waitFor();
				assert.deepEqual(await violations(page), [], name);
				await picture(page, `page-${name}-${colorScheme}`);
			}
		}));

test("from the profiles to a page and back: one step, and the view is as it was", () =>
	withPage({}, async (page) => {
		await open(page, "?search=a");
		await page.getByRole("button", { name: "Table" }).click();
		const before = page.url();
		await page.click("#menu");
		await page.getByRole("link", { name: "Status" }).click();
		await titled(page, "Status");
		assert.equal(new URL(page.url()).pathname, `${base.pathname}status`);
		await page.getByRole("link", { name: "Targets" }).click();
		await titled(page, "Targets");
		await page.goBack();
		await titled(page, "Status");
		await page.goBack();
		await page.waitForFunction(() => window.__firn.place().search === "a");
		assert.equal(page.url(), before);
		await page.goForward();
		await page.getByRole("link", { name: "Profiles", exact: true }).click();
		await page.getByRole("grid").first().waitFor();
		assert.equal(page.url(), before);
	}));

test("targets: this host's agent, with what it sends and loses", () =>
	withPage({}, async (page) => {
		const lost = {
			lost: 1234,
			lost_ms: Date.now() - 60_000,
			errors: 2,
			last_error: "no room",
			last_error_ms: Date.now() - 1e6,
		};
		await page.route("**/api/v1/targets", async (route) => {
			const answer = await (await route.fetch()).json();
			answer.targets.push({ ...answer.targets[0], ...lost, labels: { node: "lossy" } });
			await route.fulfill({ json: answer });
		});
		await goTo(page, "targets");
		const row = page.getByRole("row", { name: /firn\/\d/ }).first();
		assert.match(await row.textContent(), /Sending.*\d+ s? ?ago|Sending.*ago/);
		assert.match(await row.textContent(), /\d in all/);
		assert.match(
			await page.getByRole("row", { name: /lossy/ }).textContent(),
			/1.234 samples lost.*2 requests failed.*no room/,
		);
	}));

test("debuginfo: what is missing comes with its command; uploads show how far they are", () =>
	withPage({}, async (page) => {
		await page.route("**/api/v1/debuginfo", async (route) => {
			const answer = await (await route.fetch()).json();
			answer.missing = [
				{
					build_id: "abc123",
					name: "/opt/x",
					code: "no_symbols",
					reason: "the file is stripped",
					command: "firn debuginfo upload /opt/x",
				},
			];
			answer.coming = [
				{ build_id: "def456", state: "receiving", bytes: 2 << 20, received: 1 << 20 },
			];
			await route.fulfill({ json: answer });
		});
		await goTo(page, "debuginfo");
		await page.getByText("firn debuginfo upload /opt/x").waitFor();
		await page.getByText("1.00 MiB of 2.00 MiB").waitFor();
		/* What ui_test sent. */
		await page.getByRole("row", { name: /busy/ }).first().waitFor();
	}));

test("status: what is asked can be stopped", () =>
	withPage({}, async (page) => {
		let queries = [
			{
				id: "slow",
				path: "/api/v1/query",
				query: "on_cpu{}",
				from_ms: 0,
				to_ms: 1,
				by: "127.0.0.1:1",
				started_ms: 0,
				took_ms: 4000,
				blocks_done: 1,
				blocks_all: 4,
				bytes_done: 1 << 20,
				bytes_all: 4 << 20,
				cancelled: false,
			},
		];
		let stopped = "";
		await page.route("**/api/v1/queries*", (route) => {
			if (route.request().method() !== "DELETE") return route.fulfill({ json: { queries } });
			stopped = new URL(route.request().url()).searchParams.get("id");
			queries = [];
			return route.fulfill({ json: { cancelled: 1 } });
		});
		await goTo(page, "status");
		await page.getByText("1.00 MiB of 4.00 MiB").waitFor();
		await page.getByRole("button", { name: "Cancel" }).click();
		await page.getByText("No query is running.").waitFor();
		assert.equal(stopped, "slow");
		const facts = await page.locator(".page-facts").allTextContents();
		assert.match(facts.join(" "), /Versionfirn \d.*Memory[\d.]+ MiB.*Kept15 days/);
	}));

test("status: where profiles are kept besides this disk, and what is wrong there, in words", () =>
	withPage({}, async (page) => {
		const status = await (await fetch(new URL("api/v1/status", base))).json();
		let more = {
			remote: { kind: "ClickHouse", answers: true, error: "" },
			bucket: {
				behind_s: 0, saved_ms: status.now_ms - 60_000, manifest: 3, parts: 2, fenced: false,
				store: "s3://profiles/firn", error: "",
			},
		};
		await page.route("**/api/v1/status", (route) => route.fulfill({ json: { ...status, ...more } }));
		await goTo(page, "status");
		const facts = page.getByRole("region", { name: "Store" }).locator(".page-facts");
		await facts.getByText("ClickHouse, which answers").waitFor();
		assert.match(await facts.textContent(),
			/Buckets3:\/\/profiles\/firn.*Copy in the bucketcomplete.*Last copied\d/);
		assert.equal(await page.getByRole("alert").count(), 0);
		more = {
			remote: { kind: "ClickHouse", answers: false, error: "connection refused" },
			bucket: { ...more.bucket, behind_s: 1500, error: "403 Forbidden" },
		};
		await page.reload();
		await page.getByRole("alert").getByText("ClickHouse does not answer").waitFor();
		const alerts = (await page.getByRole("alert").allTextContents()).join(" ");
		assert.match(alerts, /senders keep their profiles.*The last error: connection refused\./);
		assert.match(alerts, /The copy in the bucket is 25 min old: .*The last error: 403 Forbidden\./);
		assert.match(await facts.textContent(), /Copy in the bucketlacks the last 25 min/);
	}));

test("settings hold at once and after a reload, and can be forgotten", () =>
	withPage({ colorScheme: "light" }, async (page) => {
		await goTo(page, "settings");
		const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
		await page.getByRole("radio", { name: "Dark" }).check();
		assert.equal(await theme(), "dark");
		await page.getByRole("group", { name: "Motion" }).getByLabel("None").check();
		await page.reload();
		await titled(page, "Settings");
		assert.deepEqual(
			[await theme(), await page.evaluate(() => document.documentElement.dataset.motion)],
			["dark", "reduced"],
		);
		await page.getByText('firn.theme = "dark"').waitFor();
		await page.getByRole("button", { name: "Forget all of it" }).click();
		await page.getByText("Nothing: all settings are as they were at first.").waitFor();
		assert.equal(await theme(), "light");
	}));

test("commands and help are at every page, and the ways to all pages in sight on a telephone", () =>
	withPage({ viewport: { width: 400, height: 800 } }, async (page) => {
		for (const [name, title] of PAGES) {
			await goTo(page, name);
			await titled(page, title);
			for (const link of await page.locator(".page-tabs a").all()) {
				const { x, width } = await link.boundingBox();
				assert.ok(x >= 0 && x + width <= 400, `${await link.innerText()} is cut off`);
			}
			await page.keyboard.press("?");
			await page.getByRole("dialog", { name: "Keys and pointer" }).waitFor();
			await page.keyboard.press("Escape");
			await page.keyboard.press("Control+k");
			await page.getByRole("combobox", { name: "Command" }).fill("no such thing");
			await page.getByText(/functions and labels are found among the profiles/).waitFor();
			await page.keyboard.press("Escape");
		}
		await page.keyboard.press("Control+k");
		await page.keyboard.type("page targets");
		await page.keyboard.press("Enter");
		await titled(page, "Targets");
	}));

test("at 600 pixels no page is cut off", () =>
	withPage({ viewport: { width: 600, height: 900 } }, async (page) => {
		for (const [name, title] of PAGES) {
			await goTo(page, name);
			await titled(page, title);
			await page.locator(".page h2, .page table").first().waitFor();
			const { wide, text } = await page.evaluate(() => ({
				wide:
					document.documentElement.scrollWidth > innerWidth ||
					document.querySelector(".page").scrollWidth > innerWidth,
				text: document.querySelector("h1").textContent,
			}));
			assert.ok(!wide, `${text} scrolls sideways`);
			await picture(page, `page-${name}-600`);
		}
	}));

test("embedded, the page is the picture and a way out", () =>
	withPage({}, async (page) => {
		await open(page, "?embed=1");
		assert.equal(await page.locator(".header, .tools, .pane, .strip").count(), 0);
		const out = new URL(await page.getByRole("link", { name: "Open in firn" }).getAttribute("href"), base);
		assert.equal(out.searchParams.has("embed"), false);
		assert.deepEqual(await violations(page), []);
	}));

test("an address without a page says so and leads to those that there are", () =>
	withPage({}, async (page, complaints) => {
		const answer = await goTo(page, "nosuchpage");
		assert.equal(answer.status(), 404);
		await titled(page, "No such page");
		await page.getByText(`${base.pathname}nosuchpage`).waitFor();
		assert.deepEqual(await violations(page), []);
		await page.locator("main").getByRole("link", { name: "Profiles" }).click();
		await painted(page);
		assert.equal(new URL(page.url()).pathname, base.pathname);
		assert.equal(complaints.splice(0).length, 1, "the browser names the 404 once");
	}));
