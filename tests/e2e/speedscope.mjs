// SPDX-License-Identifier: Apache-2.0
/*
 * speedscope - opens profiles in speedscope's own page, as `speedscope FILE` does, in a browser without a network.
 *
 *	node speedscope.mjs FILE...
 *
 * writes { FILE: title of the page when it is shown, or what went wrong }.
 */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";

const index = new URL("node_modules/speedscope/dist/release/index.html", import.meta.url);
const browser = await chromium.launch({
	executablePath: process.env.FIRN_CHROMIUM ?? "/usr/bin/chromium",
	args: ["--no-sandbox", "--allow-file-access-from-files"],
});
const shown = {};
for (const file of process.argv.slice(2)) {
	const page = await browser.newPage();
	let complaint = null;
	page.on("dialog", (dialog) => { complaint = dialog.message(); return dialog.dismiss(); });
	page.on("pageerror", (error) => { complaint ??= error.message; });
	const script = `${file}.js`;
	writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, ` +
		`${JSON.stringify(readFileSync(file).toString("base64"))})`);
	await page.goto(`${index.href}#localProfilePath=${script}`);
	const end = Date.now() + 20000;
	let title = "";
	while (!complaint && Date.now() < end && !(title = await page.title()).includes(" - "))
		await page.waitForTimeout(20);
	shown[file] = complaint ?? title;
	await page.close();
}
await browser.close();
process.stdout.write(JSON.stringify(shown));
