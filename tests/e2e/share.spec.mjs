// SPDX-License-Identifier: Apache-2.0
/* Links and files of what is on screen: pinned times, and downloads that other programs open. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { queryOf, placeOf, run } from "./fixture.mjs";
import { firn, open, withPage } from "./page.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const share = (page) => page.getByRole("button", { name: "Share and download" }).click();

test("a range that moves with the clock offers a link that stays", () =>
	withPage({ permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
		await open(page, `${queryOf("known")}&from=now-45m&to=now`);
		const { root } = await firn(page, "profile");
		await share(page);
		const copied = async (name) => {
			await page.getByRole("button", { name }).click();
			await page.getByRole("button", { name }).getByText("Copied").waitFor();
			return new URL(await page.evaluate(() => navigator.clipboard.readText()));
		};
		assert.equal((await copied(/^Copy link(?! to)/)).href, page.url());
		const pinned = await copied(/^Copy link to these times/);
		const [from, to] = ["from", "to"].map((end) => Number(pinned.searchParams.get(end)));
		assert.ok(Math.abs(to - Date.now()) < 600_000 && to - from === 45 * 60_000, pinned.href);
		await page.goto(pinned.href);
		await page.waitForFunction((value) => window.__firn?.profile()?.root === value, root);
		await share(page);
		await page.getByRole("button", { name: /^Copy link/ }).waitFor();
		assert.equal(await page.getByRole("button", { name: /pinned/ }).count(), 0, "these times stay anyway");
	}));

/* Presses a row of the panel and gives the file that comes of it. */
async function download(page, row) {
	const coming = page.waitForEvent("download");
	await row.click();
	const came = await coming;
	/* By day and time; addresses of files have no spaces. */
	const file = path.join(process.env.FIRN_FOLDER, came.suggestedFilename().replaceAll(" ", "_"));
	await came.saveAs(file);
	return file;
}

test("downloads open in other programs, with the same numbers", () => withPage({}, async (page) => {
	await open(page, placeOf("known"));
	const { root } = await firn(page, "profile");
	await share(page);
	const panel = page.getByRole("dialog", { name: "Share and download" });
	const link = (name) => download(page, panel.getByRole("link", { name }));
	const button = (ending) => download(page, panel.getByRole("button", { name: new RegExp(`\\.${ending}$`) }));

	const { stdout } = await run("go", ["tool", "pprof", "-top", "-unit=ns", await link("pprof")]);
	assert.match(stdout, new RegExp(`of ${root}ns total`));
	const folded = readFileSync(await link("Folded stacks"), "utf8");
	assert.equal(folded.trim().split("\n").reduce((sum, line) => sum + Number(/ (\d+)$/.exec(line)[1]), 0), root);
	const speedscope = await link("speedscope");
	const opened = await run("node", [path.join(here, "speedscope.mjs"), speedscope]);
	const shown = JSON.parse(opened.stdout)[speedscope];
	assert.match(shown.title, / - speedscope$/);
	assert.deepEqual(shown.totals, [root]);

	const svg = await button("svg");
	const png = await button("png");
	const text = readFileSync(svg, "utf8");
	assert.deepEqual([...text.matchAll(/<title>(serve|deflate|idle)\b[^<]*/g)].map(([, name]) => name).sort(),
		["deflate", "idle", "serve"]);
	/* As a browser draws files that lie on a disk: nothing is fetched, and it is a picture. */
	const other = await page.context().browser().newPage();
	for (const [file, type, width] of [[svg, "image/svg+xml", 1600], [png, "image/png", 3200]]) {
		const drawn = await other.evaluate(async (source) => {
			const image = Object.assign(new Image(), { src: source });
			await image.decode();
			const canvas = Object.assign(document.createElement("canvas"),
				{ width: image.width, height: image.height });
			const context = canvas.getContext("2d");
			context.drawImage(image, 0, 0);
			const { data } = context.getImageData(0, 0, image.width, image.height);
			return { width: image.width, colours: new Set(new Uint32Array(data.buffer)).size };
		}, `data:${type};base64,${readFileSync(file).toString("base64")}`);
		assert.equal(drawn.width, width);
		assert.ok(drawn.colours > 10, `${file}: ${drawn.colours} colours`);
	}
	await other.close();
}));
