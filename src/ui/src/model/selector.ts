// SPDX-License-Identifier: Apache-2.0
/*
 * selector - parses the matchers that people type: comm="nginx", node=~"web-.+", with or without
 * braces. It accepts incomplete text to say what could come next (for completion), and names the
 * column of an error.
 */
export type Operator = "=" | "!=" | "=~" | "!~";
export const OPERATORS: readonly Operator[] = ["=", "!=", "=~", "!~"];

export interface Matcher {
	name: string;
	op: Operator;
	value: string;
}

export type TokenKind = "brace" | "name" | "op" | "value" | "comma" | "space" | "wrong";

export interface Token {
	kind: TokenKind;
	at: number;
	text: string;
	/* Of a quoted value or name: whether the closing quote is there. */
	closed: boolean;
}

export type Parsed =
	| { ok: true; matchers: Matcher[]; tokens: Token[] }
	| { ok: false; column: number; reason: string; tokens: Token[] };

const RULES: [TokenKind, RegExp][] = [
	["space", /\s+/y],
	["brace", /[{}]/y],
	["comma", /,/y],
	["op", /=~|!~|!=|=/y],
	["value", /"(?:[^"\\]|\\.)*(?:"|\\?$)/sy],
	["name", /[\p{L}\p{N}_.\-/:]+/uy],
];

export function tokenise(text: string): Token[] {
	const tokens: Token[] = [];
	for (let at = 0; at < text.length; ) {
		let found: Token | undefined;
		for (const [kind, rule] of RULES) {
			rule.lastIndex = at;
			const part = rule.exec(text)?.[0];
			if (part) {
				found = { kind, at, text: part, closed: isClosed(kind, part) };
				break;
			}
		}
		found ??= { kind: "wrong", at, text: text[at]!, closed: true };
		tokens.push(found);
		at += found.text.length;
	}
	return tokens;
}

function isClosed(kind: TokenKind, text: string): boolean {
	if (kind !== "value")
		return true;
	return text.length > 1 && text.endsWith('"') && !/(?<!\\)(\\\\)*\\"$/.test(text);
}

export function unquote(text: string): string {
	const inner = text.replace(/^"/, "").replace(/"$/, "");
	return inner.replace(/\\(.)/gs, (_, char: string) => ({ n: "\n", t: "\t" })[char] ?? char);
}

export function quote(text: string): string {
	const escaped = text.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n").replace(/\t/g, "\\t");
	return `"${escaped}"`;
}

export function quoteName(name: string): string {
	return /^[A-Za-z0-9_.\-/:]+$/.test(name) ? name : quote(name);
}

const EXPECTED = ["a label name", "=, !=, =~ or !~", 'a value in quotes', "a comma"] as const;
enum Step { Name, Op, Value, Comma }

/* Which part of a matcher a token can be at a step; undefined when it cannot stand there. */
function accepts(step: Step, token: Token): boolean {
	switch (step) {
	case Step.Name: return token.kind === "name" || (token.kind === "value" && token.closed);
	case Step.Op: return token.kind === "op";
	case Step.Value: return token.kind === "value" && token.closed;
	case Step.Comma: return token.kind === "comma";
	}
}

export function parseMatchers(text: string): Parsed {
	const tokens = tokenise(text);
	const matchers: Matcher[] = [];
	let step = Step.Name as Step;
	let current: Matcher = { name: "", op: "=", value: "" };
	const wrong = (column: number): Parsed => ({
		ok: false, column, tokens, reason: `expected ${EXPECTED[step]}`,
	});
	const parts = tokens.filter((token) => token.kind !== "space");
	const opened = parts[0]?.text === "{";
	const closed = parts[parts.length - 1]?.text === "}";
	if (closed && !opened)
		return { ok: false, column: parts[parts.length - 1]!.at, tokens, reason: "no { before this }" };
	for (const token of parts.slice(opened ? 1 : 0, closed ? -1 : undefined)) {
		if (!accepts(step, token))
			return wrong(token.at);
		if (step === Step.Name)
			current = {
				name: token.kind === "value" ? unquote(token.text) : token.text,
				op: "=",
				value: "",
			};
		else if (step === Step.Op)
			current.op = token.text as Operator;
		else if (step === Step.Value)
			matchers.push({ ...current, value: unquote(token.text) });
		step = (step + 1) % 4;
	}
	if (step === Step.Op || step === Step.Value)
		return wrong(text.length);
	return { ok: true, matchers, tokens };
}

/* Canonical text, without braces. */
/* Narrowed: what was said of the label before gives way. */
export function withMatcher(matchers: string, added: Matcher): string {
	const parsed = parseMatchers(matchers);
	const others = parsed.ok ? parsed.matchers.filter(({ name }) => name !== added.name) : [];
	return formatMatchers([...others, added]);
}

export function formatMatchers(matchers: readonly Matcher[]): string {
	return matchers.map(({ name, op, value }) => `${quoteName(name)}${op}${quote(value)}`).join(", ");
}

/* What the server is asked: type and matchers in one. */
export function formatSelector(type: string, matchers: string): string {
	const inner = matchers.trim().replace(/^\{/, "").replace(/\}$/, "").trim();
	return inner ? `${type}{${inner}}` : type;
}

export function splitSelector(selector: string): { type: string; matchers: string } {
	const brace = selector.indexOf("{");
	if (brace < 0)
		return { type: selector.trim(), matchers: "" };
	const inner = selector.slice(brace + 1).trim().replace(/\}$/, "").trim();
	return { type: selector.slice(0, brace).trim(), matchers: inner };
}

/* What the caret is in: what to offer, the text typed of it so far, and the span it replaces. */
export interface Completion {
	want: "name" | "op" | "value" | "comma";
	/* For values: the label whose values are wanted. */
	label: string;
	typed: string;
	from: number;
	to: number;
}

export function completionAt(text: string, caret: number): Completion {
	let step = Step.Name as Step;
	let label = "";
	const wants = ["name", "op", "value", "comma"] as const;
	for (const token of tokenise(text)) {
		const end = token.at + token.text.length;
		if (token.at >= caret)
			break;
		if (token.kind === "space" || token.kind === "brace")
			continue;
		if (token.kind === "name" && step === Step.Value && end >= caret)
			return { want: "value", label, typed: token.text, from: token.at, to: end };
		const inside = end > caret || (end === caret && (token.kind === "name" || !token.closed));
		if (inside && (token.kind === "name" || token.kind === "value")) {
			const want = step === Step.Value ? "value" : "name";
			const typed = unquote(text.slice(token.at, caret));
			return { want, label, typed, from: token.at, to: end };
		}
		if (token.kind === "name" || (token.kind === "value" && step === Step.Name)) {
			label = token.kind === "value" ? unquote(token.text) : token.text;
			step = Step.Op;
		} else if (token.kind === "op") {
			step = Step.Value;
		} else if (token.kind === "value") {
			step = Step.Comma;
		} else if (token.kind === "comma") {
			step = Step.Name;
		}
	}
	return { want: wants[step]!, label, typed: "", from: caret, to: caret };
}
