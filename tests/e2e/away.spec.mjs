// SPDX-License-Identifier: Apache-2.0
/* away - the server refuses, goes and comes back: the picture stays, and is new again without a hand. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { AT, placeOf, run } from "./fixture.mjs";
import { query, send } from "./moments.mjs";
import { base, firn, open, picture, violations, withPage } from "./page.mjs";

const QUERY = "**/api/v1/query?*";
/* What the browser itself says of answers that were refused on purpose. */
const expected = (complaints, pattern) =>
	complaints.splice(0, complaints.length, ...complaints.filter((text) => !pattern.test(text)));

const running = new Set();
after(() => running.forEach((child) => child.kill("SIGKILL")));

async function server() {
	const child = spawn(process.env.FIRN, ["server", "--storage-path", process.env.FIRN_AWAY_STORAGE,
		"--http-address", base.host], { stdio: "ignore" });
	running.add(child);
	for (;;) {
		assert.equal(child.exitCode, null, "the server did not start");
		const answer = await fetch(new URL("-/ready", base)).catch(() => null);
		if (answer?.ok)
			return child;
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

async function stop(child, how) {
	const ended = once(child, "exit");
	child.kill(how);
	await ended;
	running.delete(child);
}

for (const colorScheme of ["light", "dark"])
	test(`a busy server is asked again when it says, and the old picture stays (${colorScheme})`,
		() => withPage({ colorScheme }, async (page, complaints) => {
			const child = await server();
			await open(page, placeOf("known"));
			const { root } = await firn(page, "profile");
			let asked = 0;
			const tooMany = { error: "too many queries", code: "busy" };
			await page.route(QUERY, (route) => ++asked &&
				route.fulfill({ status: 503, headers: { "retry-after": "3600" }, json: tooMany }));
			await page.keyboard.press("r");
			await page.getByRole("alert").getByText("too many queries").waitFor();
			/* The server's time and not the page's own, which is at most 30 s; it counts down meanwhile. */
			await page.getByRole("timer").getByText(/Trying again in (600|[1-5]\d\d) s/).waitFor();
			assert.equal((await firn(page, "profile")).root, root);
			assert.deepEqual(await violations(page), []);
			await picture(page, `away-busy-${colorScheme}`);
			await page.unroute(QUERY);
			const again = { status: 429, headers: { "retry-after": "1" }, json: { error: "again" } };
			await page.route(QUERY, (route) => ++asked === 2 ? route.fulfill(again) : route.continue());
			/* By hand once; then by itself. */
			await page.getByRole("button", { name: "Retry now" }).click();
			await page.getByRole("alert").waitFor({ state: "detached" });
			assert.ok(asked >= 3, `${asked} queries`);
			assert.equal((await firn(page, "profile")).root, root);
			expected(complaints, /\b(503|429)\b/);
			await stop(child, "SIGINT");
		}));

test("a server that is killed and started again on its port: said, state kept, picture new by itself",
	() => withPage({}, async (page, complaints) => {
		let child = await server();
		await open(page, `${placeOf("known")}&search=json`);
		const place = await firn(page, "place");
		const before = await firn(page, "profile");
		await stop(child, "SIGKILL");
		await page.keyboard.press("r");
		await page.getByRole("alert").getByText("The server does not answer.").waitFor();
		await page.getByRole("timer").waitFor();
		await picture(page, "away-gone");
		assert.equal((await firn(page, "profile")).root, before.root);
		await page.fill("#search", "deflate");
		await page.waitForFunction(() => window.__firn.search()?.functions === 1);
		const fresh = page.waitForResponse((response) =>
			response.url().includes("/api/v1/query?") && response.ok());
		child = await server();
		await fresh;
		await page.getByRole("alert").waitFor({ state: "detached" });
		await page.waitForFunction(() => !window.__firn.busy());
		assert.equal((await firn(page, "profile")).root, before.root);
		assert.deepEqual(await firn(page, "place"), { ...place, search: "deflate" });
		expected(complaints, /ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_SOCKET/);
		await stop(child, "SIGINT");
	}));

test("what could not be read is said, in the picture and in place of one", () => withPage({}, async (page) => {
	const storage = process.env.FIRN_AWAY_STORAGE;
	await run(process.env.FIRN, ["store", "compact", storage]);
	const part = path.join(storage, readdirSync(storage).find((name) => /^part-.*\.firn$/.test(name)));
	const bytes = readFileSync(part);
	for (let at = 64; at < bytes.length; at += 97)
		bytes[at] ^= 0x5a;
	writeFileSync(part, bytes);
	const child = await server();
	await page.goto(new URL(placeOf("known"), base).href);
	await page.getByRole("heading", { name: "No data that can be read" }).waitFor();
	await page.getByRole("status").getByText(/Part of the store could not be read/).waitFor();
	await picture(page, "away-unreadable");
	await send({ job: "later" }, AT.now, 10_000, [{ stack: ["main"], value: 50 }]);
	await open(page, query('job="later"', AT.now - 60_000, AT.now + 60_000));
	await page.locator(".status-doubts").getByText("some data could not be read").click();
	await page.getByRole("link", { name: "Status", exact: true }).click();
	await page.getByText(/set aside/).waitFor();
	await page.goto("about:blank"); /* the page asks again and again */
	await stop(child, "SIGINT");
}));
