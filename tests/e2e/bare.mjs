// SPDX-License-Identifier: Apache-2.0
/*
 * bare - a tab of a browser that nothing watches: what it weighs is its own. (Playwright has the tab keep what it
 * fetched, up to 100 MB of it.) Spoken to through pipes, in the protocol that debuggers speak.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/* What a tab's process has to itself, its worker included, in MiB: the largest of the browser's renderers. */
export function memoryOf({ processInfo }) {
	const own = ({ id }) => {
		const said = readFileSync(`/proc/${id}/smaps_rollup`, "utf8");
		return Number(/^Private_Dirty: *(\d+)/m.exec(said)[1]);
	};
	return Math.max(...processInfo.filter(({ type }) => type === "renderer").map(own)) / 1024;
}

export async function bareTab(url) {
	const folder = mkdtempSync(path.join(tmpdir(), "firn-tab-"));
	const options = ["--headless", "--no-sandbox", "--no-first-run", "--remote-debugging-pipe",
		`--user-data-dir=${folder}`, "--window-size=1600,1000", "about:blank"];
	const child = spawn(process.env.FIRN_CHROMIUM ?? "/usr/bin/chromium", options,
		{ stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
	const waiting = new Map();
	let rest = "";
	child.stdio[4].setEncoding("utf8").on("data", (text) => {
		const parts = (rest + text).split("\0");
		rest = parts.pop();
		for (const { id, error, result } of parts.map((part) => JSON.parse(part)).filter(({ id }) => id)) {
			const { resolve, reject } = waiting.get(id);
			waiting.delete(id);
			if (error)
				reject(new Error(error.message));
			else
				resolve(result);
		}
	});
	let messages = 0;
	const send = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
		waiting.set(++messages, { resolve, reject });
		child.stdio[3].write(`${JSON.stringify({ id: messages, method, params, sessionId })}\0`);
	});
	const { targetId } = await send("Target.createTarget", { url });
	const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
	const expression = "document.readyState === 'complete' && location.protocol.startsWith('http')";
	/* Until the page is there, what is asked is lost with the one before. */
	while (!(await send("Runtime.evaluate", { expression }, sessionId).catch(() => null))?.result.value)
		await new Promise((resolve) => setTimeout(resolve, 50));

	return {
		/* The value of an expression, awaited. */
		async evaluate(expression) {
			const { result, exceptionDetails } = await send("Runtime.evaluate",
				{ expression, awaitPromise: true, returnByValue: true }, sessionId);
			if (exceptionDetails)
				throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
			return result.value;
		},
		send: (method, params) => send(method, params, sessionId),
		memory: async () => memoryOf(await send("SystemInfo.getProcessInfo")),
		async close() {
			const ended = new Promise((resolve) => child.once("exit", resolve));
			child.kill();
			await ended;
			rmSync(folder, { recursive: true, force: true });
		},
	};
}
