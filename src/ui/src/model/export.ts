// SPDX-License-Identifier: Apache-2.0
/* export - a profile as text for other tools: folded stacks, and speedscope's JSON. */
import { TRIMMED, type Profile, functionFile, nodeName, pathOf } from "./profile";

/* As the server writes it: ';' is what separates. */
const foldedName = (name: string) => name.replace(/;/g, ":").replace(/[\r\n]+/g, " ");

/* Nodes that have values of their own, with their frames, outermost first. */
function eachStack(profile: Profile, take: (path: number[], value: number) => void): void {
	for (let node = 0; node < profile.count; node++)
		if (profile.self[node]! > 0) take(pathOf(profile, node).slice(1), profile.self[node]!);
}

export function foldedText(profile: Profile): string {
	const lines: string[] = [];
	eachStack(profile, (path, value) => {
		const names = path.map((node) => foldedName(nodeName(profile, node)));
		lines.push(`${names.join(";") || "[no frames]"} ${value}\n`);
	});
	return lines.join("");
}

const UNITS = ["nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"];

export function speedscopeText(profile: Profile, name: string): string {
	const frames: { name: string; file?: string }[] = [];
	const ids = new Map<string, number>();
	const frameOf = (node: number) => {
		const fn = profile.func[node]!;
		const key = profile.flags[node]! & TRIMMED ? "trimmed" : String(fn);
		let id = ids.get(key);
		if (id === undefined) {
			const file = functionFile(profile, fn);
			id = frames.push({ name: nodeName(profile, node), ...(file && { file }) }) - 1;
			ids.set(key, id);
		}
		return id;
	};
	const samples: number[][] = [];
	const weights: number[] = [];
	eachStack(profile, (path, value) => {
		samples.push(path.map(frameOf));
		weights.push(value);
	});
	const { unit } = profile.header;
	return JSON.stringify({
		$schema: "https://www.speedscope.app/file-format-schema.json",
		shared: { frames },
		profiles: [
			{
				type: "sampled",
				name,
				unit: UNITS.includes(unit) ? unit : "none",
				startValue: 0,
				endValue: profile.total[0],
				samples,
				weights,
			},
		],
		name,
		exporter: "firn",
	});
}
