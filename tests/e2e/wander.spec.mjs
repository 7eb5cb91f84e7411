// SPDX-License-Identifier: Apache-2.0
/*
 * A reader who presses anything at all: no error, never a blank page, and wherever that leads, the address opens the
 * same elsewhere. FIRN_WANDER_ACTIONS says how many actions, FIRN_WANDER_SEED which.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { placeOf } from "./fixture.mjs";
import { randomNumbers } from "./generated.mjs";
import { base, firn, open, painted, settled, withPage } from "./page.mjs";

const ACTIONS = Number(process.env.FIRN_WANDER_ACTIONS ?? 150);
const SEED = Number(process.env.FIRN_WANDER_SEED ?? 7);
const EACH = 50; // so many, then the address is opened elsewhere
/* Without those that open a system's dialog; what moves the view alone is in no link. */
const KEYS = ["1", "2", "3", "4", "5", "6", "7", "Tab", "Tab", "Shift+Tab", "Enter", "Escape", "ArrowDown", "ArrowDown",
	"ArrowRight", "ArrowUp", " ", "n", "N", "i", "u", "p", "f", "F", "D", "m", "c", "h", "x", "t", "r", "T", "Z",
	"M", "?", "/", "e", "0", "Control+k"];
const TEXTS = ["json", "/se.*ve/", "/(/", 'job="known"', 'job=~"kn.*"', "{job", "cache", "\u202E<b>"];
const clickable = "button, [role=option], [role=row], [role=gridcell], [role=treeitem], summary, input, select, " +
	"a[href]:not([download]):not([target]):not(.logo), canvas";

/* The middle of something that a hand could press, or null. */
const somewhere = (page, share) => page.evaluate(([selector, part]) => {
	const on = [...document.querySelectorAll(selector)].filter((element) => {
		if (!element.checkVisibility() || element.disabled ||
			element.closest("#open-file, [type=datetime-local]"))
			return false;
		const { x, y, width, height } = element.getBoundingClientRect();
		const top = document.elementFromPoint(x + width / 2, y + height / 2);
		return width > 0 && top && (element.contains(top) || top.contains(element));
	});
	const box = on[Math.floor(part * on.length)]?.getBoundingClientRect();
	/* Of a canvas any place. */
	const inside = 0.1 + 0.8 * ((part * on.length) % 1);
	return box ? { x: box.x + box.width * (box.width > 300 ? inside : 0.5), y: box.y + box.height *
		(box.height > 200 ? inside : 0.5) } : null;
}, [clickable, share]);

async function act(page, random) {
	const dice = random();
	const part = random();
	if (dice < 0.45) {
		const at = await somewhere(page, part);
		if (at)
			await page.mouse.click(at.x, at.y, { button: dice < 0.03 ? "right" : "left" });
	} else if (dice < 0.88) {
		await page.keyboard.press(KEYS[Math.floor(part * KEYS.length)]);
	} else if (dice < 0.95) {
		await page.keyboard.type(TEXTS[Math.floor(part * TEXTS.length)]);
	} else {
		await (part < 0.8 ? page.goBack() : page.goForward());
		if (page.url() === "about:blank") // where the walk began
			await page.goForward();
	}
	/* A page that is just being loaded has nothing yet. */
	await page.waitForFunction(() => document.querySelector("#app")?.firstElementChild &&
		document.body.innerText.trim().length > 20);
}

const stateOf = async (page) => {
	await painted(page);
	const { root } = await firn(page, "profile");
	return { place: await firn(page, "place"), focus: await firn(page, "focus"), root };
};
const graphOf = async (page) => {
	await page.mouse.move(2, 2);
	await settled(page);
	return (await page.locator(".flame-base").count()) ? page.locator(".flame-base").first().screenshot() : null;
};

/* What the browser says of answers that say no: of a source that is not there, a range that is none. */
const expected = /status of (400|404)/;

test(`${ACTIONS} actions of a random walk: no error, and each address opens the same elsewhere`,
	{ timeout: 600_000 }, () => withPage({ permissions: ["clipboard-read", "clipboard-write"] },
		async (page, complaints) => {
			const random = randomNumbers(SEED);
			await open(page, placeOf("grown"));
			for (let action = 1; action <= ACTIONS; action++) {
				await act(page, random);
				const wrong = complaints.filter((said) => !expected.test(said));
				assert.deepEqual(wrong, [], `action ${action}, seed ${SEED}, at ${page.url()}`);
				if (action % EACH)
					continue;
				if (!(await firn(page, "profile").catch(() => null))?.root ||
					new URL(page.url()).pathname !== base.pathname) {
					await open(page, placeOf("known"));
					continue;
				}
				const url = page.url();
				assert.ok(url.length < 2000, url);
				const seen = await stateOf(page);
				const storageState = await page.context().storageState();
				const context = await page.context().browser()
					.newContext({ viewport: page.viewportSize(), storageState });
				const other = await context.newPage();
				await other.goto(url);
				assert.deepEqual(await stateOf(other), seen, url);
				await page.reload();
				await painted(page);
				const [here, there] = [await graphOf(page), await graphOf(other)];
				assert.ok(here === there || here.equals(there), `the pictures of ${url} differ`);
				await context.close();
			}
			complaints.splice(0);
		}));
