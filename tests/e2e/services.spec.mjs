// SPDX-License-Identifier: Apache-2.0
/* Two services of a host: the list that the page opens on, the way to a flame graph, and lanes of their threads. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { base, firn, picture, violations, withPage } from "./page.mjs";

const TYPE = "on_cpu:samples:count:cpu:nanoseconds:delta";
const [CHECKOUT, CART] = JSON.parse(process.env.FIRN_SERVICES ?? '["checkout", "cart"]');
const THREADS = JSON.parse(process.env.FIRN_THREADS ?? "[]");
const placeOf = (more) => `?query=${encodeURIComponent(`${TYPE}{service_name="${CHECKOUT}"}`)}${more}`;

/* Names may be read for long: programs of others start all the time, and the range ends now. */
const seen = (page) => page.waitForFunction(() => window.__firn?.profile()?.root > 0 && !window.__firn.busy() &&
	(window.__firn.paint().count > 0 || !window.__firn.viewport()));

async function openList(page) {
	await page.goto(base.href);
	const table = page.getByRole("region", { name: "Services" });
	await table.getByRole("row").nth(2).waitFor();
	return table;
}
const rowOf = (table, name) =>
	table.getByRole("row").filter({ has: table.page().getByRole("link", { name, exact: true }) });

test("where several services send, the page opens on them: cores, trend, share, sender, age", () =>
	withPage({}, async (page) => {
		const answer = page.waitForResponse((response) => response.url().includes("/api/v1/services"));
		let kept; // the table asks again and again, and is to show what `answer` says
		await page.route("**/api/v1/services?*", async (route) => {
			kept ??= await route.fetch();
			await route.fulfill({ response: kept });
		});
		const table = await openList(page);
		assert.equal(new URL(page.url()).pathname, `${base.pathname}services`);
		const { services, from_ms, to_ms, step_ms } = await (await answer).json();
		const listed = await table.getByRole("rowheader").locator("a").allTextContents();
		assert.deepEqual(listed, services.map(({ service }) => service), "the largest first");
		for (const name of [CHECKOUT, CART]) {
			const row = rowOf(table, name);
			const cells = await row.getByRole("cell").allTextContents();
			const known = services.find(({ service }) => service === name);
			const off = Math.abs(Number(cells[0]) - known.cores_mean);
			assert.ok(off <= 0.0006 + 0.006 * known.cores_mean, cells[0]);
			assert.ok(Math.abs(parseFloat(cells[2]) - 100 * known.share) <= 0.051 + known.share, cells[2]);
			assert.match(cells[3], /^firn\/\d/);
			assert.match(cells[4], /ago$/);
			/* While the last step is not over, nothing is drawn of a service that began in it. */
			const isOver = from_ms + known.cores.length * step_ms <= to_ms;
			const isKnown = known.cores.slice(0, isOver ? undefined : -1).some((cores) => cores !== null);
			assert.equal(await row.locator(".trend polyline").count() > 0, isKnown, "a trend is drawn");
			assert.match(await row.getByRole("rowheader").textContent(), /CPU$/);
		}
		const shares = services.reduce((sum, { share }) => sum + share, 0);
		assert.ok(Math.abs(shares - 1) < 1e-6, `shares add up to ${shares}`);
		assert.deepEqual(await violations(page), []);
		await picture(page, "services");

		await page.getByRole("searchbox", { name: "Filter the services" }).fill(CHECKOUT.toUpperCase());
		await rowOf(table, CART).waitFor({ state: "detached" });
		assert.equal(await table.getByRole("row").count(), 2);
	}));

test("a service opens as a flame graph of its own, and the host is a click away", () =>
	withPage({}, async (page) => {
		const table = await openList(page);
		await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Profiles" }).click();
		await seen(page);
		assert.deepEqual((await firn(page, "place")).groupBy, ["comm"]);
		assert.equal((await firn(page, "place")).matchers, "");
		await page.goBack();
		await rowOf(table, CHECKOUT).getByRole("link").click();
		await seen(page);
		assert.equal((await firn(page, "place")).matchers, `service_name="${CHECKOUT}"`);
		const whole = await firn(page, "profile");
		assert.ok(whole.root > 0);
		await page.goBack();
		await table.getByRole("row").nth(1).waitFor();
		await page.goForward();
		await seen(page);
		/* The logo starts anew. */
		await page.getByRole("link", { name: /^firn/ }).click();
		await page.getByRole("heading", { level: 1, name: "Services" }).waitFor();
	}));

/* The names of the lanes that are there, once they are. */
async function lanesOf(page, label) {
	await page.goto(new URL(placeOf(`&view=timeline&lanes=${label}`), base).href);
	await seen(page);
	await page.locator(".timeline-names button").first().waitFor();
	await page.waitForFunction(() => !window.__firn.busy());
	return page.locator(".timeline-names .lane-name").allTextContents();
}

test("lanes are the threads that there are, by number, by name and by the CPU that they ran on", () =>
	withPage({}, async (page) => {
		assert.equal(THREADS.length, 2);
		const numbers = (await lanesOf(page, "thread_id")).map((name) => Number(name.match(/\d+$/)?.[0]));
		assert.deepEqual(numbers.toSorted((a, b) => a - b), THREADS.toSorted((a, b) => a - b));
		await picture(page, "lanes");
		const names = await lanesOf(page, "thread_name");
		assert.equal(names.length, 2, `${names}`);
		assert.ok(names.some((name) => name.endsWith("helper")), `${names}`);
		const cpus = (await lanesOf(page, "cpu")).map((name) => Number(name.match(/\d+$/)?.[0]));
		assert.ok(cpus.length > 0 && cpus.every((cpu) => Number.isInteger(cpu) && cpu < 4096), `${cpus}`);
		assert.equal(new Set(cpus).size, cpus.length);
		/* A lane opens into the stacks of its thread; the largest one is open, and closes. */
		await lanesOf(page, "thread_name");
		const { lane } = await firn(page, "place");
		await page.locator(".timeline-names button").filter({ hasText: "helper" }).click();
		await page.waitForFunction((old) => window.__firn.place().lane !== old && !window.__firn.busy(), lane);
		assert.match((await firn(page, "place")).lane, /^(none|=helper)$/);
	}));
