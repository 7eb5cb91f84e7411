// SPDX-License-Identifier: Apache-2.0
/*
 * screenshots - the pictures of docs/images, from a firn that profiles this host:
 *
 *	FIRN_URL=http://127.0.0.1:7070/ node screenshots.mjs FOLDER [VIEW...]
 *	FIRN_URL=http://127.0.0.1:7070/ node screenshots.mjs FOLDER NAME=QUERY...
 *
 * takes them, and of each VIEW named, of what FIRN_MATCHERS selects, once that has run for five minutes and its sources
 * are there; the comparison is of the last two minutes and the two before, or of those before and after the time
 * FIRN_CHANGED_MS. Or the flame graph of each QUERY alone, as sender-NAME.png.
 * pngquant then makes them small: `pngquant --force --ext .png --speed 1 128 FOLDER/ui-*.png`.
 */
import { mkdirSync } from "node:fs";
import path from "node:path";
import { firn, launch, open, painted, settled } from "./page.mjs";

const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
const browser = await launch();
const TYPE = "on_cpu:samples:count:cpu:nanoseconds:delta";
const query = (matchers = "") => `?query=${encodeURIComponent(TYPE + (matchers && `{${matchers}}`))}&live=0`;

const senders = process.argv.slice(3).filter((text) => text.includes("="));

async function take(name, options, place, prepare = async () => undefined) {
	const context = await browser.newContext({ viewport: { width: 1440, height: 860 }, ...options });
	const page = await context.newPage();
	page.setDefaultTimeout(100_000);
	await open(page, place);
	await prepare(page);
	await page.waitForFunction(() => !window.__firn.busy());
	await settled(page);
	await page.screenshot({ path: path.join(folder, `${senders.length ? "sender" : "ui"}-${name}.png`) });
	await context.close();
	console.log(name);
}

const hover = async (page) => {
	const frames = await firn(page, "frames");
	const one = frames.find(({ depth, width }) => depth > 4 && width > 150 && width < 500) ?? frames[1];
	await page.mouse.move(one.x + one.width / 2, one.y + 8);
};
const changed = Number(process.env.FIRN_CHANGED_MS ?? Date.now() - 120_000);
const early = `base_from=${changed - 120_000}&base_to=${changed}&from=${changed}&to=${changed + 120_000}`;
const chosen = process.env.FIRN_MATCHERS ?? "";
/* The function that costs most itself, by the table. */
const hottest = (page) => page.getByRole("grid", { name: "Functions" }).locator(".table-body .row").first();
const decided = (page) => page.locator(".sentence").getByText(/urely changed|No function changed/).waitFor();
const source = async (page) => {
	await hottest(page).click();
	await page.getByRole("group", { name: "Side pane shows" }).getByRole("button", { name: "Source" }).click();
	await page.getByRole("table", { name: /^Source of/ }).getByRole("row").first().waitFor();
};

for (const sender of senders) {
	const [name, ...rest] = sender.split("=");
	await take(name, { colorScheme: "light", viewport: { width: 1100, height: 480 } },
		`?query=${encodeURIComponent(rest.join("="))}&live=0&from=now-15m&to=now&pane=0`, hover);
}
if (senders.length)
	process.exit();

/* As a host is opened first. */
const host = `${query(chosen)}&group_by=comm&from=now-5m&to=now`;
await take("light", { colorScheme: "light" }, host, hover);
await take("dark", { colorScheme: "dark" }, host, hover);
await take("compare", { colorScheme: "light" }, `${query(chosen)}&view=compare&${early}`, decided);
await take("source", { colorScheme: "dark" }, query(chosen), source);
await take("400", { colorScheme: "light", viewport: { width: 400, height: 860 } }, host);
await take("600", { colorScheme: "light", viewport: { width: 600, height: 900 } }, host);
await take("table", { colorScheme: "light" }, `${query(chosen)}&view=table`);
await take("sandwich", { colorScheme: "dark" }, `${query(chosen)}&view=sandwich`);
await take("deuteranopia", { colorScheme: "light" }, `${query(chosen)}&view=compare&${early}`, async (page) => {
	await decided(page);
	const session = await page.context().newCDPSession(page);
	await session.send("Emulation.setEmulatedVisionDeficiency", { type: "deuteranopia" });
});
for (const view of process.argv.slice(3))
	await take(view, { colorScheme: "light" }, `${query(chosen)}&view=${view}`, (page) => painted(page));
await browser.close();
/* page.mjs has begun a browser for tests, which none of these ends. */
process.exit();
