// SPDX-License-Identifier: Apache-2.0
/*
 * shortname - the most telling form of a frame's name that fits a number of characters: whole,
 * then without template arguments, then without parameters and namespaces, then cut in the middle.
 */

/* Removes balanced <...>; operators and Rust's "<T as U>::f" at the start keep theirs. */
export function dropTemplateArguments(name: string): string {
	if (!name.includes("<") || /operator\s*[<>-]/.test(name))
		return name;
	let out = "";
	let depth = 0;
	for (let i = 0; i < name.length; i++) {
		const char = name[i]!;
		if (char === "<" && (depth > 0 || i > 0))
			depth++;
		else if (char === ">" && depth > 0)
			depth--;
		else if (depth === 0)
			out += char;
	}
	return depth === 0 && out ? out.replace(/::(?=::)/g, "") : name;
}

/* "a::b::c(int)" -> "c", "net/http.(*conn).serve" -> "(*conn).serve". */
export function dropNamespace(name: string): string {
	const parameters = name.indexOf("(", 1);
	const goMethod = name.indexOf(".(");
	let base = parameters > 0 && goMethod < 0 ? name.slice(0, parameters) : name;
	const colons = base.lastIndexOf("::");
	if (colons >= 0)
		base = base.slice(colons + 2);
	else if (/^[\w.\-]+(\/[\w.\-]+)+\./.test(base))
		base = base.slice(base.lastIndexOf("/") + 1);
	return base || name;
}

export function shorten(name: string, room: number): string {
	if (name.length <= room)
		return name;
	const plain = dropTemplateArguments(name);
	if (plain.length <= room)
		return plain;
	const base = dropNamespace(plain);
	if (base.length <= room)
		return base;
	if (room < 3)
		return "";
	const tail = room < 14 ? 0 : Math.floor((room - 1) / 3);
	return `${base.slice(0, room - 1 - tail)}…${tail ? base.slice(-tail) : ""}`;
}
