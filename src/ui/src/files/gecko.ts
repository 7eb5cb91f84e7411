// SPDX-License-Identifier: Apache-2.0
/*
 * gecko - converts what Firefox itself and `perf script report gecko` write to a processed profile: tables
 * of rows with a schema, names as "function (in library)" or "function (file:line:column)"
 * (github.com/firefox-devtools/profiler, docs-developer/gecko-profile-format.md).
 */
import type { FirefoxFile } from "./firefox";
import { FileError } from "./tables";

interface Rows {
	schema: Record<string, number>;
	data: (number | null)[][];
}

interface GeckoThread {
	name?: string;
	processName?: string;
	pid?: string | number;
	samples?: Rows;
	stackTable?: Rows;
	frameTable?: Rows;
	stringTable?: string[];
}

export interface GeckoFile {
	meta?: FirefoxFile["meta"];
	threads?: GeckoThread[];
	processes?: GeckoFile[];
}

function column(rows: Rows | undefined, name: string, where: string): (number | null)[] {
	const at = rows?.schema?.[name];
	if (at === undefined || !Array.isArray(rows!.data))
		throw new FileError("Firefox profile", `there is no column ${name}`, where);
	return rows!.data.map((row) => row[at] ?? null);
}

/* "main (in /usr/bin/x)" -> [main, /usr/bin/x, ""]; "f (https://a/b.js:3:4)" -> [f, "", https://a/b.js]. */
function placeOf(location: string): [name: string, library: string, file: string] {
	const [, native, library] = /^(.*) \(in (.*)\)$/s.exec(location) ?? [];
	if (native !== undefined) return [native, library!, ""];
	const [, name, file] = /^(.*) \((.*?)(?::\d+){0,2}\)$/s.exec(location) ?? [];
	return file && /[/.:]/.test(file) ? [name!, "", file] : [location, "", ""];
}

function processed(thread: GeckoThread, where: string): NonNullable<FirefoxFile["threads"]>[number] {
	const strings = [...(thread.stringTable ?? [])];
	const ids = new Map<string, number>();
	const id = (text: string) => {
		let found = ids.get(text);
		if (found === undefined) ids.set(text, (found = strings.push(text) - 1));
		return found;
	};
	const places = column(thread.frameTable, "location", where).map((at) => placeOf(strings[at ?? -1] ?? ""));
	const libs = [...new Set(places.map(([, library]) => library).filter(Boolean))];
	const frames = places.map((_, index) => index);
	return {
		name: thread.name,
		processName: thread.processName,
		pid: thread.pid,
		libs: libs.map((path) => ({ path })),
		stringArray: strings,
		funcTable: {
			name: places.map(([name]) => id(name)),
			fileName: places.map(([, , file]) => (file ? id(file) : null)),
			resource: places.map(([, library]) => libs.indexOf(library)),
		},
		resourceTable: { lib: libs.map((_, index) => index) },
		frameTable: { func: frames },
		stackTable: {
			prefix: column(thread.stackTable, "prefix", where),
			frame: column(thread.stackTable, "frame", where).map((frame) => frame ?? -1),
		},
		samples: { stack: column(thread.samples, "stack", where) },
	};
}

/* Every process is a file of its own inside the first. */
export function fromGecko(file: GeckoFile): FirefoxFile {
	const threads = (file.threads ?? []).map((thread, index) => processed(thread, `thread ${index}`));
	const others = (file.processes ?? []).flatMap((other) => fromGecko(other).threads ?? []);
	return { meta: file.meta, threads: [...threads, ...others] };
}
