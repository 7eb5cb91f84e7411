// SPDX-License-Identifier: Apache-2.0
/* json - JSON.parse with errors that name the byte. */
import { FileError } from "./tables";

const TOKEN = new RegExp(
	`[ \\t\\n\\r]*(?:${[
		/([{}[\],:])/,
		/("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")/,
		/(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)/,
		/(true|false|null)/,
		/$/,
	].map(({ source }) => source).join("|")})`,
	"y",
);

/* Index of the first character that is wrong; only asked for texts that are. */
function firstFault(text: string): number {
	const open: string[] = [];
	let at = 0;
	/* What may come: a value, a key, the end of what is open, or what stands between. */
	let expect: "value" | "key" | "colon" | "more" = "value";
	let empty = false;
	for (;;) {
		TOKEN.lastIndex = at;
		const found = TOKEN.exec(text);
		const from = at + (/[ \t\n\r]*/y.exec(text.slice(at, at + 4096))?.[0].length ?? 0);
		if (!found || (!found[1] && !found[2] && !found[3] && !found[4])) return from;
		at = TOKEN.lastIndex;
		const mark = found[1] ?? "";
		const isText = found[2] !== undefined;
		const isValue = isText || found[3] !== undefined || found[4] !== undefined;
		const closes = (mark === "}" || mark === "]") && open[open.length - 1] === (mark === "}" ? "{" : "[");
		if (closes && (expect === "more" || empty)) {
			open.pop();
			expect = "more";
		} else if (expect === "key" && isText) expect = "colon";
		else if (expect === "colon" && mark === ":") expect = "value";
		else if (expect === "value" && (mark === "{" || mark === "[")) {
			open.push(mark);
			expect = mark === "{" ? "key" : "value";
			empty = true;
			continue;
		} else if (expect === "value" && isValue) expect = "more";
		else if (expect === "more" && mark === "," && open.length)
			expect = open[open.length - 1] === "{" ? "key" : "value";
		else return from;
		empty = false;
	}
}

export function parseJson(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		const byte = new TextEncoder().encode(text.slice(0, firstFault(text))).length;
		throw new FileError(
			"JSON",
			byte >= text.length ? "it ends too early" : "it is damaged",
			`at byte ${byte}`,
		);
	}
}
