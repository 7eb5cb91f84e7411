// SPDX-License-Identifier: Apache-2.0
/*
 * colours - assigns each function to a category, and each category to a slot of the palette.
 *
 * The eight heaviest categories get a hue, the rest share a grey. The name determines the hue; a category keeps it from
 * one refresh to the next as long as it stays among the eight.
 */
import { KERNEL, KINDS, TRIMMED, type Profile, functionName } from "./profile";
import type { Mode } from "./compare";
import { hashText } from "./framepath";
import type { ColourBy } from "./place";
import { type Verdicts, stepsOf } from "./verdicts";

export const SLOTS = 8;
export const OTHER = SLOTS;

export interface Category {
	key: string;
	label: string;
	slot: number;
	/* Self value of its functions. */
	value: number;
}

export interface Colouring {
	by: ColourBy;
	/* Slot per function, and a number of 0 to 2 that varies the tone within a slot. */
	slots: Uint8Array;
	tones: Uint8Array;
	/* Heaviest first; what shares the grey is summed up in the last. Empty for "function". */
	categories: Category[];
	/* Index into `categories` per function, for highlighting. */
	categoryOf: Uint8Array;
	/* Of a comparison, per node: how much less or more (-5..5), and what one side alone has. */
	steps?: Int8Array;
	hatched?: Uint8Array;
}

/* Remembers slots by category for one session. */
export type SlotMemory = Map<string, number>;

function baseName(path: string): string {
	return path.slice(path.lastIndexOf("/") + 1) || path;
}

const KIND_LABELS: Record<string, string> = {
	native: "native", kernel: "kernel", go: "Go", rust: "Rust", jvm: "JVM", python: "Python",
	ruby: "Ruby", node: "Node.js", php: "PHP", perl: "Perl", dotnet: ".NET", beam: "BEAM",
	lua: "Lua", marker: "marker", "cpython-runtime": "Python's interpreter",
	"v8-runtime": "JavaScript's engine", "ruby-runtime": "Ruby's interpreter",
	"dotnet-runtime": ".NET itself", "php-runtime": "PHP itself",
	"beam-runtime": "Erlang's runtime", "perl-runtime": "Perl itself",
	"lua-runtime": "LuaJIT itself", wasm: "WebAssembly", unknown: "unknown",
};

const UNKNOWN = "kind:0";
const KERNEL_KEY = `kind:${KERNEL}`;
/* The kernel looks the same on every host. */
const KERNEL_SLOT = 0;

/*
 * What a language calls a package: a Go import path, the outermost namespace, a Java package, the folder of an
 * interpreted file. "" when the name does not say: then the binary says more.
 */
export function packageOf(name: string, kind: string, file: string): string {
	if (kind === "go" || /^[\w.-]+(\/[\w.~-]+)+\./.test(name)) {
		const slash = name.lastIndexOf("/", name.indexOf("(") < 0 ? name.length : name.indexOf("("));
		const dot = name.indexOf(".", slash + 1);
		return dot < 0 ? "" : name.slice(0, dot);
	}
	if (kind === "jvm" || kind === "dotnet")
		return name.replace(/\(.*$/, "").split(/[.$]/).slice(0, -2).join(".");
	const outermost = /^[<&*\s]*(?:dyn |mut )?([A-Za-z_]\w*)::/.exec(name);
	if (outermost)
		return outermost[1]!;
	const folder = file.slice(0, file.lastIndexOf("/"));
	return kind === "native" || kind === "unknown" || kind === "rust" ? "" : baseName(folder);
}

/* What an SDK sends of interpreted code names no binary: its file, else the package that its name begins with. */
function withoutBinary(name: string, file: string): [string, string] {
	if (file)
		return [`file:${file}`, baseName(file)];
	const parts = /^[\w$]+(\.[\w$<>]+)+/.exec(name)?.[0].split(".");
	const prefix = parts && (parts.slice(0, -2).join(".") || parts[0]);
	return prefix ? [`package:${prefix}`, prefix] : [UNKNOWN, "unknown"];
}

/* [key, label] of a function's category. */
function categoryKey(profile: Profile, fn: number, by: ColourBy): [string, string] {
	const { functions } = profile;
	const kind = functions.kind[fn]!;
	const kindLabel = KIND_LABELS[KINDS[kind] ?? "unknown"]!;
	const mapping = functions.strings[functions.mapping[fn]!]!;
	if (by === "kind" || (!mapping && kind > 1))
		return [`kind:${kind}`, kindLabel];
	if (kind === KERNEL)
		return [KERNEL_KEY, "kernel"];
	const file = functions.strings[functions.file[fn]!]!;
	if (by === "file" && file)
		return [`file:${file}`, baseName(file)];
	const within = by === "package" ? packageOf(functionName(profile, fn), KINDS[kind] ?? "unknown", file) : "";
	if (within)
		return [`package:${within}`, within];
	return mapping ? [`binary:${mapping}`, baseName(mapping)] : withoutBinary(functionName(profile, fn), file);
}

/*
 * Self value per function. What was trimmed below a function counts as its own, so that a picture
 * trimmed to the screen ranks, and colours, like the full tree that follows it.
 */
function weightsOf(profile: Profile): Float64Array {
	if (!profile.header.trimmed)
		return profile.functionSelf;
	const weights = profile.functionSelf.slice();
	for (let node = 1; node < profile.count; node++)
		if (profile.flags[node]! & TRIMMED)
			weights[profile.func[profile.parent[node]!]!]! += profile.total[node]!;
	return weights;
}

function weigh(profile: Profile, by: ColourBy): { categories: Map<string, Category>; keys: string[] } {
	const categories = new Map<string, Category>();
	const keys = new Array<string>(profile.functions.count).fill(UNKNOWN);
	const weights = weightsOf(profile);
	for (let fn = 1; fn < profile.functions.count; fn++) {
		const [key, label] = categoryKey(profile, fn, by);
		const category = categories.get(key) ?? { key, label, slot: OTHER, value: 0 };
		category.value += weights[fn]!;
		categories.set(key, category);
		keys[fn] = key;
	}
	return { categories, keys };
}

/*
 * What it had, else what its name says, so that another visit finds it in the same colour. Of two that want one slot
 * the heavier has it; the other takes the next that is free.
 */
function giveSlots(heaviest: Category[], memory: SlotMemory): void {
	memory.set(KERNEL_KEY, KERNEL_SLOT);
	const taken = new Set([KERNEL_SLOT]);
	let isKernelsFree = !heaviest.some(({ key }) => key === KERNEL_KEY);
	const wanted = (key: string) => memory.get(key) ?? 1 + ((hashText(key) >>> 4) % (SLOTS - 1));
	const give = (category: Category, slot: number) => {
		category.slot = slot;
		taken.add(slot);
		isKernelsFree &&= slot !== KERNEL_SLOT;
		memory.set(category.key, slot);
	};
	/* Who was there before is not driven out by who is new. */
	const [known, fresh] = [true, false].map((had) => heaviest.filter(({ key }) => memory.has(key) === had));
	for (const category of [...known!, ...fresh!])
		if (category.key === KERNEL_KEY || !taken.has(wanted(category.key)) ||
			(isKernelsFree && memory.get(category.key) === KERNEL_SLOT))
			give(category, wanted(category.key));
	for (const category of heaviest) {
		if (category.slot !== OTHER)
			continue;
		let slot = wanted(category.key);
		for (let tries = 0; taken.has(slot) && tries < SLOTS; tries++)
			slot = (slot + 1) % SLOTS;
		/* The kernel's own, when it is not among them. */
		give(category, taken.has(slot) ? KERNEL_SLOT : slot);
	}
}

/* Binaries and files of one name are told apart by the folders they are in. */
function nameApart(shown: readonly Category[]): void {
	const labels = shown.map(({ label }) => label);
	for (const category of shown) {
		const isShared = labels.indexOf(category.label) !== labels.lastIndexOf(category.label);
		if (isShared && /^(binary|file):/.test(category.key))
			category.label = category.key.split("/").slice(-2).join("/").replace(/^(binary|file):/, "");
	}
}

function tonesOf(profile: Profile): { tones: Uint8Array; hashes: Uint32Array } {
	const tones = new Uint8Array(profile.functions.count);
	const hashes = new Uint32Array(profile.functions.count);
	for (let fn = 0; fn < tones.length; fn++) {
		hashes[fn] = hashText(functionName(profile, fn)) >>> 0;
		tones[fn] = (hashes[fn]! >>> 7) % 3;
	}
	return { tones, hashes };
}

export function colourProfile(profile: Profile, by: ColourBy, memory: SlotMemory): Colouring {
	const { tones, hashes } = tonesOf(profile);
	if (by === "function") {
		const slots = Uint8Array.from(hashes, (hash) => (hash >>> 3) % SLOTS);
		return { by, slots, tones, categories: [], categoryOf: new Uint8Array(slots.length) };
	}
	const { categories, keys } = weigh(profile, by);
	const ranked = [...categories.values()]
		.filter((category) => category.value > 0)
		.sort((a, b) => b.value - a.value || (a.label < b.label ? -1 : 1));
	const heaviest = ranked.filter((category) => category.key !== UNKNOWN).slice(0, SLOTS);
	giveSlots(heaviest, memory);
	nameApart(heaviest);
	const rest = ranked.filter((category) => category.slot === OTHER);
	const value = rest.reduce((sum, category) => sum + category.value, 0);
	const shown = rest.length === 1 ? [...heaviest, rest[0]!]
		: rest.length ? [...heaviest, { key: "other", label: `other (${rest.length})`, slot: OTHER, value }]
		: heaviest;
	const indexOf = new Map(shown.map((category, index) => [category.key, index]));
	const categoryOf = Uint8Array.from(keys, (key) => indexOf.get(key) ?? heaviest.length);
	const slots = Uint8Array.from(keys, (key) => categories.get(key)?.slot ?? OTHER);
	return { by, slots, tones, categories: shown, categoryOf };
}

export function colourChanges(profile: Profile, mode: Mode, verdicts: Verdicts): Colouring {
	const none = new Uint8Array(profile.functions.count);
	const [a, b] = profile.sides!;
	const hatched = new Uint8Array(profile.count);
	for (let node = 0; node < hatched.length; node++)
		hatched[node] = (a.total[node]! > 0) !== (b.total[node]! > 0) ? 1 : 0;
	return {
		by: "binary", slots: none, tones: none, categories: [], categoryOf: none,
		steps: stepsOf(profile, mode, verdicts), hatched,
	};
}
