// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { base, firn, open, painted, picture, withPage } from "./page.mjs";

const KB = 1024;

async function weigh(response) {
	const length = Number((await response.allHeaders())["content-length"]);
	return Number.isFinite(length) && length > 0 ? length : gzipSync(await response.body(), { level: 9 }).length;
}

test("the first load shows data without a click, within its budget", () => withPage({}, async (page) => {
	const assets = [];
	/* A worker that is started anew comes from the cache. */
	const weighed = new Set();
	await page.addInitScript(() => {
		const look = () => {
			if (!window.__firn?.profile() || !window.__firn.paint().count)
				requestAnimationFrame(look);
			else
				window.__seenAt = performance.now();
		};
		look();
		window.__shifts = [];
		new PerformanceObserver((list) => {
			for (const { value, hadRecentInput, sources } of list.getEntries())
				if (!hadRecentInput)
					window.__shifts.push([value, sources.map(({ node }) => node?.outerHTML)]);
		}).observe({ type: "layout-shift", buffered: true });
	});
	page.on("response", (response) => {
		if (/\.(js|css)$/.test(new URL(response.url()).pathname))
			assets.push(response);
	});
	await open(page);
	/* But for how far a slow answer is. */
	const asked = await page.evaluate(() => performance.getEntriesByType("resource")
		.filter(({ name, responseEnd }) => responseEnd <= window.__seenAt && !/^data:|\/queries\?/.test(name))
		.map(({ name }) => name));
	assert.ok(asked.length + 1 <= 8, `more requests to the first graph than 8: ${asked.join(" ")}`);
	const shown = await firn(page, "profile");
	assert.ok(shown.root > 0, "the graph is empty");
	assert.ok((await firn(page, "series")).sum > 0, "the strip is empty");
	assert.match(new URL(page.url()).searchParams.get("query"), /^[a-z_]+:/);
	/* A host is shown by program, the largest in words. */
	assert.deepEqual((await firn(page, "place")).groupBy, ["comm"]);
	/* At one moment: the page goes on by itself. */
	const [frames, said] = await page.evaluate(() => [window.__firn.frames(),
		[...document.querySelectorAll(".largest b")].map(({ textContent }) => textContent)]);
	const programs = frames.filter(({ depth }) => depth === 1).sort((a, b) => b.total - a.total)
		.map(({ name }) => name);
	assert.deepEqual(said, programs.slice(0, 3));
	const weigh_all = async (ending) => {
		let sum = 0;
		for (const asset of assets)
			if (asset.url().endsWith(ending) && !weighed.has(asset.url())) {
				weighed.add(asset.url());
				sum += await weigh(asset);
			}
		return sum;
	};
	const script = await weigh_all(".js");
	const style = await weigh_all(".css");
	assert.ok(script > 0 && script <= 80 * KB, `${script} bytes of script`);
	assert.ok(style > 0 && style <= 12 * KB, `${style} bytes of style`);
	/* Nothing that is there moves when the rest comes. */
	const shifts = await page.evaluate(() => window.__shifts);
	assert.ok(shifts.reduce((sum, [value]) => sum + value, 0) < 0.02, `layout shifts ${JSON.stringify(shifts)}`);
	await picture(page, "light");
}));

test("a reload from cache asks only for the page and the API", () => withPage({}, async (page) => {
	await open(page);
	const asked = [];
	page.on("response", (response) => {
		const { pathname } = new URL(response.url());
		if (pathname !== base.pathname && !pathname.includes("/api/") && !response.request().serviceWorker())
			asked.push([pathname, response.headers()["cache-control"] ?? ""]);
	});
	await page.reload();
	await painted(page);
	for (const [pathname, caching] of asked)
		assert.match(caching, /immutable/, pathname);
}));

test("the page forbids inline code and foreign sources, and still works", () => withPage({}, async (page) => {
	const response = await page.goto(base.href);
	const policy = response.headers()["content-security-policy"] ?? "";
	assert.match(policy, /default-src 'self'/);
	assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval/);
	await painted(page);
}));

/* As a proxy has it: below a path of its own, which it takes away. */
const PREFIX = "/tools/profiles";

test("below a path prefix every link and request stays below it", () => withPage({}, async (page, complaints) => {
	const asked = [];
	const proxy = createServer((from, to) => {
		asked.push(from.url);
		if (!from.url.startsWith(`${PREFIX}/`)) {
			to.writeHead(404).end();
			return;
		}
		const { method, headers } = from;
		const address = new URL(from.url.slice(PREFIX.length), base);
		from.pipe(request(address, { method, headers: { ...headers, host: base.host } }, (answer) => {
			to.writeHead(answer.statusCode, answer.headers);
			answer.pipe(to);
		}));
	});
	await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
	try {
		const home = `http://127.0.0.1:${proxy.address().port}${PREFIX}/`;
		await page.goto(home);
		await painted(page);
		assert.ok(page.url().startsWith(`${home}?query=`), page.url());
		await page.goto(`${home}status`);
		await page.getByRole("heading", { level: 1, name: "Status" }).waitFor();
		for (const link of await page.getByRole("link").all())
			assert.ok((await link.evaluate(({ href }) => href)).startsWith(home), await link.textContent());
		await page.getByRole("link", { name: "Settings" }).first().click();
		await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
		assert.equal(page.url(), `${home}settings`);
	} finally {
		await page.goto("about:blank");
		proxy.closeAllConnections();
		proxy.close();
	}
	assert.deepEqual(asked.filter((path) => !path.startsWith(`${PREFIX}/`)), []);
	complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.startsWith("request to another")));
}));

test("live refresh brings new data and keeps the reader's place", () => withPage({}, async (page) => {
	await open(page);
	const before = await firn(page, "profile");
	assert.equal((await firn(page, "place")).live, true);
	/* As long as there is nothing new, nothing is sent. */
	while ((await firn(page, "profile")).to_ms === before.to_ms) {
		await page.keyboard.press("r");
		await painted(page);
	}
	await page.click("#live");
	assert.equal(new URL(page.url()).searchParams.get("live"), "0");
}));

test("an empty range says so and offers where data is", () => withPage({}, async (page) => {
	await open(page);
	const { type } = await firn(page, "profile");
	await page.goto(new URL(`?query=${encodeURIComponent(type)}&from=1000000000000&to=1000000600000`, base).href);
	await page.getByRole("heading", { name: "No data in this range" }).waitFor();
	await page.getByRole("button", { name: /^Show / }).click();
	await page.waitForFunction(() => window.__firn.profile()?.root > 0);
}));

test("an error shows the server's words, keeps the old picture, and can be retried",
	() => withPage({}, async (page, complaints) => {
		await open(page, "?live=0");
		const resting = { status: 500, json: { error: "the store is resting", code: "internal" } };
		await page.route("**/api/v1/query?*", (route) => route.fulfill(resting));
		await page.waitForFunction(() => !window.__firn.busy());
		const { root } = await firn(page, "profile");
		await page.keyboard.press("r");
		await page.getByRole("alert").getByText("the store is resting").waitFor();
		assert.equal((await firn(page, "profile")).root, root);
		await page.unroute("**/api/v1/query?*");
		await page.getByRole("button", { name: "Retry" }).click();
		await page.getByRole("alert").waitFor({ state: "detached" });
		complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.includes("500")));
	}));
