// SPDX-License-Identifier: Apache-2.0
/* folded - collapsed stacks, "root;child;leaf 12", as stackcollapse-*.pl, inferno and py-spy write them. */
import { eachLine } from "./lines";
import { DEPTH_MAX, FileError, Tables } from "./tables";

const VALUE = /^(.*?)\s+(\d+(?:\.\d+)?)$/;

export async function decodeFolded(text: ReadableStream<string>): Promise<Tables> {
	const tables = new Tables();
	const functions = new Map<string, number>();
	tables.types = [{ type: "samples", unit: "count" }];
	/* Suffixes of flamegraph.pl: _[k] is the kernel's, the others say how a frame was found. */
	const functionOf = (name: string) => {
		let fn = functions.get(name);
		if (fn === undefined) {
			const [, plain, suffix] = /^(.*)_\[([kijw])\]$/s.exec(name) ?? [];
			fn = tables.function({ name: plain ?? name, mapping: suffix === "k" ? "[kernel]" : "" });
			functions.set(name, fn);
		}
		return fn;
	};
	await eachLine(text, (line, number) => {
		const trimmed = line.trim();
		if (!trimmed || trimmed.startsWith("#")) return;
		const [, frames, value] = VALUE.exec(trimmed) ?? [];
		if (frames === undefined)
			throw new FileError("folded stacks", 'this is not "frame;frame VALUE"', `line ${number}`);
		let stack = 0;
		let depth = 0;
		for (const name of frames.split(";"))
			if (name && depth++ < DEPTH_MAX) stack = tables.stack(stack, functionOf(name));
		tables.add(stack, 0, [Math.round(Number(value))]);
	});
	return tables;
}
