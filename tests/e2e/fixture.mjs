// SPDX-License-Identifier: Apache-2.0
/* fixture - what fixture_test's server is sent (`node fixture.mjs`), and the places where the specs look for it. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { grownProfile, pprof } from "./generated.mjs";

export const run = promisify(execFile);
export const TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
export const MINUTE = 60_000;
/* The same for every program of a run. */
export const NOW = Math.floor(Number(process.env.FIRN_NOW ?? Date.now()) / MINUTE) * MINUTE;
export const AT = { before: NOW - 90 * MINUTE, now: NOW - 30 * MINUTE };
const spanOf = (at) => ({ from: at - MINUTE, to: at + 2 * MINUTE });
export const queryOf = (job) => `?query=${encodeURIComponent(`${TYPE}{job="${job}"}`)}`;
export const placeOf = (job, at = AT.now) => `${queryOf(job)}&from=${spanOf(at).from}&to=${spanOf(at).to}`;
export const comparedOf = (job) =>
	`${placeOf(job)}&view=compare&base_from=${spanOf(AT.before).from}&base_to=${spanOf(AT.before).to}`;
export const compared = comparedOf("known");

const binary = "/usr/bin/shop";
const known = ["main", "serve", "json::Parser::parse", "json_value", "deflate", "write_log", "idle"]
	.map((name, index) => ({ name, file: `src/${name.split(":")[0]}.cc`, line: 10 * index + 1, binary }));
const knownStacks = (deflate) => [
	{ path: [0, 1, 2], samples: 400 }, { path: [0, 1, 2, 3], samples: 300 },
		{ path: [0, 1, 2, 3, 3], samples: 200 },
	{ path: [0, 1, 4], samples: deflate }, { path: [0, 1, 5], samples: 600 }, { path: [0, 6], samples: 500 },
];
/* As much in all, but elsewhere; and a little of what may be noise. */
const movedStacks = (deflate, write, idle) => [
	{ path: [0, 1, 4], samples: deflate }, { path: [0, 1, 5], samples: write }, { path: [0, 6], samples: idle },
	{ path: [0, 1, 2], samples: 10_000 - deflate - write - idle },
];
const LONG = `long_${"name_".repeat(2000)}end`;
export const HOSTILE = ["<script>alert(1)</script>", "\u202Eمرحبا بالعالم", LONG, "nul\0byte\u0001",
	"日本語の関数",
	"&lt;b&gt;\"'`${x}"];

async function send(name, labels, profile) {
	const file = path.join(process.env.FIRN_FOLDER, `${name}.pb.gz`);
	writeFileSync(file, pprof(profile));
	const given = labels.flatMap((label) => ["--label", label]);
	await run(process.env.FIRN, ["push", "--server", process.env.FIRN_URL, "--name", "process_cpu", ...given,
		file]);
}

/* Many binaries, and the lightest of them alone. */
const PARTS = 12;
const parts = Array.from({ length: PARTS }, (_, at) =>
	({ name: `work_${at}`, binary: `/usr/lib/shop/libpart_${at}.so` }));
const partStacks = (list) => list.map((at) => ({ path: [at], samples: 100 * (PARTS - at) }));

/* Of one other type: a name, and a unit or none. */
async function sendOther(name, unit, value) {
	const file = path.join(process.env.FIRN_FOLDER, `${name}.pb.gz`);
	writeFileSync(file, pprof({ types: [[name, unit]], functions: known.slice(0, 2), at_ms: AT.now, seconds: 10,
		stacks: [{ path: [0, 1], values: [value] }] }));
	await run(process.env.FIRN, ["push", "--server", process.env.FIRN_URL, "--name", name, file]);
}

async function sendAll() {
	await sendOther("energy", "microjoules", 123_456_789);
	await sendOther("widgets", "", 12_340);
	await send("parts", ["job=parts"],
		{ functions: parts, stacks: partStacks([...parts.keys()]), at_ms: AT.now, seconds: 10 });
	await send("last-parts", ["job=last-parts"],
		{ functions: parts, stacks: partStacks([6, 7]), at_ms: AT.now, seconds: 10 });
	for (const [name, deflate] of [["before", 1000], ["now", 1500]])
		await send(name, ["job=known", "team=a \"b\", {c}"],
			{ functions: known, stacks: knownStacks(deflate), at_ms: AT[name], seconds: 10 });
	for (const [name, ...samples] of [["before", 6000, 2000, 30], ["now", 2000, 6000, 45]])
		await send(`moved-${name}`, ["job=moved"],
			{ functions: known, stacks: movedStacks(...samples), at_ms: AT[name], seconds: 10 });
	for (const [name, own] of [["before", 3000], ["now", 5000]]) {
		const stacks = [
			{ path: [0, 1, 4], samples: own }, { path: [0, 1, 4, 5], samples: 2000 },
			{ path: [0, 1, 2], samples: 8000 - own },
		];
		await send(`nested-${name}`, ["job=nested"],
			{ functions: known, stacks, at_ms: AT[name], seconds: 10 });
	}
	await send("other", ["job=known", "team=Größe 日本"],
		{ functions: known, stacks: [{ path: [0, 6], samples: 300 }], at_ms: AT.now - MINUTE * 10,
			seconds: 10 });
	await send("teamless", ["job=known"],
		{ functions: known, stacks: [{ path: [0, 6], samples: 100 }], at_ms: AT.now - MINUTE * 15,
			seconds: 10 });
	await send("hostile", ["job=hostile"], {
		functions: HOSTILE.map((name) => ({ name, file: "<img src=x>.c", line: 1, binary: "/bin/<b>" })),
		stacks: HOSTILE.map((_, index) =>
			({ path: Array.from({ length: index + 1 }, (_, at) => at), samples: 50 })),
		at_ms: AT.now, seconds: 10,
	});
	await send("grown", ["job=grown"], { ...grownProfile(20_000, 600), at_ms: AT.now, seconds: 10 });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
	await sendAll();
