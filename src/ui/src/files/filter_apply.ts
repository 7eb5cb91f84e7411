// SPDX-License-Identifier: Apache-2.0
/*
 * filter_apply - the filters of docs/api.md on stacks and frames of a file, with the server's meaning
 * (server/query/tree/filter.h, server/query/shape/filter_apply.c).
 */
import { KINDS } from "../model/profile";
import type { FrameText, Tables } from "./tables";

interface Condition {
	negated: boolean;
	fits(frame: FrameText): boolean;
}

interface Filter {
	action: string;
	conditions: Condition[];
}

const ACTIONS: Record<string, string> = {
	SS: "show-stack",
	HS: "hide-stack",
	SFF: "show-from",
	SF: "show-frame",
	HF: "hide-frame",
};
/* As the server calls them. */
const KIND_NAMES: Record<string, string> = { python: "cpython", node: "v8js", lua: "luajit" };
const CONDITION =
	new RegExp([
		/\s*(?:(function|system_name|binary|file|kind|address|line)\s*(!\*=|!\^=|=~|!~|\*=|\^=|!=|=))?/,
		/\s*(?:"((?:\\["\\]|[^"])*)"|([^,;"][^,;]*))\s*/,
	].map(({ source }) => source).join(""), "y");

const baseName = (path: string) => path.slice(path.lastIndexOf("/") + 1);

function textOf(field: string, value: string, frame: FrameText): string {
	if (field === "system_name") return frame.systemName || frame.name;
	if (field === "binary") return value.includes("/") ? (frame.mapping ?? "") : baseName(frame.mapping ?? "");
	if (field === "file") return frame.file ?? "";
	if (field === "kind") {
		const name = KINDS[frame.kind ?? 0]!;
		return KIND_NAMES[name] ?? name;
	}
	return frame.name;
}

function condition(field: string, operator: string, value: string): Condition {
	const negated = operator.startsWith("!");
	const plain = operator.replace("!", "") || "=";
	if (field === "address" || field === "line")
		throw new Error(`filters by ${field} need the server: files opened here do not keep it`);
	const tests: Record<string, (text: string) => boolean> = {
		"=": (text) => text === value,
		"*=": (text) => text.includes(value),
		"^=": (text) => text.startsWith(value),
	};
	let test = tests[plain];
	if (plain === "=~" || plain === "~") {
		const pattern = new RegExp(`^(?:${value})$`, "s");
		test = (text) => pattern.test(text);
	}
	return { negated, fits: (frame) => test!(textOf(field, value, frame)) };
}

export function parseFilter(text: string): Filter[] {
	const filters: Filter[] = [];
	let at = 0;
	while (text.slice(at).trim()) {
		const [whole = "", word = ""] = /^\s*([A-Za-z-]+):?/.exec(text.slice(at)) ?? [];
		const action = ACTIONS[word] ?? word;
		if (!Object.values(ACTIONS).includes(action))
			throw new Error(
				`filter "${text}": column ${at + 1}: expected show-stack, hide-stack, show-from, ` +
					"show-frame or hide-frame",
			);
		at += whole.length;
		const conditions: Condition[] = [];
		do {
			CONDITION.lastIndex = at;
			const [all, field = "function", operator = "*=", quoted, bare] = CONDITION.exec(text) ?? [];
			if (all === undefined) throw new Error(`filter "${text}": column ${at + 1}: expected a value`);
			conditions.push(
				condition(
					field,
					operator,
					quoted === undefined ? bare!.trim() : quoted.replace(/\\(["\\])/g, "$1"),
				),
			);
			at += all.length;
		} while (text[at] === "," && ++at);
		if (text[at] === ";") at++;
		filters.push({ action, conditions });
	}
	return filters;
}

export interface AppliedFilters {
	/* Whether frames of a stack are shown; by stack of the tables. */
	showsFrame: Uint8Array;
	showsStack(stack: number): boolean;
}

const ofStacks = ({ action }: Filter) => action === "show-stack" || action === "hide-stack";

/* A bit per filter: whether some frame meets it; and whether one breaks a negated condition. */
export function applyFilters(tables: Tables, texts: readonly string[]): AppliedFilters {
	const filters = texts.flatMap(parseFilter);
	const maskOf = (action: string) =>
		filters.reduce((mask, filter, at) => mask | (filter.action === action ? 1 << at : 0), 0);
	const [from, only, hidden] = [maskOf("show-from"), maskOf("show-frame"), maskOf("hide-frame")];
	const matched = new Int32Array(tables.functions.length);
	const broken = new Int32Array(tables.functions.length);
	tables.functions.forEach((frame, fn) =>
		filters.forEach((filter, at) => {
			const apart = filter.conditions.filter(({ negated }) => negated && ofStacks(filter));
			const near = filter.conditions.filter((each) => !apart.includes(each));
			if (near.length && near.every(({ negated, fits }) => fits(frame) !== negated))
				matched[fn]! |= 1 << at;
			if (apart.some(({ fits }) => fits(frame))) broken[fn]! |= 1 << at;
		}),
	);
	const { count, a: above, b: functions } = tables.stacks;
	const matchedOf = new Int32Array(count);
	const brokenOf = new Int32Array(count);
	const showsFrame = new Uint8Array(count);
	for (let stack = 1; stack < count; stack++) {
		const own = matched[functions[stack]!]!;
		matchedOf[stack] = matchedOf[above[stack]!]! | own;
		brokenOf[stack] = brokenOf[above[stack]!]! | broken[functions[stack]!]!;
		const shown = (matchedOf[stack]! & from) === from && !(own & hidden) && (own & only) === only;
		showsFrame[stack] = shown ? 1 : 0;
	}
	const meets = (filter: Filter, at: number, stack: number) => {
		const positive = filter.conditions.some(({ negated }) => !negated);
		return (!positive || (matchedOf[stack]! & (1 << at)) !== 0) && !(brokenOf[stack]! & (1 << at));
	};
	return {
		showsFrame,
		showsStack: (stack) =>
			(matchedOf[stack]! & from) === from &&
			filters.every(
				(filter, at) =>
					!ofStacks(filter) ||
					meets(filter, at, stack) === (filter.action === "show-stack"),
			),
	};
}
