// SPDX-License-Identifier: Apache-2.0
/* Type-checks the UI, bundles each *.test.ts with the UI's own esbuild and runs them; prints TAP. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const ui = path.resolve(here, "../../../src/ui");
const require = createRequire(path.join(ui, "package.json"));
const esbuild = createRequire(require.resolve("vite/package.json"))("esbuild");

const tsc = require.resolve("typescript/bin/tsc");
const check = spawnSync(process.execPath, [tsc, "--noEmit", "-p", ui], { encoding: "utf8" });
if (check.status) {
	console.log("TAP version 13\n1..1\nnot ok 1 - types");
	console.log(check.stdout.replace(/^/gm, "# "));
	process.exit(1);
}

const tests = readdirSync(here).filter((name) => name.endsWith(".test.ts"));
const out = mkdtempSync(path.join(tmpdir(), "firn-ui-"));
try {
	await esbuild.build({
		entryPoints: tests.map((name) => path.join(here, name)),
		outdir: out,
		outExtension: { ".js": ".mjs" },
		bundle: true,
		format: "esm",
		platform: "node",
		target: "node18",
		logLevel: "error",
	});
	const files = readdirSync(out).map((name) => path.join(out, name));
	const run = spawnSync(process.execPath, ["--test", "--test-reporter=tap", ...files],
		{ stdio: "inherit", cwd: ui });
	process.exitCode = run.status ?? 1;
} finally {
	rmSync(out, { recursive: true });
}
