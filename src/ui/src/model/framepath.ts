// SPDX-License-Identifier: Apache-2.0
/*
 * framepath - an identifier of a box that stays valid after a new query: its depth and a hash over
 * the names from the root to it. "12.9f3a6c21" in a link finds the same call path in fresh data, or nothing.
 */
import { type Profile, depthOf, nodeName, pathOf } from "./profile";

const BASIS = 0x811c9dc5;

function mix(hash: number, value: number): number {
	hash = Math.imul(hash ^ value, 0x85ebca6b);
	hash ^= hash >>> 13;
	return Math.imul(hash, 0xc2b2ae35) ^ (hash >>> 16);
}

/* FNV-1a over UTF-16 units. */
export function hashText(text: string): number {
	let hash = BASIS;
	for (let i = 0; i < text.length; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash;
}

export function formatFramePath(profile: Profile, node: number): string {
	if (node === 0)
		return "";
	let hash = BASIS;
	const path = pathOf(profile, node);
	for (const at of path)
		hash = mix(hash, hashText(nodeName(profile, at)));
	return `${path.length - 1}.${(hash >>> 0).toString(16)}`;
}

/* The node that formatFramePath made `text` of: 0 for "", -1 when the profile has no such path. */
export function findFramePath(profile: Profile, text: string): number {
	if (!text)
		return 0;
	const parts = /^(\d{1,6})\.([0-9a-f]{1,8})$/.exec(text);
	if (!parts)
		return -1;
	const depth = Number(parts[1]);
	const wanted = parseInt(parts[2]!, 16);
	if (depth >= profile.rows)
		return -1;
	const end = profile.rowStart[depth + 1]!;
	const names = new Map<number, number>();
	const hashes = new Uint32Array(end);
	hashes[0] = mix(BASIS, hashText(nodeName(profile, 0)));
	for (let node = 1; node < end; node++) {
		const key = profile.func[node]! * 8 + profile.flags[node]!;
		let name = names.get(key);
		if (name === undefined)
			names.set(key, (name = hashText(nodeName(profile, node))));
		hashes[node] = mix(hashes[profile.parent[node]!]! | 0, name);
	}
	for (let node = profile.rowStart[depth]!; node < end; node++)
		if (hashes[node] === wanted)
			return node;
	return -1;
}

/* The same call path of another profile, as far down as it exists there. */
export function followPath(from: Profile, node: number, to: Profile): number {
	const names = pathOf(from, node).map((at) => nodeName(from, at));
	let found = 0;
	for (let depth = 1; depth < names.length && depth < to.rows; depth++) {
		const child = childNamed(to, found, depth - 1, names[depth]!);
		if (child < 0)
			return found;
		found = child;
	}
	return found;
}

function childNamed(profile: Profile, node: number, depth: number, name: string): number {
	const end = profile.rowStart[depth + 2]!;
	for (let at = profile.rowStart[depth + 1]!; at < end; at++)
		if (profile.parent[at] === node && nodeName(profile, at) === name)
			return at;
	return -1;
}

export function samePath(a: Profile, nodeA: number, b: Profile, nodeB: number): boolean {
	return depthOf(a, nodeA) === depthOf(b, nodeB) &&
		formatFramePath(a, nodeA) === formatFramePath(b, nodeB);
}
