// SPDX-License-Identifier: Apache-2.0
/* Colours of comparisons as people without one kind of cones see them, and the categories of names. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { stepColours } from "../../../src/ui/src/flame/theme";
import { colourProfile, packageOf } from "../../../src/ui/src/model/colours";
import { profileOf } from "./encode";

type Triple = [number, number, number];

/* Machado, Oliveira and Fernandes 2009, severity 1, for linear RGB. */
const VISION: Record<string, Triple[]> = {
	all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
	protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
	deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
	tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

const times = (matrix: Triple[], [x, y, z]: Triple) => matrix.map(([a, b, c]) => a * x + b * y + c * z) as Triple;

function linear(colour: string): Triple {
	const parts = colour.startsWith("#")
		? [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) : colour.match(/\d+/g)!.map(Number);
	return parts.map((part) => part / 255).map((part) =>
		(part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as Triple;
}

/* Ottosson's OKLab. */
function oklab(rgb: Triple): Triple {
	const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
		[0.0883024619, 0.2817188376, 0.6299787005]], rgb).map((value) => Math.cbrt(value)) as Triple;
	return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
		[0.0259040371, 0.7827717662, -0.808675766]], cones);
}

function distance(a: string, b: string, vision: string): number {
	const [from, to] = [a, b].map((colour) =>
		oklab(times(VISION[vision]!, linear(colour)).map((part) => Math.min(1, Math.max(0, part))) as Triple));
	return 100 * Math.hypot(...from!.map((part, at) => part - to![at]!));
}

const css = readFileSync(path.join(process.cwd(), "src/style/tokens.css"), "utf8");
const [light, dark] = [css.slice(0, css.indexOf("[data-theme=\"dark\"]")),
	css.slice(css.indexOf("[data-theme=\"dark\"]"))];

for (const [theme, text] of [["light", light], ["dark", dark]] as const)
	test(`more and less differ for every kind of sight, in ${theme}`, () => {
		const read = (name: string) => new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(text)![1]!;
		const steps = stepColours(read("diff-less"), read("diff-same"), read("diff-more"));
		for (const vision of Object.keys(VISION)) {
			const ends = distance(steps[0]!, steps[steps.length - 1]!, vision);
			assert.ok(ends >= 20, `${vision}: the ends differ by ${ends.toFixed(1)}`);
			/* Half as strong is still two colours. */
			const halves = distance(steps[2]!, steps[steps.length - 3]!, vision);
			assert.ok(halves >= 10, `${vision}: at half strength they differ by ${halves.toFixed(1)}`);
		}
	});

test("a package is what the language calls one", () => {
	const cases: [string, string, string, string][] = [
		["net/http.(*conn).serve", "go", "", "net/http"],
		["github.com/a/b.v2.Do", "go", "", "github.com/a/b"],
		["main.main", "go", "", "main"],
		["golang.org/x/net/http2.(*Framer).ReadFrame", "native", "", "golang.org/x/net/http2"],
		["tokio::runtime::Builder::build", "rust", "", "tokio"],
		["<alloc::vec::Vec<T> as core::ops::Drop>::drop", "rust", "", "alloc"],
		["std::vector<int>::push_back(int)", "native", "/usr/include/c++/vector", "std"],
		["com.acme.shop.Cart.fill(int)", "jvm", "", "com.acme.shop"],
		["parse", "python", "/srv/app/reader/json.py", "reader"],
		["malloc", "native", "malloc.c", ""],
	];
	for (const [name, kind, file, wanted] of cases)
		assert.equal(packageOf(name, kind, file), wanted, name);
});

test("a binary has one colour, whoever else is there; of one name twice the folders are shown", () => {
	const binaries = ["/usr/bin/cc1", "/usr/bin/node", "/usr/lib/libc.so.6", "/opt/a/run", "/opt/b/run"];
	const coloursOf = (weights: number[]) => {
		const children = weights.map((self, at) => ({ name: `f${at}`, self, kind: 1, mapping: binaries[at]! }))
			.filter(({ self }) => self > 0);
		return colourProfile(profileOf({ name: "total", children }), "binary", new Map()).categories;
	};
	const slotOf = (weights: number[], label: string) =>
		coloursOf(weights).find((category) => category.label === label)!.slot;
	const alone = slotOf([0, 7, 0, 0, 0], "node");
	for (const weights of [[9, 10, 0, 0, 0], [3, 8, 7, 1, 0], [1, 10, 5, 4, 9]])
		assert.equal(slotOf(weights, "node"), alone, weights.join());
	const labels = coloursOf([1, 1, 1, 1, 1]).map(({ label }) => label);
	assert.deepEqual(labels.filter((label) => label.includes("/")).sort(), ["a/run", "b/run"]);
});

test("what has no binary is coloured by its file, else by what its name begins with", () => {
	const named = {
		"java.util.Formatter.format": "java.util",
		"java.util.ArrayList.<init>": "java.util", "Shop.tax": "Shop",
		"handle": "unknown", "0x1649 [farprogram]": "unknown", "operator<<": "unknown", "(idle)": "unknown",
	};
	const children = [...Object.keys(named).map((name, at) => ({ name, self: 10 + at, kind: 0, file: "" })),
		{ name: "checkout", self: 5, kind: 0, file: "/srv/shop.js" }];
	const { categories, categoryOf } = colourProfile(profileOf({ name: "total", children }), "binary", new Map());
	[...Object.values(named), "shop.js"].forEach((label, at) =>
		assert.equal(categories[categoryOf[at + 1]!]!.label, label));
});
