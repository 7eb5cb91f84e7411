// SPDX-License-Identifier: Apache-2.0
/*
 * Builds the bundle: node build.mjs [OUTPUT]. Reproducible: names are hashes of contents. With
 * `--serve API` it serves the sources with live reload instead, API being a running firn's address.
 */
import { fileURLToPath } from "node:url";
import path from "node:path";
import { build, createServer } from "vite";

const root = path.dirname(fileURLToPath(import.meta.url));

/* No paint before the theme is known, and no request for what is inlined. */
const blockRender = {
	name: "block-render",
	transformIndexHtml: {
		order: "post",
		handler: (html) => html.replace(/<script type="module"/, '<script type="module" blocking="render"'),
	},
};

/* Of uPlot's ways to draw a line the chart has but straight ones; the others would be a tenth of the first load. */
const STRAIGHT_ONLY = /\(paths\.(stepped|bars|spline) +=[^)]*\);/g;
const straightLines = {
	name: "straight-lines",
	transform: (code, id) => {
		if (!id.endsWith("uPlot.esm.js"))
			return null;
		if (code.match(STRAIGHT_ONLY)?.length !== 3)
			throw new Error(`${id}: its ways to draw a line are not where they were`);
		return { code: code.replace(STRAIGHT_ONLY, ""), map: null };
	},
};

const config = {
	root,
	base: "./",
	configFile: false,
	cacheDir: path.join(root, "node_modules/.vite"),
	plugins: [blockRender, straightLines],
	esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
	worker: { format: "es" },
};

const [first, second] = process.argv.slice(2);
if (first === "--serve") {
	const api = second ?? "http://127.0.0.1:7070";
	const server = await createServer({ ...config, server: { proxy: { "/api": api } } });
	await server.listen();
	server.printUrls();
} else {
	await build({
		...config,
		logLevel: "warn",
		build: {
			outDir: path.resolve(first ?? path.join(root, "dist")),
			emptyOutDir: true,
			target: "es2022",
			/* Parts fetched later name what they need themselves; the table of it is in the first load. */
			modulePreload: false,
			assetsInlineLimit: 0,
			reportCompressedSize: false,
		},
	});
}
