// SPDX-License-Identifier: Apache-2.0
/*
 * speedscope - opens profiles in speedscope's own page, as `speedscope FILE` does, in a browser without a network.
 *
 *	node speedscope.mjs FILE...
 *
 * writes { FILE: { title, totals } }: the title of the page when it is shown, or what went wrong, and of each profile
 * that it found what there is in all, as it exports it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";

const index = new URL("node_modules/speedscope/dist/release/index.html", import.meta.url);
const browser = await chromium.launch({
	executablePath: process.env.FIRN_CHROMIUM ?? "/usr/bin/chromium",
	args: ["--no-sandbox", "--allow-file-access-from-files"],
});

/* By the page's own export: the weights of samples, or the time in which some function was open. */
async function totals(page) {
	await page.getByText(/Export$/).last().click();
	const { profiles } = JSON.parse(await page.evaluate(() => exported.text()));
	return profiles.map((profile) => profile.type === "sampled"
		? profile.weights.filter((_, i) => profile.samples[i].length).reduce((a, b) => a + b, 0)
		: openTime(profile.events));
}

function openTime(events) {
	let depth = 0, since = 0, sum = 0;
	for (const { type, at } of events) {
		if (type === "O" && !depth++)
			since = at;
		else if (type === "C" && !--depth)
			sum += at - since;
	}
	return sum;
}

const shown = {};
const files = process.argv.slice(2);

async function open(file) {
	const page = await browser.newPage();
	let complaint = null;
	page.on("dialog", (dialog) => { complaint = dialog.message(); return dialog.dismiss(); });
	page.on("pageerror", (error) => { complaint ??= error.message; });
	await page.addInitScript(() => {
		const make = URL.createObjectURL;
		URL.createObjectURL = (blob) => { globalThis.exported = blob; return make.call(URL, blob); };
	});
	const script = `${file}.js`;
	writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, ` +
		`${JSON.stringify(readFileSync(file).toString("base64"))})`);
	await page.goto(`${index.href}#localProfilePath=${script}`);
	const end = Date.now() + 60000;
	let title = "";
	while (!complaint && Date.now() < end && !(title = await page.title()).includes(" - "))
		await page.waitForTimeout(20);
	shown[file] = { title: complaint ?? title, totals: complaint || !title ? [] : await totals(page) };
	await page.close();
}

/* Several at a time: they wait for each other's drawing. */
await Promise.all(Array.from({ length: 4 }, async () => {
	for (let file; (file = files.shift());)
		await open(file);
}));
await browser.close();
process.stdout.write(JSON.stringify(shown));
