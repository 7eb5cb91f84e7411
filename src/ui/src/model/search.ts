// SPDX-License-Identifier: Apache-2.0
/*
 * search - finds the functions that match a text, and their share of the profile.
 *
 * Plain text ignores case unless it has a capital letter; /text/ is a regular expression, /text/i
 * one that ignores case. The share is a union: a match below another match counts once, so
 * recursion cannot exceed 100 %.
 */
import { GROUP, TRIMMED, type Profile, functionName } from "./profile";

export type Pattern =
	| { kind: "none" }
	| { kind: "invalid"; reason: string }
	| { kind: "match"; test: (name: string) => boolean };

export interface Matches {
	/* 1 per function that matches. */
	functions: Uint8Array;
	/* Without rows that carry a label's value. */
	functionCount: number;
	nodeCount: number;
	/* Value of all stacks that contain a match. */
	value: number;
}

export function compilePattern(text: string): Pattern {
	const regex = /^\/(.*)\/([ims]*)$/s.exec(text);
	if (regex) {
		if (!regex[1])
			return { kind: "none" };
		try {
			const compiled = new RegExp(regex[1], regex[2]);
			return { kind: "match", test: (name) => compiled.test(name) };
		} catch (error) {
			const reason = error instanceof Error ? error.message : String(error);
			return { kind: "invalid", reason: reason.replace(/^Invalid regular expression: /, "") };
		}
	}
	if (!text)
		return { kind: "none" };
	if (text !== text.toLowerCase())
		return { kind: "match", test: (name) => name.includes(text) };
	return { kind: "match", test: (name) => name.toLowerCase().includes(text) };
}

export function isMatch(profile: Profile, matches: Matches, node: number): boolean {
	return node > 0 && !(profile.flags[node]! & TRIMMED) &&
		matches.functions[profile.func[node]!] === 1;
}

export function findMatches(profile: Profile, test: (name: string) => boolean): Matches {
	const functions = new Uint8Array(profile.functions.count);
	const byString = new Map<number, number>();
	let functionCount = 0;
	for (let fn = 1; fn < functions.length; fn++) {
		const id = profile.functions.name[fn]!;
		let hit = byString.get(id);
		if (hit === undefined)
			byString.set(id, (hit = test(functionName(profile, fn)) ? 1 : 0));
		functions[fn] = hit;
		functionCount += hit;
	}
	const { groups, ...rest } = measure(profile, functions);
	return { functions, functionCount: functionCount - groups.size, ...rest };
}

function measure(
	profile: Profile, functions: Uint8Array,
): { nodeCount: number; value: number; groups: Set<number> } {
	const { count, parent, func, flags, total } = profile;
	const inside = new Uint8Array(count);
	let nodeCount = 0;
	let value = 0;
	const groups = new Set<number>();
	for (let i = 1; i < count; i++) {
		const above = inside[parent[i]!]!;
		const hit = functions[func[i]!]! && !(flags[i]! & TRIMMED);
		if (hit) {
			nodeCount++;
			if (flags[i]! & GROUP)
				groups.add(func[i]!);
			if (!above)
				value += total[i]!;
		}
		inside[i] = above || hit ? 1 : 0;
	}
	return { nodeCount, value, groups };
}

/* The match after (step 1) or before (step -1) `from`, row by row, wrapping round; -1 if none. */
export function nextMatch(profile: Profile, matches: Matches, from: number, step: 1 | -1): number {
	const { count } = profile;
	for (let i = 1; i <= count; i++) {
		const node = (((from + i * step) % count) + count) % count;
		if (isMatch(profile, matches, node))
			return node;
	}
	return -1;
}
