// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { base, firn, open, painted, picture, violations, withPage } from "./page.mjs";

const golden = (name) => readFileSync(new URL(`../golden/pprof/${name}`, import.meta.url));
const seed = (name) => readFileSync(new URL(`../fuzz/corpus/profile_text/${name}`, import.meta.url));

/* As a hand drops it, onto the middle of the page. */
async function drop(page, name, content) {
	await page.evaluate(
		async ([fileName, base64]) => {
			const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
			const dataTransfer = new DataTransfer();
			dataTransfer.items.add(new File([bytes], fileName));
			const target = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
			for (const type of ["dragover", "drop"])
				target.dispatchEvent(
					new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }),
				);
		},
		[name, Buffer.from(content).toString("base64")],
	);
}

async function shows(page, name, total) {
	await page.waitForFunction(
		([file, value]) =>
			window.__firn.place().file === file &&
			!window.__firn.busy() &&
			window.__firn.profile()?.root === value,
		[name, total],
	);
}

const FIREFOX = {
	meta: { interval: 1, startTime: 1e12, preprocessedProfileVersion: 57 },
	libs: [],
	threads: [
		{
			name: "Main",
			samples: {
				length: 3,
				stack: [0, 1, null],
				weight: null,
				weightType: "samples",
				time: [0, 1, 2],
			},
			stackTable: { length: 2, prefix: [null, 0], frame: [0, 1] },
			frameTable: { length: 2, func: [0, 1] },
			funcTable: {
				length: 2,
				name: [0, 1],
				fileName: [null, null],
				resource: [-1, -1],
				lineNumber: [null, null],
			},
			resourceTable: { length: 0, lib: [] },
			stringArray: ["main", "work"],
		},
	],
};

/* Totals as go tool pprof, the heads of the text, and speedscope have them. */
const speedscope = JSON.parse(seed("speedscope"));
const FILES = [
	["cpu.pb.gz", golden("go_cpu.pb.gz"), 700e6],
	[
		"perf.txt",
		seed("perf_script"),
		[
			...seed("perf_script")
				.toString()
				.matchAll(/(\d+) cpu-clock/g),
		].reduce((sum, [, period]) => sum + Number(period), 0),
	],
	["stacks.folded", "main;a 3\nmain;b 4\n", 7],
	["speedscope.json", seed("speedscope"), speedscope.profiles[0].weights.reduce((sum, each) => sum + each, 0)],
	["firefox.json.gz", gzipSync(JSON.stringify(FIREFOX)), 2],
];

test("files of every format are shown without the server, and everything works on them", () =>
	withPage({}, async (page) => {
		const heard = page.waitForResponse(/api\/v1\/targets/);
		await open(page);
		/* Nothing is on its way any more that was asked before. */
		await page.click("#live");
		await page.waitForFunction(() => !window.__firn.place().live && !window.__firn.busy());
		await heard;
		await page.waitForLoadState("networkidle");
		await drop(page, ...FILES[0].slice(0, 2));
		await shows(page, FILES[0][0], FILES[0][2]);
		const asked = []; // until then it may ask for names that were still being read
		await page.route("**/api/**", (route) => {
			asked.push(route.request().url());
			return route.abort();
		});
		for (const [name, content, total] of FILES) {
			await drop(page, name, content);
			await shows(page, name, total);
		}
		await drop(page, ...FILES[0]);
		await shows(page, "cpu.pb.gz", 700e6);
		await page.getByText("local, not uploaded").waitFor();
		assert.equal(await firn(page, "frame", "main.spin").then(({ total }) => total), 700e6);
		await picture(page, "local");

		await page.fill("#search", "asyncPreempt");
		await page.waitForFunction(() => window.__firn.search()?.value === 10e6);
		await page.fill("#search", "");
		await page.getByRole("button", { name: "Table" }).click();
		await page
			.getByRole("gridcell", { name: /main\.spin/ })
			.first()
			.waitFor();
		await page.getByRole("button", { name: "Sandwich" }).click();
		await page.locator(".sandwich-head h2").getByText("main.spin").waitFor();
		await page.getByRole("button", { name: "Flame graph" }).click();
		await page.getByRole("button", { name: "Invert" }).click();
		await page.waitForFunction(() => window.__firn.frame("main.spin")?.depth === 1);
		await page.getByRole("button", { name: "Invert" }).click();

		await page.click("#add-filter");
		await page.fill("#filter-value", "asyncPreempt");
		await page.getByLabel("Do", { exact: true }).selectOption("show-stack");
		await page.getByRole("button", { name: "Add filter" }).click();
		await shows(page, "cpu.pb.gz", 10e6);
		assert.equal((await firn(page, "profile")).filtered, 690e6);
		await page.goBack();
		await shows(page, "cpu.pb.gz", 700e6);

		for (const view of ["Compare", "Timeline", "Heatmap", "Call graph"]) {
			const button = page.getByRole("button", { name: view, exact: true });
			assert.ok(await button.isDisabled(), view);
			assert.match(await button.getAttribute("title"), /needs a server/);
		}
		await page.keyboard.press("4");
		assert.equal((await firn(page, "place")).view, "flame");
		assert.deepEqual(asked, [], "the server was asked");
	}));

test("another value and groups by label; closing the file goes back to where the reader was", () =>
	withPage({}, async (page) => {
		await open(page);
		await page.getByRole("button", { name: "Table" }).click();
		const before = page.url();
		await drop(page, "cpu.pb.gz", golden("go_cpu.pb.gz"));
		await shows(page, "cpu.pb.gz", 700e6);
		await page.getByRole("button", { name: /^Value/ }).click();
		await page.getByRole("option", { name: "samples · count" }).click();
		await shows(page, "cpu.pb.gz", 70);
		await page.getByRole("button", { name: "Flame graph" }).click();
		await page.getByRole("button", { name: /^Group by/ }).click();
		await page.getByRole("option").first().click();
		await page.waitForFunction(() => window.__firn.frame("main.main")?.depth > 2);
		assert.equal((await firn(page, "profile")).root, 70, "groups add up to the whole");
		await page.keyboard.press("Escape");
		await page.click("#leave-file");
		await page.waitForFunction(
			() => !window.__firn.place().file && window.__firn.profile()?.type.startsWith("on_cpu"),
		);
		assert.equal(new URL(page.url()).search, new URL(before).search);
	}));

test("a damaged file is refused with its place, and the picture stays", () =>
	withPage({}, async (page) => {
		await open(page);
		const { file } = await firn(page, "place");
		await drop(page, "cut.pb.gz", golden("go_cpu.pb.gz").subarray(0, 400));
		await page
			.getByRole("alert")
			.getByText("cut.pb.gz: gzip: it is damaged, or was cut off (at byte 400)")
			.waitFor();
		await page.getByRole("button", { name: "Close", exact: true }).click();
		await drop(page, "perf.txt", `${seed("perf_script")}\nnonsense\n`);
		await page
			.getByRole("alert")
			.getByText(/perf\.txt: perf script: .* \(line \d+\)/)
			.waitFor();
		assert.equal((await firn(page, "place")).file, file);
	}));

test("a file is chosen by key; a link to it says that it has to be opened again", () =>
	withPage({}, async (page) => {
		await open(page);
		const choice = page.waitForEvent("filechooser");
		await page.evaluate(() => 0); // the browser knows by then that the dialog is ours
		await page.keyboard.press("o");
		await (
			await choice
		).setFiles({ name: "stacks.folded", mimeType: "text/plain", buffer: Buffer.from("main;a 3\n") });
		await shows(page, "stacks.folded", 3);
		assert.deepEqual(await violations(page), []);
		await page.reload();
		await page.getByRole("heading", { name: "The file has to be opened again" }).waitFor();
		await page.goto(base.href);
		await painted(page);
	}));

test("views that were open before ask nothing of the server once a file is shown", () =>
	withPage({}, async (page) => {
		const heard = page.waitForResponse(/api\/v1\/targets/);
		await open(page);
		for (const view of ["Heatmap", "Timeline", "Call graph"]) {
			await page.getByRole("button", { name: view, exact: true }).click();
			await page.waitForFunction(() => !window.__firn.busy());
		}
		await page.getByRole("button", { name: "Flame graph", exact: true }).click();
		await page.click("#live");
		await page.waitForFunction(() => !window.__firn.place().live && !window.__firn.busy());
		await heard;
		await page.waitForLoadState("networkidle");
		await drop(page, "cpu.pb.gz", golden("go_cpu.pb.gz"));
		await shows(page, "cpu.pb.gz", 700e6);
		const asked = []; // until then the page may ask for names that were still read
		await page.route("**/api/**", (route) => {
			asked.push(route.request().url());
			return route.abort();
		});
		await page.keyboard.press("r");
		await shows(page, "cpu.pb.gz", 700e6);
		assert.deepEqual(asked, [], "the server was asked");
	}));
