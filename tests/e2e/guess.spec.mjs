// SPDX-License-Identifier: Apache-2.0
/* What unnamed_names_test has prepared: a function whose class is known, and its name is not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { clickFrame, firn, open, picture, withPage } from "./page.mjs";

const TYPE = "process_cpu:samples:count:cpu:nanoseconds:delta";
const guess = process.env.FIRN_GUESS;

test("Details say what a guessed name is drawn from", () => withPage({}, async (page) => {
	await open(page, `?query=${encodeURIComponent(TYPE)}&from=now-15m&to=now`);
	const frame = await firn(page, "frame", guess);
	assert.ok(frame, `${guess} is not drawn`);
	await clickFrame(page, frame);
	await page.getByRole("button", { name: "Details", exact: true }).click();
	const details = page.getByRole("region", { name: "Details" });
	await details.getByText("A guess (~).").waitFor();
	const [, owner] = /^~(.*)::\?/.exec(guess);
	assert.match(await details.getByRole("note").first().textContent(), new RegExp(`virtual methods of ${owner} `));
	await details.getByText(/^classes\+0x[0-9a-f]+$/).waitFor();
	await picture(page, "guess");
}));
