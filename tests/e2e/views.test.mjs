// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { hoursAgo, query, send } from "./moments.mjs";
import { clickFrame, fixedRange, firn, open, picture, settled, violations, withPage } from "./page.mjs";

/* Who runs this twice on one server sends twice. */
const RUN = Date.now();
const CELLS_AT = hoursAgo(3);
const CPUS_AT = hoursAgo(4);
const SECONDS = 60;
const CPUS = 64;
const REPORTS = 90;
const cells = query(`service="cells-${RUN}"`, CELLS_AT, CELLS_AT + SECONDS * 1000, "&view=heatmap");
const cpus = query(`service="cpus-${RUN}"`, CPUS_AT, CPUS_AT + REPORTS * 10_000);

/* Every 10 ms a sample of what is always done; every third second, for 80 ms, one of a burst each 2 ms. */
function cellsReport(report) {
	const from = CELLS_AT + report * 10_000;
	const steady = Array.from({ length: 1000 }, (_, at) => from + 10 * at);
	const seconds = Array.from({ length: 10 }, (_, at) => at).filter((at) => (report * 10 + at) % 3 === 0);
	const burst = seconds.flatMap((second) => Array.from({ length: 40 },
		(_, at) => from + second * 1000 + 400 + 2 * at));
	return send({ service: `cells-${RUN}` }, from, 10_000, [
		{ stack: ["main", "serve", "steady"], atMs: steady },
		{ stack: ["main", "serve", "collect", "burst"], atMs: burst },
	]);
}

function cpusReport(report) {
	const stackOf = (cpu, at) => ["main", `pool_${at % 3}`,
		...Array.from({ length: 8 }, (_, depth) => `level_${depth}_${(at * 7 + report + depth * cpu) % 5}`)];
	const samples = Array.from({ length: CPUS * 6 }, (_, at) => ({
		stack: stackOf(at % CPUS, at), value: 1 + ((at * 17 + report * 7) % 40),
		labels: { cpu: String(at % CPUS) },
	}));
	return send({ service: `cpus-${RUN}` }, CPUS_AT + report * 10_000, 10_000, samples);
}

before(async () => {
	for (let report = 0; report < SECONDS / 10; report++)
		await cellsReport(report);
	for (let report = 0; report < REPORTS; report += 10)
		await Promise.all(Array.from({ length: 10 }, (_, at) => cpusReport(report + at)));
});

/* The middle of a cell of the heatmap, by second and 20 ms of it. */
async function cellAt(page, column, row) {
	const box = await page.locator(".heat-host").boundingBox();
	return [box.x + (box.width * (column + 0.5)) / SECONDS, box.y + (box.height * (row + 0.5)) / 50];
}

const chosen = (page, text) => page.waitForFunction((wanted) =>
	window.__firn.place().cells === wanted && !window.__firn.busy(), text);
const shownTotal = (page, total) => page.waitForFunction((wanted) => window.__firn.profile()?.root === wanted, total);
const at = (fromMs, toMs) => `${CELLS_AT + fromMs}-${CELLS_AT + toMs}`;

async function dragCells(page, from, to) {
	await page.mouse.move(...await cellAt(page, ...from));
	await page.mouse.down();
	await page.mouse.move(...await cellAt(page, ...to), { steps: 3 });
	await page.mouse.up();
}

test("chosen cells of the heatmap are what the graph is of, to the sample, and part of the link",
	() => withPage({}, async (page) => {
		await open(page, cells);
		await page.getByRole("grid", { name: "Heatmap of values over time" }).waitFor();
		assert.equal((await firn(page, "profile")).root, 6000 + 20 * 40);
		/* Four cells of 20 ms: each 2 samples of what is always done, 10 of the burst. */
		await dragCells(page, [12, 20], [12, 23]);
		await chosen(page, at(12_400, 12_480));
		await shownTotal(page, 48);
		assert.equal((await firn(page, "frame", "burst")).total, 40);
		await page.mouse.move(2, 2);
	await page.getByText("48 samples · 480 ms · 6.00 cores").waitFor();
		await picture(page, "heatmap");
		assert.deepEqual(await violations(page), [], "heatmap");
		/* Half of a second and half of the next but one: the stretch goes on from column to column. */
		await page.keyboard.down("Control");
		await dragCells(page, [20, 25], [21, 24]);
		await page.keyboard.up("Control");
		await chosen(page, `${at(12_400, 12_480)},${at(20_500, 21_500)}`);
		await shownTotal(page, 48 + 100 + 40);
		await page.reload();
		await shownTotal(page, 188);
		/* Other views are of the same moments, until they are let go. */
		await page.keyboard.press("2");
		await page.getByRole("grid", { name: "Functions" }).waitFor();
		assert.equal((await firn(page, "profile")).root, 188);
		await page.getByRole("button", { name: "Show all moments" }).click();
		await shownTotal(page, 6800);
	}));

test("the times below the heatmap have room, the last one too", () => withPage({}, async (page) => {
	await open(page, query(`service="cells-${RUN}"`, CELLS_AT, CELLS_AT + 41_000, "&view=heatmap"));
	const times = page.locator(".heat-times");
	await times.waitFor();
	assert.ok(await times.locator("span").count() > 3);
	assert.equal(await times.evaluate((box) => box.scrollWidth - box.clientWidth), 0);
}));

test("the heatmap is walked by keys, which say what a cell holds",
	() => withPage({ colorScheme: "dark" }, async (page) => {
	await open(page, cells);
	const grid = page.getByRole("grid", { name: "Heatmap of values over time" });
	await grid.focus();
	for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"])
		await page.keyboard.press(key);
	await page.getByRole("gridcell").getByText(/\.040 – .*\.060, 2 samples/).waitFor();
	await page.keyboard.press("Shift+ArrowDown");
	await chosen(page, at(1_040, 1_080));
	await shownTotal(page, 4);
	await page.locator("[role=gridcell][aria-selected=true]").waitFor();
	await page.keyboard.press("Shift+ArrowRight");
	await chosen(page, at(1_040, 2_080));
	await picture(page, "heatmap-dark");
	assert.deepEqual(await violations(page), []);
	await page.keyboard.press("Escape");
	await chosen(page, "");
	await page.goBack();
	await chosen(page, at(1_040, 2_080));
	await page.getByRole("button", { name: "Zoom in" }).click();
	await page.waitForFunction((from) => window.__firn.place().range.from === String(from), CELLS_AT + 1_040);
}));

test("cells of real samples add up to the graph's total, and empty ones say that they are empty",
	() => withPage({}, async (page) => {
		const range = fixedRange();
		await open(page, `${range}&view=heatmap`);
		await page.getByRole("grid", { name: "Heatmap of values over time" }).focus();
		for (const key of ["ArrowRight", "Shift+ArrowRight"])
			await page.keyboard.press(key);
		await page.waitForFunction(() => window.__firn.place().cells && !window.__firn.busy());
		const said = page.locator(".heat-chosen [role=status]");
		await page.waitForFunction(() => {
			const [, samples] = /: ([\d\s]+) samples?/.exec(
				document.querySelector(".heat-chosen [role=status]").textContent) ?? [];
			return Number(samples?.replace(/\s/g, "")) === window.__firn.profile().root;
		}).catch(async () => assert.fail(
			`${await said.textContent()}; the graph has ${(await firn(page, "profile")).root}`));
		const from = Number(new URLSearchParams(range).get("from"));
		await open(page, `${range}&view=heatmap&cells=${from - 1000}-${from - 900}`).catch(() => undefined);
		await page.getByRole("heading", { name: "Nothing in these cells" }).waitFor();
		await page.getByRole("button", { name: "Show the whole range" }).click();
		await page.waitForFunction(() => window.__firn.profile().root > 0);
	}));

test("a quarter of an hour of 64 CPUs opens at once, lane by lane", () => withPage({}, async (page) => {
	await open(page, cpus);
	const began = Date.now();
	await page.keyboard.press("5");
	const item = page.getByRole("treeitem");
	await page.getByRole("button", { name: "Open all 64 lanes" }).waitFor();
	await page.waitForFunction(() => !window.__firn.busy());
	const took = Date.now() - began;
	/* Generous: machines that build and test at once are slow. */
	assert.ok(took < 10_000, `${took} ms`);
	console.log(`# timeline of 64 CPUs: ${took} ms`);
	await page.locator("#timeline").focus();
	await page.keyboard.press("ArrowDown");
	assert.match(await item.textContent(), /^lane cpu 0, .* closed$/);
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => window.__firn.place().lane === "=0" && !window.__firn.busy());
	await item.getByText(/ open$/).waitFor();
	await page.keyboard.press("ArrowDown");
	await item.getByText(/^main in cpu 0, /).waitFor();
	await picture(page, "timeline");
	assert.deepEqual(await violations(page), [], "timeline");
	const axis = await page.locator(".timeline-axis").boundingBox();
	await page.mouse.move(axis.x + axis.width / 3, axis.y + 8);
	await page.mouse.down();
	await page.mouse.move(axis.x + (2 * axis.width) / 3, axis.y + 8, { steps: 3 });
	await page.mouse.up();
	await page.waitForFunction(([from, to]) => {
		const { range } = window.__firn.place();
		return Math.abs(range.from - from) < 11_000 && Math.abs(range.to - to) < 11_000;
	}, [CPUS_AT + 300_000, CPUS_AT + 600_000]);
}));

test("the call graph shows callers above callees, and leads along calls by keys", () => withPage({}, async (page) => {
	await open(page, query(`service="cells-${RUN}"`, CELLS_AT, CELLS_AT + SECONDS * 1000, "&view=callgraph"));
	const node = (name) => page.getByRole("button", { name: new RegExp(`^${name}, .* of total`) });
	await node("burst").waitFor();
	assert.equal(await page.locator(".call-node").count(), 5);
	assert.equal(await page.locator(".call").count(), 4);
	const way = ["main", "serve", "collect", "burst"];
	const tops = await Promise.all(way.map(async (name) => (await node(name).boundingBox()).y));
	assert.deepEqual(tops, tops.slice().sort((a, b) => a - b));
	await page.getByRole("button", { name: "burst, 11.8 % of total, 11.8 % self", exact: true }).waitFor();
	const box = await node("serve").boundingBox();
	await page.mouse.click(box.x + 10, box.y + 10);
	const selected = (name) => node(name).and(page.locator("[aria-pressed=true]")).waitFor();
	await selected("serve");
	await page.getByRole("button", { name: "Details", exact: true }).click();
	await page.locator(".details-name").getByText("serve").waitFor();
	await node("serve").focus();
	await page.keyboard.press("ArrowDown");
	await selected("steady");
	await page.keyboard.press("ArrowUp");
	await page.getByText("As a list").click();
	await page.getByRole("listitem").getByRole("button", { name: /collect/ }).first().click();
	await selected("collect");
	await picture(page, "callgraph");
	assert.deepEqual(await violations(page), [], "call graph");
}));

/* The time that the chart tells where the pointer is: a step of it began then. */
async function chartTime(page, x) {
	const plot = await page.locator(".plot .u-over").boundingBox();
	await page.mouse.move(x, plot.y + plot.height / 2);
	const told = await page.locator(".strip-reading .muted").textContent();
	return told.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
}

const secondsOf = (text) => text.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);

for (const [view, marks, host] of [
	["timeline", ".timeline-axis span", ".timeline .flame-host"], ["heatmap", ".heat-times span", ".heat-host"],
])
	test(`a moment of the ${view} stands under itself in the chart`, () => withPage({}, async (page) => {
		await open(page, `${fixedRange()}&view=${view}`);
		await page.locator(marks).first().waitFor();
		const step = (await firn(page, "series")).step_ms / 1000;
		for (const open of [true, false]) {
			if (!open)
				await page.keyboard.press("p");
			await page.waitForFunction(([one, other]) => {
				const [a, b] = [one, other].map((each) =>
					document.querySelector(each).getBoundingClientRect());
				return Math.abs(a.left - b.left) <= 1 && Math.abs(a.right - b.right) <= 1;
			}, [".plot .u-over", host]);
			for (const mark of await page.locator(marks).all()) {
				const { x } = await mark.boundingBox();
				const told = await chartTime(page, x + 1);
				const meant = secondsOf(await mark.textContent());
				assert.ok(Math.abs(told - meant) <= step, `the chart has ${told} s over ${meant} s`);
			}
		}
	}));

test("names of lanes stand beside their bars", () => withPage({}, async (page) => {
	await open(page, `${cpus}&view=timeline`);
	const name = page.locator(".timeline-names button").first();
	await name.waitFor();
	const host = await page.locator(".timeline .flame-host").boundingBox();
	const box = await name.boundingBox();
	assert.ok(box.x + box.width <= host.x + 1, "the name covers bars");
	/* And the graph's own name of the row does not shine through the bars' ground. */
	const alpha = await page.evaluate(() => {
		const canvas = document.querySelector(".timeline-lanes");
		const ratio = canvas.width / canvas.clientWidth;
		const row = document.querySelectorAll(".timeline-names button")[1].getBoundingClientRect();
		const y = (row.top - canvas.getBoundingClientRect().top + 3) * ratio;
		return canvas.getContext("2d").getImageData(2 * ratio, y, 1, 1).data[3];
	});
	assert.equal(alpha, 255);
	const lane = (await name.locator(".lane-name").textContent()).replace("cpu ", "");
	const before = (await firn(page, "place")).lane;
	await name.click();
	await page.waitForFunction((old) => window.__firn.place().lane !== old, before);
	assert.match((await firn(page, "place")).lane, new RegExp(`^(none|=${lane})$`));
}));

test("the call graph opens whole and in the middle", () => withPage({}, async (page) => {
	await open(page, `${fixedRange()}&view=callgraph`);
	await page.locator(".call-node").first().waitFor();
	await settled(page);
	const host = await page.locator(".callgraph-host").boundingBox();
	const boxes = await page.locator(".call-node .case").evaluateAll((all) =>
		all.map((each) => each.getBoundingClientRect()).map(({ left, right, top, bottom }) =>
			({ left, right, top, bottom })));
	const [left, right] = [Math.min(...boxes.map((box) => box.left)), Math.max(...boxes.map((box) => box.right))];
	assert.ok(left >= host.x && right <= host.x + host.width, "it is cut off at a side");
	assert.ok(Math.abs(left - host.x - (host.x + host.width - right)) <= 30, "it is off-centre");
	assert.ok(boxes.every(({ top, bottom }) => top >= host.y && bottom <= host.y + host.height), "it is cut off");
}));

test("a call graph of real programs says what it hides, and shows more", () => withPage({}, async (page) => {
	await open(page, `${fixedRange()}&view=callgraph&functions=20`);
	await page.getByText(/Not shown: .* functions with less/).waitFor();
	assert.equal(await page.locator(".call-node").count(), 20);
	await page.getByRole("button", { name: "Show 40" }).click();
	await page.waitForFunction(() => document.querySelectorAll(".call-node").length === 40);
	assert.equal(new URL(page.url()).searchParams.get("functions"), null, "40 is what links leave out");
	await settled(page);
	await picture(page, "callgraph-real");
}));

test("grouping adds a level that sums up to the total; without it the former zoom is back",
	() => withPage({}, async (page) => {
	await open(page, cells.replace("&view=heatmap", ""));
	await clickFrame(page, await firn(page, "frame", "collect"));
	assert.equal(await firn(page, "focus"), "collect");
	const choose = async () => {
		await page.getByRole("button", { name: /^Group by/ }).click();
		await page.getByRole("option", { name: "service", exact: true }).click();
		await page.keyboard.press("Escape");
	};
	await choose();
	await page.waitForFunction((run) => window.__firn.frame(`cells-${run}`)?.depth === 1, RUN);
	assert.equal((await firn(page, "frame", `cells-${RUN}`)).total, 6800);
	await choose();
	await page.waitForFunction(() => window.__firn.focus() === "collect");
}));
