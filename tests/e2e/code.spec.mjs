// SPDX-License-Identifier: Apache-2.0
/*
 * Where in its source a function spends: heat that adds up, a file of 100,000 lines, and what there is of programs
 * whose source or debug information is not there.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { MINUTE, NOW, placeOf, run } from "./fixture.mjs";
import { Message } from "./generated.mjs";
import { clickFrame, firn, open, picture, taskTimes, withPage } from "./page.mjs";

const LINES = 100_000;
const HOT = 60_000;
const folder = process.env.FIRN_FOLDER;
const AT = NOW - 30 * MINUTE;
const PERIOD_NS = 10_000_000;

/* `hot` begins at line HOT, and calls `callee`; all around it is text that nobody runs. */
function sourceText(name) {
	const lines = Array.from({ length: LINES }, (_, index) => `/* line ${index + 1} says nothing */`);
	lines.splice(HOT - 3, 2, `const char *own_name = "${name}"; volatile int sum;`,
		"__attribute__((noinline)) void callee(void) { sum++; }");
	lines.splice(HOT - 1, 6, "__attribute__((noinline)) void hot(void) {", "\tsum += 1; /* needle */",
		"\tsum *= 3;", "\tcallee();", "}", "int main(void) { hot(); return own_name[0]; }");
	lines[90_000] = "/* another needle */";
	return `${lines.join("\n")}\n`;
}

/* Builds and tells its build id, and an address of each of the lines named. */
async function build(name, options, lines) {
	const source = path.join(folder, `${name}.c`);
	const program = path.join(folder, name);
	writeFileSync(source, sourceText(name));
	await run("gcc", ["-O0", "-no-pie", "-g", "-Wl,--build-id=sha1", "-o", program, source], { cwd: folder });
	const [, buildId] = /Build ID: ([0-9a-f]+)/.exec((await run("readelf", ["-n", program])).stdout);
	const decoded = (await run("objdump", ["--dwarf=decodedline", program])).stdout;
	const addresses = lines.map((line) =>
		Number(new RegExp(`^\\S+ +${line} +(0x[0-9a-f]+)`, "m").exec(decoded)[1]));
	for (const option of options)
		await run("objcopy", [option, program]);
	return { name, program, buildId, addresses };
}

/* Sends samples of addresses alone: `stacks` are { path, samples } with numbers of addresses from the root. */
async function send({ name, program, buildId, addresses }, stacks) {
	const strings = ["", "cpu", "nanoseconds", program, buildId];
	const type = () => new Message().number(1, 1).number(2, 2);
	const profile = new Message().message(1, type());
	for (const { path: frames, samples } of stacks)
		profile.message(2, new Message().packed(1, frames.map((at) => at + 1).reverse())
			.packed(2, [samples * PERIOD_NS]));
	profile.message(3, new Message().number(1, 1).number(2, 0x400000).number(3, 0x4000000).number(5, 3)
		.number(6, 4));
	/* A caller's address is the one that it returns to. */
	const called = new Set(stacks.flatMap(({ path: frames }) => frames.slice(0, -1)));
	addresses.forEach((address, at) => profile.message(4, new Message().number(1, at + 1).number(2, 1)
		.number(3, address + (called.has(at) ? 1 : 0))));
	strings.forEach((text) => profile.bytes(6, Buffer.from(text)));
	profile.number(9, AT * 1e6).number(10, 10e9).message(11, type()).number(12, PERIOD_NS);
	const file = path.join(folder, `${name}.pprof`);
	writeFileSync(file, profile.done());
	await run(process.env.FIRN, ["push", "--server", process.env.FIRN_URL, "--name", "process_cpu", "--label",
		`job=${name}`, file]);
}

const upload = (...rest) => run(process.env.FIRN, ["debuginfo", "upload", "--server", process.env.FIRN_URL, ...rest]);

/* main, three lines of hot, callee. */
const AT_LINES = [HOT + 5, HOT + 1, HOT + 2, HOT + 3, HOT - 1];
const STACKS = [{ path: [0, 1], samples: 50 }, { path: [0, 2], samples: 30 }, { path: [0, 3, 4], samples: 20 }];
const HEAT = [[HOT + 1, 50, 50], [HOT + 2, 30, 30], [HOT + 3, 0, 20]]
	.map(([line, ...values]) => [String(line), ...values]);
const built = {};

before(async () => {
	for (const [name, options] of [["whole", []], ["sourceless", []], ["bare", ["--strip-debug"]]]) {
		built[name] = await build(name, options, AT_LINES);
		await upload(...(name === "whole" ? ["--source", folder] : []), built[name].program);
		await send(built[name], STACKS);
	}
});

const pane = (page) => page.getByRole("group", { name: "Side pane shows" });

async function openHot(page, job) {
	await open(page, placeOf(job));
	await page.waitForFunction(() => window.__firn.frame("hot"));
	await clickFrame(page, await firn(page, "frame", "hot"));
}

/* Rows with a value: [line, self, total] in percent. */
const heat = (table) => table.getByRole("row").evaluateAll((rows) => rows.map((row) => {
	const [self, total, line] = [...row.querySelectorAll("[role=cell]")].map(({ textContent }) => textContent);
	return [line, parseFloat(self) || 0, parseFloat(total) || 0];
}).filter(([, , total]) => total));

test("100,000 lines open at the hottest, its lines add up to the function, and find works",
	() => withPage({}, async (page) => {
		await openHot(page, "whole");
		const table = page.getByRole("table", { name: "Source of hot" });
		const began = Date.now();
		const [spent] = await taskTimes(page, [async () => {
			await pane(page).getByRole("button", { name: "Source" }).click();
			await table.getByRole("row").filter({ hasText: "/* needle */" }).waitFor();
		}]);
		console.log(`# ${LINES} lines: ${spent.toFixed(0)} ms of computing, ${Date.now() - began} ms`);
		assert.ok(spent < 1000, `${spent} ms`);
		assert.equal(await table.getAttribute("aria-rowcount"), String(LINES));
		const lines = await heat(table);
		assert.deepEqual(lines, HEAT);
		const { self, total } = await firn(page, "frame", "hot");
		const { root } = await firn(page, "profile");
		assert.equal(lines.reduce((sum, [, own]) => sum + own, 0), (100 * self) / root);
		assert.equal(lines.reduce((sum, [, , all]) => sum + all, 0), (100 * total) / root);
		await picture(page, "source-long");

		await table.focus();
		await page.keyboard.press("Control+f");
		await page.keyboard.type("needle");
		const status = page.locator(".source-find [role=status]");
		await status.getByText("1 of 2", { exact: true }).waitFor();
		await page.keyboard.press("Enter");
		await status.getByText("2 of 2", { exact: true }).waitFor();
		await table.getByRole("row").filter({ hasText: "another needle" }).and(page.locator(".at")).waitFor();
		await page.keyboard.press("Enter");
		await table.getByRole("row").filter({ hasText: "/* needle */" }).and(page.locator(".at")).waitFor();
		await page.keyboard.press("Shift+Enter");
		await status.getByText("2 of 2", { exact: true }).waitFor();
		await page.getByRole("searchbox", { name: "Find in the text" }).fill("/line 99999 /");
		await status.getByText("1 of 1", { exact: true }).waitFor();
		await table.getByRole("row").filter({ hasText: "line 99999 " }).waitFor();
		await page.getByRole("searchbox", { name: "Find in the text" }).fill("nowhere");
		await status.getByText("not found").waitFor();
		await picture(page, "source-find");
	}));

test("without source: values by line, and how to send it, with the build ID",
	() => withPage({ permissions: ["clipboard-read", "clipboard-write"] }, async (page, complaints) => {
	await openHot(page, "sourceless");
	await pane(page).getByRole("button", { name: "Source" }).click();
	const note = page.getByRole("note");
	await note.getByText(/firn debuginfo upload --source/).waitFor();
	assert.ok((await note.textContent()).includes(built.sourceless.buildId));
	await note.getByRole("button", { name: "Copy command" }).click();
	const copied = await page.evaluate(() => navigator.clipboard.readText());
	assert.match(copied, /^firn debuginfo upload --server http:\/\/\S+ --source \/\S+ \/\S+$/);
	assert.deepEqual(await heat(page.getByRole("table", { name: "Source of hot" })), HEAT);
	/* That a file is not there is all that the browser has to say. */
	assert.ok(complaints.splice(0).every((said) => said.includes("status of 404")));
}));

test("without debug information: the machine code, and why", () => withPage({}, async (page) => {
	await openHot(page, "bare");
	await pane(page).getByRole("button", { name: "Source" }).click();
	await page.getByRole("note").getByText(/has no debug information .* machine code/).waitFor();
	const table = page.getByRole("table", { name: "Machine code of hot" });
	await table.getByRole("row").filter({ hasText: /call/ }).first().waitFor();
	const values = await heat(table);
	assert.equal(values.reduce((sum, [, own]) => sum + own, 0), 80);
	assert.ok(values.every(([, own, all]) => all >= own));
	await picture(page, "source-bare");
}));
