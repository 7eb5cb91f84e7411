// SPDX-License-Identifier: Apache-2.0
/*
 * pairs - what a comparison shows of recordings, looked at in every frame that the browser draws, also while one pair
 * gives way to the next and while a verdict is waited for. Run by pairs_test.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { base, firn, settled, withPage } from "./page.mjs";

const PAIRS = Number(process.env.FIRN_PAIRS ?? 8);

/*
 * In the page: `judge` is called when all of a frame's callbacks are over and nothing of it is drawn yet, which is when
 * the sizes of elements are told. Colours are read from the canvas, words from the elements.
 */
function watch() {
	const notes = { drawn: 0, decided: 0, pending: 0, wrong: [], coloured: 0, verdicts: {} };
	window.notes = notes;
	const { getContext } = HTMLCanvasElement.prototype;
	HTMLCanvasElement.prototype.getContext = function (kind, options) {
		return getContext.call(this, kind, { ...options, willReadFrequently: true });
	};
	const isColoured = ([red, green, blue]) => Math.max(red, green, blue) - Math.min(red, green, blue) > 14;
	const rows = () => [...document.querySelectorAll(".changes .table-body .row")].map((row) => ({
		name: row.querySelector(".cell.name").textContent, word: row.querySelector(".cell.certain").textContent,
	}));
	const RANK = { "yes": 2, "": 2, "…": 2, "noise": 1, "–": 0 };
	const judge = () => {
		const canvas = document.querySelector(".flame-base");
		const sentence = document.querySelector(".sentence")?.textContent ?? "";
		const profile = window.__firn?.profile();
		const table = rows();
		if (!canvas || !sentence || !table.length || !profile?.root || !window.__firn.sides())
			return;
		notes.drawn++;
		const wrong = (text) => notes.wrong.length < 20 &&
			notes.wrong.push(`${new URLSearchParams(location.search).get("query")}: ${text}: ${sentence}`);
		const words = Object.fromEntries(table.map(({ name, word }) => [name, word]));
		if (table.some(({ word }, at) => at && RANK[word] > RANK[table[at - 1].word]))
			wrong(`sure rows are not first: ${JSON.stringify(table)}`);
		const isPending = /Checking what is more than noise/.test(sentence);
		notes[isPending ? "pending" : "decided"]++;
		for (const { name, word } of table) {
			if ((word === "…") !== isPending)
				wrong(`${name} is "${word}"`);
			if (!isPending)
				notes.verdicts[word] = (notes.verdicts[word] ?? 0) + 1;
		}
		const surely = /Surely changed: /.test(sentence);
		const sure = table.filter(({ word }) => word === "yes").map(({ name }) => name);
		if (!isPending && surely !== sure.length > 0)
			wrong(`${sure} are sure`);
		const moved = surely ? [...document.querySelectorAll(".sentence code")].filter((code) =>
			code.closest("span").parentElement.closest("span")).map((code) => code.textContent) : [];
		for (const name of moved)
			if (words[name] !== "yes")
				wrong(`${name} is said to have changed, the table says "${words[name]}"`);
		const host = canvas.getBoundingClientRect();
		const context = canvas.getContext("2d");
		const ratio = canvas.width / host.width;
		const widest = new Set();
		for (const box of window.__firn.frames().sort((a, b) => b.width - a.width)) {
			if (box.width < 8 || box.y < host.top || box.y + box.height > host.bottom)
				continue;
			/* Below the name's letters, within the box. */
			const at = [(box.x - host.x + 3) * ratio, (box.y - host.y + 2) * ratio].map(Math.round);
			const colour = isColoured(context.getImageData(...at, 1, 1).data);
			const ofAll = isPending ? "…" : /which may be noise/.test(sentence) ? "noise" : null;
			const word = box.depth ? words[box.name] : ofAll;
			notes.coloured += Number(colour);
			if (colour && word !== "yes" && word !== null)
				wrong(`${box.name} has a colour, the table says "${word}"`);
			const { words: change } = window.__firn.change(box.name);
			const percent = /new|gone|×/.test(change) ? 100 : Number(/[\d.]+/.exec(change)?.[0] ?? 0);
			if (!widest.has(box.name) && word === "yes" && !colour && percent > 6)
				wrong(`${box.name} (${change}) is grey, the table says "yes"`);
			widest.add(box.name);
		}
	};
	addEventListener("DOMContentLoaded", () => {
		const probe = document.createElement("div");
		probe.style.cssText = "position:fixed;height:1px;visibility:hidden";
		document.documentElement.append(probe);
		new ResizeObserver(() => {
			try {
				judge();
			} catch (error) {
				notes.wrong.push(error.stack);
			}
		}).observe(probe);
		let turn = 0;
		const next = () => {
			probe.style.width = `${1 + (++turn % 2)}px`;
			requestAnimationFrame(next);
		};
		requestAnimationFrame(next);
	});
}

const TYPE = "process_cpu:samples:count:cpu:nanoseconds:delta";
const side = (pair, window) => encodeURIComponent(`${TYPE}{pair="${pair}", window="${window}"}`);
const placeOf = (pair) => `?query=${side(pair, "b")}&base_query=${side(pair, "a")}&view=compare&from=now-1h&to=now` +
	"&base_from=now-1h&base_to=now&live=0";

const NAME = `${PAIRS} recorded pairs: graph, table and sentence agree in all that is drawn`;

test(NAME, () => withPage({}, async (page) => {
	await page.addInitScript(watch);
	/* A verdict takes a while here and there, so that what is drawn until then counts too. */
	let answers = 0;
	await page.route("**/api/v1/diff?*", async (route) => {
		if (answers++ % 3 === 0)
			await new Promise((resolve) => setTimeout(resolve, 400));
		await route.continue();
	});
	await page.goto(new URL(placeOf(0), base).href);
	for (let pair = 0; pair < PAIRS; pair++) {
		const verdict = pair && page.waitForResponse(/significance=1/);
		if (pair)
			await page.evaluate((place) => {
				history.pushState({ zooms: 0 }, "", place);
				dispatchEvent(new PopStateEvent("popstate", { state: { zooms: 0 } }));
			}, placeOf(pair));
		await verdict;
		await page.waitForFunction((wanted) => !window.__firn.busy() && window.__firn.sides() &&
			window.__firn.place().matchers.includes(`pair="${wanted}"`) &&
			!/Checking/.test(document.querySelector(".sentence")?.textContent ?? "Checking"), pair);
		await settled(page);
		await page.keyboard.press("r");
		await settled(page);
	}
	const notes = await page.evaluate(() => window.notes);
	console.log(JSON.stringify({ ...notes, wrong: notes.wrong.length }));
	assert.deepEqual(notes.wrong, []);
	/* It saw verdicts of both kinds, colours, and moments without a verdict. */
	assert.ok(notes.decided >= PAIRS && notes.pending > 0 && notes.coloured > 0, JSON.stringify(notes));
	assert.ok(notes.verdicts.yes > 0 && notes.verdicts.noise > 0, JSON.stringify(notes.verdicts));
	assert.ok((await firn(page, "frames")).length > 5);
}));
