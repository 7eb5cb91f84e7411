// SPDX-License-Identifier: Apache-2.0
/*
 * fold - removes the C frames of an interpreter (kinds "...-runtime") from a language's stacks. Their values count for
 * the language's function that they work for.
 */
import { GROUP, KINDS, TRIMMED, type Profile } from "./profile";
import { sumFunctions } from "./top";
import { TreeBuilder } from "./tree_builder";

const RUNTIME = /-runtime$/;
const isRuntimeKind = KINDS.map((kind) => RUNTIME.test(kind));

/* Of the interpreter itself: not a value of group-by, not a rest. */
const isRuntime = ({ func, flags, functions }: Profile, node: number): boolean =>
	node > 0 && !(flags[node]! & (GROUP | TRIMMED)) && isRuntimeKind[functions.kind[func[node]!]!] === true;

/* "cpython-runtime" works for "python". */
const isLanguageKind = KINDS.map((kind) =>
	!RUNTIME.test(kind) && KINDS.some((other) => RUNTIME.test(other) && other.replace(RUNTIME, "").endsWith(kind)));

/* Nodes with a function of the language above or below them: an interpreter that only starts or collects has none. */
function servesLanguage({ count, parent, func, functions }: Profile): Uint8Array {
	const serves = new Uint8Array(count);
	const speaks = (node: number) => isLanguageKind[functions.kind[func[node]!]!] === true;
	for (let node = count - 1; node > 0; node--)
		if (serves[node] || speaks(node))
			serves[parent[node]!] = serves[node] = 1;
	const above = new Uint8Array(count);
	for (let node = 1; node < count; node++) {
		above[node] = above[parent[node]!] || speaks(parent[node]!) ? 1 : 0;
		serves[node] ||= above[node]!;
	}
	return serves;
}

/* `source` itself when nothing of it is to be folded. */
export function foldRuntimes(source: Profile): Profile {
	const { count, parent, func, flags, self, functions } = source;
	if (!functions.kind.some((kind) => isRuntimeKind[kind]))
		return source;
	const serves = servesLanguage(source);
	const builder = new TreeBuilder();
	const at = new Uint32Array(count);
	let folded = 0;
	builder.add(0, self[0]!);
	for (let node = 1; node < count; node++) {
		const above = at[parent[node]!]!;
		const isFolded = serves[node] && isRuntime(source, node);
		folded += Number(isFolded);
		at[node] = isFolded ? above : builder.child(above, func[node]!, flags[node]!);
		builder.add(at[node]!, self[node]!);
	}
	if (!folded)
		return source;
	const { profile } = builder.finish(source.header, functions);
	sumFunctions(profile);
	return { ...profile, folded };
}
