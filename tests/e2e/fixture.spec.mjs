// SPDX-License-Identifier: Apache-2.0
/* Numbers of the page, on profiles that are known, beside what go tool pprof says of the same. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { AT, HOSTILE, MINUTE, TYPE, compared, comparedOf, placeOf, queryOf, run } from "./fixture.mjs";
import { deepAnswer, treeAnswer } from "./generated.mjs";
import { base, clickFrame, firn, open, painted, picture, settled, slowed, withPage } from "./page.mjs";

/* What go tool pprof says of what the page offers for download. */
async function goPprof(page, ...options) {
	await page.getByRole("button", { name: "Share and download" }).click();
	const link = await page.getByRole("link", { name: "pprof" }).getAttribute("href");
	await page.keyboard.press("Escape");
	const file = path.join(process.env.FIRN_FOLDER, "downloaded.pb.gz");
	writeFileSync(file, Buffer.from(await (await fetch(new URL(link, page.url()))).arrayBuffer()));
	const { stdout } = await run("go",
		["tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-unit=ns", ...options, file],
		{ maxBuffer: 1 << 26, env: { ...process.env, PPROF_BINARY_PATH: "/nonexistent" } });
	return stdout;
}

const number = (text) => Number(text.replace(/ns$/, ""));

test("every row of the table is what pprof -top says, and copies as text with tabs",
	() => withPage({ permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
		await open(page, `${placeOf("grown")}&view=table`);
		const table = page.getByRole("grid", { name: "Functions" });
		await table.focus();
		await page.keyboard.press("Control+c");
		const copied = await page.evaluate(() => navigator.clipboard.readText());
		const [head, ...lines] = copied.split("\n").map((line) => line.split("\t"));
		assert.deepEqual(head, ["Self", "Total", "Function", "Binary", "File"]);
		const shown = new Map(lines.map(([self, total, name]) => [name, `${self} ${total}`]));
		const said = new Map((await goPprof(page)).split("\n").map((line) =>
			/^ *(\d+(?:ns)?) +\S+ +\S+ +(\d+(?:ns)?) +\S+ +(.+)$/.exec(line)).filter(Boolean)
			.map(([, flat, cum, name]) => [name.replace(/ \(inline\)$/, ""),
				`${number(flat)} ${number(cum)}`]));
		assert.ok(shown.size > 300, `${shown.size} rows`);
		assert.deepEqual(shown, new Map([...shown.keys()].map((name) => [name, said.get(name)])));
		for (const title of ["Total", "Function", "Self"]) {
			await table.getByRole("button", { name: new RegExp(`^${title}`) }).click();
			await page.locator(`[aria-sort]:not([aria-sort=none])`).filter({ hasText: title }).waitFor();
		}
	}));

test("the share of a search is that of pprof -focus; recursion counts once; other numbers stay",
	() => withPage({}, async (page) => {
		for (const [job, text, pattern] of [
			["known", "json", "json"], ["known", "/^json_value$/", "^json_value$"],
				["grown", "/parse.*JSON/i", "(?i)parse.*json"],
			["grown", "cache", "cache"],
		]) {
			await open(page, placeOf(job));
			const before = await firn(page, "profile");
			await page.fill("#search", text);
			await page.waitForFunction(() => window.__firn.search()?.functions > 0);
			const { value } = await firn(page, "search");
			const [, part] = /accounting for (\d+)(?:ns)?,/.exec(await goPprof(page, `-focus=${pattern}`));
			assert.ok(Math.abs(value - Number(part)) <= 0.001 * before.root,
				`${job} ${text}: ${value} and ${part}`);
			assert.equal((await firn(page, "profile")).root, before.root);
			await page.fill("#search", "");
		}
	}));

test("n and N walk the matches and scroll each into view", () => withPage({}, async (page) => {
	await open(page, `${placeOf("grown")}&search=cache`);
	await settled(page);
	const host = await page.locator(".flame-host").boundingBox();
	const seen = [];
	for (const key of ["n", "n", "n", "n", "N"]) {
		await page.keyboard.press(key);
		await settled(page);
		const name = await firn(page, "selected");
		assert.match(name, /cache/);
		seen.push(name);
		const ring = await page.evaluate(() => window.__firn.cursor());
		assert.ok(ring.y >= host.y - 1 && ring.y + ring.height <= host.y + host.height + 1,
			`${name} is at ${ring.y}`);
	}
	assert.equal(seen[4], seen[2]);
}));

test("a function that takes half as much again is named first, and the others stay grey",
	() => withPage({}, async (page) => {
		const said = page.waitForResponse(/significance=1/);
		await open(page, compared);
		await (await said).finished();
		const rows = page.getByRole("grid", { name: "Changes" }).locator(".table-body .row");
		await rows.first().getByText("deflate").waitFor();
		assert.equal((await firn(page, "change", "deflate")).words, "▲ +50 %");
		for (const same of ["json::Parser::parse", "write_log", "idle"])
			assert.equal((await firn(page, "change", same)).words, "=", same);
		await page.locator(".sentence").getByText("deflate").waitFor();
		await page.waitForFunction(() => !window.__firn.busy());
		assert.equal(await page.getByRole("alert").count(), 0);
		await picture(page, "compare-known");
	}));

const wordsOf = (page) => page.getByRole("grid", { name: "Changes" }).locator(".table-body .row")
	.evaluateAll((rows) => Object.fromEntries(rows.map((row) =>
		[row.querySelector(".cell.name").textContent, row.querySelector(".cell.certain").textContent])));

test("graph, table and sentence agree on what is more than noise: before it is known, then, and while it is asked anew",
	() => withPage({}, async (page) => {
		let answer;
		const held = new Promise((resolve) => (answer = resolve));
		const hold = async (route) => {
			await held;
			await route.continue();
		};
		await page.route("**/api/v1/diff?*", hold);
		await page.goto(new URL(comparedOf("moved"), base).href);
		await page.getByRole("grid", { name: "Changes" }).locator(".table-body .row").nth(5).waitFor();
		await page.locator(".sentence").getByText("Checking what is more than noise").waitFor();
		assert.deepEqual(new Set(Object.values(await wordsOf(page))), new Set(["…"]));
		for (const name of ["deflate", "write_log", "idle"]) {
			const { step, verdict, doubt } = await firn(page, "change", name);
			assert.deepEqual([step, verdict, doubt], [0, "pending", "checking…"], name);
		}
		await picture(page, "compare-pending");
		answer();
		const sentence = page.locator(".sentence");
		await sentence.getByText(/^A and B use the same: .*Surely changed: (deflate|write_log)/).waitFor();
		const agree = async () => {
			const words = await wordsOf(page);
			const first = Object.entries(words).slice(0, 2);
			assert.deepEqual(new Set(first.map(([name]) => name)), new Set(["deflate", "write_log"]));
			assert.deepEqual(first.map(([, word]) => word), ["yes", "yes"]);
			assert.notEqual(words.idle, "yes");
			for (const [name, word] of Object.entries(words)) {
				const { step, verdict } = await firn(page, "change", name);
				assert.equal(verdict === "sure", word === "yes", name);
				assert.ok(step === 0 || verdict === "sure", `${name}: ${verdict}, colour ${step}`);
			}
			assert.equal((await firn(page, "change", "deflate")).step, -5);
			assert.ok((await firn(page, "change", "write_log")).step > 0);
			assert.doesNotMatch(await sentence.textContent(), /idle/);
		};
		await agree();
		/* Asked anew, and not answered yet: what was known stays. */
		await page.unroute("**/api/v1/diff?*");
		let again;
		const seen = new Promise((resolve) => (again = resolve));
		let release;
		const later = new Promise((resolve) => (release = resolve));
		await page.route("**/api/v1/diff?*", async (route) => {
			again();
			await later;
			await route.continue();
		});
		await page.keyboard.press("r");
		await seen;
		await agree();
		release();
		await page.waitForFunction(() => !window.__firn.busy());
		await agree();
		await picture(page, "compare-moved");
	}));

test("a sentence's numbers are the table's; what is of a function alone is called so",
	() => withPage({}, async (page) => {
		await page.goto(new URL(comparedOf("nested"), base).href);
		const sentence = page.locator(".sentence");
		await sentence.getByText("Surely changed: deflate itself ▲ +67 %").waitFor();
		assert.match(await sentence.textContent(), /json::Parser::parse ▼ −40 %/);
		const rows = page.getByRole("grid", { name: "Changes" }).locator(".table-body .row");
		const cells = await rows.evaluateAll((all) => Object.fromEntries(all.map((row) =>
			["name", "ratio"].map((column) => row.querySelector(`.cell.${column}`).textContent))));
		assert.equal(cells.deflate, "▲ +40 %");
		assert.equal(cells["json::Parser::parse"], "▼ −40 %");
	}));

test("a verdict does not wait for names that are still read: what has none is being checked, and asked for again",
	() => withPage({}, async (page) => {
		const isLate = ({ name }) => name === "deflate";
		let asked = 0, read;
		const wasRead = new Promise((resolve) => (read = resolve));
		await page.route("**/api/v1/diff?*", async (route) => {
			assert.equal(new URL(route.request().url()).searchParams.get("names_wait"), "1s");
			const response = await route.fetch();
			const answer = await response.json();
			if (!asked++)
				Object.assign(answer,
					{ pending: 2, functions: answer.functions.filter((row) => !isLate(row)) });
			else
				await wasRead;
			await route.fulfill({ response, headers: {}, json: answer });
		});
		await page.goto(new URL(comparedOf("moved"), base).href);
		await page.locator(".sentence").getByText("Surely changed: write_log").waitFor();
		const early = await firn(page, "change", "deflate");
		assert.deepEqual([early.step, early.verdict, early.doubt], [0, "pending", "checking…"]);
		assert.equal((await wordsOf(page)).deflate, "…");
		await page.locator(".sentence").getByText("Other names are still being read.").waitFor();
		read();
		/* Nobody touches anything. */
		await page.waitForFunction(() => window.__firn.change("deflate")?.verdict === "sure");
		assert.equal((await wordsOf(page)).deflate, "yes");
		assert.equal(asked, 2);
		assert.equal(await page.locator(".sentence").getByText("still being read").count(), 0);
	}));

test("swapping turns every sign around; each mode gives the numbers that it says", () => withPage({}, async (page) => {
	const changes = async (mode, more = "") => {
		await open(page, `${compared}&mode=${mode}${more}`);
		return Object.fromEntries(await Promise.all(["deflate", "serve", "idle"].map(async (name) =>
			[name, await firn(page, "change", name)])));
	};
	const rate = await changes("rate");
	assert.deepEqual([rate.deflate.a, rate.deflate.b], ["1.00 core", "1.50 cores"]);
	const raw = await changes("raw");
	assert.deepEqual([raw.deflate.a, raw.deflate.b, raw.deflate.words], ["10.0 s", "15.0 s", "▲ +50 %"]);
	const share = await changes("share");
	assert.deepEqual([share.deflate.a, share.deflate.b], ["33.3 %", "42.9 %"]);
	assert.equal(share.idle.words.slice(0, 1), "▼", "the others' share falls");
	await open(page, compared);
	await page.getByRole("button", { name: "Swap" }).click();
	await page.waitForFunction(() => window.__firn.change("deflate")?.words.startsWith("▼"));
	const swapped = await firn(page, "change", "deflate");
	assert.deepEqual([swapped.a, swapped.b, swapped.words], ["1.50 cores", "1.00 core", "▼ −33 %"]);
}));

test("the sandwich of a function that calls itself: callers give its total, callees and its own the same",
	() => withPage({}, async (page) => {
		await open(page, `${placeOf("known")}&view=sandwich&function=json_value`);
		const head = page.locator(".sandwich-head");
		await head.getByText("5.00 s").waitFor();
		await page.getByText("Callers (1)").click();
		const callers = page.locator(".nearest").first().getByRole("listitem");
		assert.deepEqual(await callers.allInnerTexts().then((texts) =>
			texts.map((text) => text.replace(/\s+/g, " "))),
			["100 % json::Parser::parse"]);
		await page.getByText("Callees (1)").click();
		const callees = page.locator(".nearest").last().getByRole("listitem");
		assert.deepEqual(await callees.allInnerTexts().then((texts) =>
			texts.map((text) => text.replace(/\s+/g, " "))),
			["40.0 % json_value"]);
		await head.getByText(/self 14\.\d %/).waitFor();
	}));

test("names that want to be markup, are endless, or run the other way are text", () => withPage({}, async (page) => {
	await open(page, placeOf("hostile"));
	const { root } = await firn(page, "profile");
	assert.ok(root > 0);
	const frames = await firn(page, "frames");
	assert.equal(frames.length, HOSTILE.length + 1);
	for (const frame of frames.slice(1)) {
		await page.mouse.move(frame.x + 20, frame.y + 5);
		await page.waitForFunction((name) => window.__firn.hovered() === name, frame.name);
		const box = await page.locator(".status").boundingBox();
		assert.ok(box.height <= 24, "the status line grew");
	}
	await page.mouse.click(frames[3].x + 20, frames[3].y + 5, { button: "right" });
	await page.keyboard.press("Escape");
	for (const view of ["&view=table", "&view=sandwich", ""]) {
		await open(page, placeOf("hostile") + view);
		assert.equal(await page.locator("img, .view script, .pane script").count(), 0);
		const { scrollWidth, scrollHeight } = await page.evaluate(() => document.documentElement);
		assert.ok(!(scrollWidth > 1600 || scrollHeight > 1000));
	}
	await page.locator(".pane").getByText("<script>alert(1)</script>").first().waitFor();
	/* A name from right to left leaves the number after it behind it, and as it is written. */
	const turned = await page.locator(".largest > span").evaluateAll((all) => all.filter((each) => {
		const [name, number] = [each.querySelector("b"), each.querySelector(".number")]
			.map((part) => part?.getBoundingClientRect());
		return number && number.left < name.right - 1;
	}).map((each) => each.textContent));
	assert.deepEqual(turned, []);
	await picture(page, "hostile");
}));

test("values of a unit without words of its own, and of none, are said with what they are", () =>
	withPage({ viewport: { width: 1000, height: 640 } }, async (page) => {
		const of = (type) =>
			`?query=${encodeURIComponent(type)}&from=${AT.now - MINUTE}&to=${AT.now + 2 * MINUTE}`;
		await open(page, of("energy:energy:microjoules:::delta"));
		assert.match(await page.locator(".sum").innerText(), /12\.3\sM microjoules\/s\s+123\sM microjoules/);
		await open(page, of("widgets:widgets::::delta"));
		assert.match(await page.locator(".sum").innerText(), /^1\s234\/s\s+12\s340$/);
		assert.match(await page.locator(".status").innerText(), /^2 frames · 2 functions · 1 report/);
		assert.match(await page.locator(".strip-reading").innerText(), /^mean 1\s234\/s$/);
	}));

test("the row of a label's value is no function: neither found as one, nor with numbers of one", () =>
	withPage({ viewport: { width: 1440, height: 860 } }, async (page) => {
		const span = `&from=${AT.now - 20 * MINUTE}&to=${AT.now + MINUTE}`;
		await open(page, `${queryOf("known")}${span}&group_by=job&search=n`);
		const word = (await page.locator(".found").innerText()).match(/^(\d+) functions? in (\d+) frames/);
		const told = await page.getByRole("columnheader", { name: /found/ }).innerText();
		assert.equal(word[1], told.match(/\((\d+) found\)/)[1], "the table counts others");
		const result = page.locator(".search-result");
		const [{ scrollWidth, clientWidth }, [field, value, next]] = [
			await result.evaluate(({ scrollWidth, clientWidth }) =>
				({ scrollWidth, clientWidth })),
			await Promise.all([page.locator(".search"), result,
				page.getByRole("button", { name: "Previous match" })].map((each) =>
				each.boundingBox())),
		];
		assert.ok(scrollWidth <= clientWidth && value.x >= field.x && value.x + value.width <= next.x + 1,
			"the share in the search field is cut");
		await clickFrame(page, (await firn(page, "frames")).find(({ depth }) => depth === 1));
		await page.getByRole("group", { name: "Side pane shows" }).getByRole("button", { name: "Details" })
			.click();
		const pane = page.locator(".details");
		await pane.getByText("Total here").waitFor();
		assert.equal(await pane.getByText(/all callers|Kind/).count(), 0);
	}));

test("on a telephone times have room below the heatmap, and lanes' names stand beside the bars", () =>
	withPage({ viewport: { width: 400, height: 800 } }, async (page) => {
		const boxes = (locator) => page.locator(locator).evaluateAll((all) => all.map((each) =>
			each.getBoundingClientRect()).map(({ left, right }) => ({ left, right })));
		const apart = (list) => list.every(({ left }, at) => !at || left >= list[at - 1].right);
		await open(page, `${placeOf("known")}&view=heatmap`);
		await page.locator(".heat-times span").first().waitFor();
		assert.ok(apart(await boxes(".heat-times span")), "times lie over each other");
		await page.goto(new URL(`${placeOf("known")}&view=timeline`, base).href);
		await page.locator(".timeline-names button").first().waitFor();
		const [host] = await boxes(".timeline .flame-host");
		assert.ok((await boxes(".timeline-names button")).every(({ right }) => right <= host.left + 1));
	}));

test("grouping by a label whose values are anything, and back to the zoom of before", () =>
	withPage({}, async (page) => {
	const span = `&from=${AT.now - 20 * MINUTE}&to=${AT.now + MINUTE}`;
	await open(page, `${queryOf("known")}${span}`);
	await clickFrame(page, await firn(page, "frame", "serve"));
	assert.equal(await firn(page, "focus"), "serve");
	await page.getByRole("button", { name: /^Group by/ }).click();
	await page.getByRole("option", { name: "team" }).click();
	await page.waitForFunction(() => window.__firn.frame("Größe 日本"));
	await settled(page);
	const { root } = await firn(page, "profile");
	const groups = (await firn(page, "frames")).filter(({ depth }) => depth === 1);
	assert.deepEqual(groups.map(({ name }) => name).sort(), ["(none)", "Größe 日本", "a \"b\", {c}"].sort());
	assert.equal(groups.reduce((sum, { total }) => sum + total, 0), root);
	await page.keyboard.press("Escape");
	await page.goBack();
	await page.waitForFunction(() => window.__firn.focus() === "serve");
}));

test("live, what has not changed is not sent again, and nothing is dimmed", () => withPage({}, async (page) => {
	/* Ticks of ten seconds come faster. */
	await page.addInitScript(() => {
		const real = window.setInterval;
		window.setInterval = (run, ms, ...more) => real(run, ms === 10_000 ? 250 : ms, ...more);
		window.__dimmed = 0;
		new MutationObserver((changes) => {
			window.__dimmed += changes.filter(({ target }) => target.matches?.("main.busy")).length;
		}).observe(document, { attributes: true, attributeFilter: ["class"], subtree: true });
	});
	await open(page, `${queryOf("known")}&from=now-2h&to=now`);
	const dimmed = await page.evaluate(() => window.__dimmed);
	const { count } = await firn(page, "paint");
	const seen = [];
	page.on("response", (response) => seen.push({
		path: new URL(response.url()).pathname, status: response.status(),
		bytes: Number(response.headers()["content-length"] ?? 0),
	}));
	const trees = () => seen.filter(({ path }) => path.endsWith("/query"));
	const enough = Date.now() + 60_000;
	while (trees().length < 6 && Date.now() < enough)
		await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
	/* Six ticks are a minute. */
	assert.ok(trees().length >= 6, JSON.stringify(seen));
	const bytes = seen.reduce((sum, each) => sum + each.bytes, 0) * 6 / trees().length;
	assert.ok(bytes < 50_000, `${bytes} bytes a minute`);
	assert.deepEqual(new Set(trees().map(({ status }) => status)), new Set([304]));
	assert.equal((await firn(page, "paint")).count, count, "it was painted anew");
	assert.equal(await page.evaluate(() => window.__dimmed), dimmed, "it was dimmed");
}));

test("a right click on the row of a label's value narrows to it", () => withPage({}, async (page) => {
	await open(page, `${placeOf("known")}&group_by=team`);
	const { total } = await firn(page, "frame", 'a "b", {c}');
	const box = await firn(page, "frame", 'a "b", {c}');
	await page.mouse.click(box.x + 20, box.y + 8, { button: "right" });
	await page.getByRole("menuitem", { name: /^Show only team=/ }).click();
	await page.waitForFunction((wanted) => window.__firn.profile()?.root === wanted, total);
	assert.equal((await firn(page, "place")).matchers, 'job="known", team="a \\"b\\", {c}"');
}));

test("an interpreter's frames are folded into the functions that they work for, until they are asked for",
	() => withPage({}, async (page) => {
		const frames = [["_start", 15, 1, 0], ["handle", 6, 2, 10], ["_PyEval_Vector", 15, 3, 30],
			["parse", 6, 4, 5], ["PyDict_GetItem", 15, 5, 20], ["memcpy", 1, 6, 7],
			["gc_collect", 15, 1, 3]];
		const body = treeAnswer(frames.map(([name, kind, depth, self]) => ({ name, kind, depth, self })));
		await page.route("**/api/v1/query?*", (route) =>
			route.fulfill({ body, contentType: "application/octet-stream" }));
		await page.setViewportSize({ width: 1440, height: 860 });
		await open(page, `${placeOf("known")}&group_by=comm`);
		/* The switch has room: what is chosen beside it is not cut for it. */
		const cut = await page.locator(".tools-end .control-value").evaluateAll((all) =>
			all.filter((each) => {
				const text = document.createRange();
				text.selectNodeContents(each);
				const { width } = text.getBoundingClientRect();
				return width > each.getBoundingClientRect().width + 0.01;
			}).map((each) => each.textContent));
		assert.deepEqual(cut, []);
		const read = async () => Object.fromEntries((await firn(page, "frames")).map(({ name, self, depth }) =>
			[name, [depth, self]]));
		const folded =
			{ total: [0, 0], handle: [1, 40], parse: [2, 25], memcpy: [3, 7], gc_collect: [1, 3] };
		assert.deepEqual(await read(), folded);
		await page.getByRole("button", { name: "C frames", pressed: false }).click();
		await page.waitForFunction(() => window.__firn.frame("PyDict_GetItem"));
		await painted(page);
		assert.deepEqual((await read()).PyDict_GetItem, [5, 20]);
		assert.equal(new URL(page.url()).searchParams.get("runtimes"), "1");
		await page.getByRole("button", { name: "C frames", pressed: true }).click();
		await page.waitForFunction(() => !window.__firn.frame("PyDict_GetItem"));
		await painted(page);
		assert.deepEqual(await read(), folded);
	}));

test("narrow frames that match a search keep their colours: outlines do not swallow them",
	() => withPage({ colorScheme: "light" }, async (page) => {
		await open(page, placeOf("grown"));
		await page.fill("#search", "/./");
		await page.waitForFunction(() => window.__firn.search()?.functions > 100);
		await settled(page);
		/* Of the pixels that boxes cover. */
		const share = await page.evaluate(() => {
			const canvas = document.querySelector(".flame-base");
			const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
			const colour = (name) => {
				probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
				probe.fillRect(0, 0, 1, 1);
				return probe.getImageData(0, 0, 1, 1).data.slice(0, 3).join();
			};
			const [outline, background] = [colour("--frame-match"), colour("--surface")];
			const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
			let [outlined, covered] = [0, 0];
			for (let at = 0; at < data.length; at += 4) {
				const pixel = `${data[at]},${data[at + 1]},${data[at + 2]}`;
				covered += pixel !== background;
				outlined += pixel === outline;
			}
			return outlined / covered;
		});
		assert.ok(share < 0.3, `${share} of all is outlines`);
		await picture(page, "search-narrow");
	}));

test("completion has the largest first, with its cores, and forgives a slip", () => withPage({}, async (page) => {
	await open(page, `?query=${encodeURIComponent(TYPE)}&from=${AT.now - 2 * MINUTE}&to=${AT.now + 2 * MINUTE}`);
	const field = page.getByRole("combobox", { name: /^Label filter for/ });
	await field.click();
	await page.keyboard.type("job=");
	const options = page.getByRole("listbox", { name: "Suggestions" }).getByRole("option");
	await options.nth(3).waitFor();
	const all = await options.allTextContents();
	const cores = all.map((text) => parseFloat(/([\d.]+) cores?$/.exec(text)[1]));
	assert.ok(cores[0] > 0);
	assert.deepEqual(cores, cores.slice().sort((a, b) => b - a));
	await page.keyboard.type("\"hsotile");
	await options.getByText("hostile").waitFor();
	assert.equal(await options.count(), 1);
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => window.__firn.place().matchers === 'job="hostile"');
}));

test("of two queries in a row only the last one's answer shows", () => withPage({}, async (page) => {
	await open(page, placeOf("known"));
	let release;
	const held = new Promise((resolve) => (release = resolve));
	await page.route(/query\?.*hostile/, async (route) => {
		await held;
		await route.continue().catch(() => undefined);
	});
	const ask = async (job) => {
		await page.fill("#query", `job="${job}"`);
		await page.press("#query", "Enter");
	};
	await ask("hostile");
	await ask("grown");
	await page.waitForFunction(() => window.__firn.profile().count > 10_000);
	const { root } = await firn(page, "profile");
	release();
	await painted(page);
	await page.waitForFunction(() => !window.__firn.busy());
	assert.equal((await firn(page, "profile")).root, root);
	await page.unrouteAll({ behavior: "ignoreErrors" });
}));

test("10,000 levels render, scroll and hover to the last row", () => withPage({}, async (page) => {
	await page.route("**/api/v1/query?*", (route) =>
		route.fulfill({ body: deepAnswer(10_000), contentType: "application/octet-stream" }));
	await open(page, placeOf("known"));
	const host = await page.locator(".flame-host").boundingBox();
	await page.mouse.move(host.x + 20, host.y + 20);
	await page.mouse.wheel(0, 1e6);
	await settled(page);
	const last = await firn(page, "frame", "level_9999");
	assert.ok(last.y >= host.y && last.y + last.height <= host.y + host.height + 1, `the last row is at ${last.y}`);
	await page.mouse.move(last.x + 10, last.y + last.height / 2);
	await page.waitForFunction(() => window.__firn.hovered() === "level_9999");
	await clickFrame(page, last);
	assert.equal(await firn(page, "focus"), "level_9999");
	const small = await page.locator(".flame-base").evaluate(({ width, height }) => width < 4000 && height < 4000);
	assert.ok(small, "the canvas has the size of the tree");
}));

test("a single report is a point of the chart", () => withPage({}, async (page) => {
	await open(page, placeOf("known"));
	const marked = () => page.waitForFunction(() => {
		const canvas = document.querySelector(".plot canvas");
		const image = canvas.getContext("2d", { willReadFrequently: true }).getImageData(0, 0, canvas.width,
			canvas.height).data;
		/* The accent is blue; nothing else of the chart is. */
		for (let at = 0; at < image.length; at += 4)
			if (image[at + 3] > 200 && image[at + 2] - image[at] > 90)
				return true;
		return false;
	});
	await marked();
}));

test("the chart's mean is the graph's rate, though data covers a part of the range alone", () =>
	withPage({}, async (page) => {
		await open(page, placeOf("known"));
		const rate = await page.locator(".sum b").textContent();
		assert.equal(rate, "3.50 cores");
		await page.locator(".strip-reading").getByText(`mean ${rate}`).waitFor();
	}));

test("the legend begins with the heaviest, whatever was there before, and lists what has no room",
	() => withPage({ viewport: { width: 1280, height: 800 } }, async (page) => {
		await open(page, placeOf("last-parts"));
		await page.getByRole("list", { name: /^Colours by binary/ }).getByText("libpart_6.so").waitFor();
		const field = page.getByRole("combobox", { name: /^Label filter/ });
		await field.fill('job="parts"');
		await field.press("Enter");
		await page.waitForFunction(() => window.__firn.frame("work_0") && !window.__firn.busy());
		await settled(page);
		const [seen, all] = await page.evaluate(() => {
			const room = document.querySelector(".legend").getBoundingClientRect();
			const items = [...document.querySelectorAll(".legend li")];
			const inside = items.filter((item) => {
				const { left, right, top, bottom } = item.getBoundingClientRect();
				return left >= room.left - 1 && right <= room.right + 1 &&
					top >= room.top - 1 && bottom <= room.bottom + 1;
			});
			return [inside, items].map((list) => list.map((item) => item.textContent));
		});
		assert.equal(all.length, 9, "eight and the rest");
		assert.ok(seen.length > 0 && seen.length < all.length, `${seen.length} of ${all.length} have room`);
		assert.deepEqual(seen, all.slice(0, seen.length), "the heaviest are those that are seen");
		assert.match(seen[0], /^libpart_0\.so15\.4 %$/);
		const more = page.getByRole("button", { name: /^All colours/ });
		assert.equal(await more.textContent(), `+${all.length - seen.length}`);
		await more.click();
		const listed = page.getByRole("list", { name: "All colours by binary" }).getByRole("listitem");
		assert.deepEqual(await listed.allTextContents(), all);
		await picture(page, "legend");
		await page.keyboard.press("Escape");
		assert.equal(await listed.count(), 0);
		await page.keyboard.press("Enter");
		await listed.nth(8).waitFor();
	}));

test("nothing that is there moves while answers are slow to come, on a slow machine", () =>
	withPage({}, async (page) => {
		await page.addInitScript(() => {
			window.__shifts = [];
			new PerformanceObserver((list) => {
				window.__shifts.push(...list.getEntries().filter((each) => !each.hadRecentInput)
					.map(({ value, sources }) =>
						[value, sources.map(({ node }) => node?.outerHTML)]));
			}).observe({ type: "layout-shift", buffered: true });
		});
		const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
		await page.route("**/api/v1/types?*", (route) => later(400).then(() => route.continue()));
		let asked = 0;
		let release;
		const held = new Promise((resolve) => (release = resolve));
		await page.route("**/api/v1/query?*", async (route) => {
			await (asked++ ? held : later(2000));
			await route.continue();
		});
		await slowed(page, 4);
		await page.goto(new URL(placeOf("grown"), base).href);
		await page.locator(".progress.busy").waitFor();
		/* What is trimmed to the screen comes first, and the table's numbers are not whole yet. */
		const more = page.getByRole("columnheader", { name: "Function (more is on its way)" });
		await more.waitFor();
		release();
		await more.waitFor({ state: "detached" });
		await page.waitForFunction(() => !window.__firn.busy());
		await settled(page);
		const shifts = await page.evaluate(() => window.__shifts);
		const sum = shifts.reduce((all, [value]) => all + value, 0);
		assert.ok(sum < 0.005, `${sum}: ${JSON.stringify(shifts)}`);
	}));

for (const width of [1440, 900, 400])
	test(`what a search found and the legend are whole at ${width} pixels`,
		() => withPage({ viewport: { width, height: 860 } }, async (page) => {
			await open(page, `${placeOf("grown")}&search=cache`);
			const found = page.locator(".found");
			await found.waitFor();
			const { functions, frames } = await firn(page, "search");
			const said = (await found.textContent()).replace(/\u202f|\s/g, " ");
			const numbers = [...said.matchAll(/([\d ]+) (?:function|frame)/g)].map(([, text]) =>
				Number(text.replace(/ /g, "")));
			assert.deepEqual(numbers, [functions, frames]);
			const cut = await page.evaluate(() => {
				const shown = document.querySelector(".found");
				const box = shown.getBoundingClientRect();
				const legend = document.querySelector(".legend");
				const room = legend.getBoundingClientRect();
				const halves = [...legend.children].filter((item) => {
					const { left, right, top, bottom } = item.getBoundingClientRect();
					const isSeen = bottom > room.top + 1 && top < room.bottom - 1;
					return isSeen && (left < room.left - 1 || right > room.right + 1);
				});
				return [shown.scrollWidth > shown.clientWidth || box.right > innerWidth, halves.length];
			});
			assert.deepEqual(cut, [false, 0]);
		}));

test("names that are slow to come are asked for ever more rarely: each time is a whole tree", () =>
	withPage({}, async (page) => {
		/* A minute passes in two seconds. */
		await page.addInitScript(() => {
			const [now, every, begun] = [Date.now, window.setInterval, Date.now()];
			Date.now = () => begun + 30 * (now() - begun);
			window.setInterval = (run, ms, ...more) => every(run, ms / 30, ...more);
		});
		const tree = treeAnswer([{ name: "0x1234", kind: 1, depth: 1, self: 5 }]).toString("latin1");
		const body = Buffer.from(tree.replace('"pending":0', '"pending":7'), "latin1");
		let asked = 0;
		await page.route("**/api/v1/query?*", (route) => {
			asked++;
			return route.fulfill({ body, contentType: "application/octet-stream" });
		});
		await page.goto(new URL(`${placeOf("known")}&live=0`, base).href);
		await page.waitForFunction(() => window.__firn?.profile()?.pending === 7);
		await page.waitForTimeout(2000);
		assert.ok(asked <= 8, `${asked} times in a minute`);
		for (let waited = 0; asked < 2 && waited < 60_000; waited += 100)
			await page.waitForTimeout(100);
		assert.ok(asked >= 2, `${asked} times`);
	}));

test("live on a host that changes all the time: under a megabyte a minute, and nothing stays", () =>
	withPage({}, async (page) => {
		/* Five minutes pass in five seconds. */
		await page.addInitScript(() => {
			const [now, every, begun] = [Date.now, window.setInterval, Date.now()];
			Date.now = () => begun + 60 * (now() - begun);
			window.setInterval = (run, ms, ...more) => every(run, ms / 60, ...more);
		});
		const treeOf = (turn) => treeAnswer(Array.from({ length: 14_000 }, (_, index) =>
			({ name: `function_${turn}_${index}`, kind: 1, depth: 1 + (index % 40), self: 1 + index })));
		const trees = Array.from({ length: 8 }, (_, turn) => treeOf(turn));
		const sent = [];
		await page.route("**/api/v1/query?*", (route) => {
			const body = trees[sent.length % trees.length];
			sent.push({ at: Date.now(), bytes: body.length });
			return route.fulfill({ body, contentType: "application/octet-stream",
				headers: { etag: `"${sent.length}"` } });
		});
		const session = await page.context().newCDPSession(page);
		const weight = async () => {
			await session.send("HeapProfiler.collectGarbage");
			const { usedSize, embedderHeapUsedSize = 0, backingStorageSize = 0 } =
				await session.send("Runtime.getHeapUsage");
			return (usedSize + embedderHeapUsedSize + backingStorageSize) / 1e6;
		};
		await page.goto(new URL(`${queryOf("known")}&from=now-2h&to=now`, base).href);
		await page.waitForFunction(() => window.__firn?.profile()?.count > 10_000);
		await page.waitForTimeout(1000);
		const before = await weight();
		const first = sent.length;
		await page.waitForTimeout(5000);
		/* A browser that gets no processor asks later. */
		for (let waited = 0; sent.length < first + 4 && waited < 60_000; waited += 100)
			await page.waitForTimeout(100);
		const grown = await weight() - before;
		const looked = sent.slice(first);
		assert.ok(looked.length >= 4, `${looked.length} answers in five minutes`);
		for (const { at } of looked) {
			/* A minute of one second; that of the browser and that of the test differ a little. */
			const within = looked.filter((other) => other.at >= at && other.at < at + 950);
			const bytes = within.reduce((sum, other) => sum + other.bytes, 0);
			assert.ok(bytes < 1e6, `${bytes} bytes in a minute, in ${within.length} answers`);
		}
		assert.ok(grown < 10, `grown by ${grown} MB`);
	}));
