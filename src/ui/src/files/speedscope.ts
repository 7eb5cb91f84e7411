// SPDX-License-Identifier: Apache-2.0
/*
 * speedscope - speedscope's JSON (https://www.speedscope.app/file-format-schema.json): profiles of
 * type "sampled" and "evented". Profiles with the same unit add up, and the label "profile"
 * distinguishes them; profiles with another unit than the first are refused. Times become nanoseconds.
 */
import { DEPTH_MAX, FileError, Tables } from "./tables";

interface SpeedscopeProfile {
	type?: string;
	name?: string;
	unit?: string;
	startValue?: number;
	samples?: number[][];
	weights?: number[];
	events?: { type: "O" | "C"; at: number; frame: number }[];
}

export interface SpeedscopeFile {
	shared?: { frames?: { name?: string; file?: string; line?: number }[] };
	profiles?: SpeedscopeProfile[];
}

const NS: Record<string, number> = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };

const fail = (what: string, where: string): never => {
	throw new FileError("speedscope", what, where);
};

class Reader {
	readonly tables = new Tables();
	private functions: number[];
	private unit: string | undefined;
	private scale = 1;
	private labels = 0;

	constructor(file: SpeedscopeFile) {
		const frames = file.shared?.frames;
		if (!Array.isArray(frames)) fail("shared.frames is no array", "");
		this.functions = frames!.map(({ name, file: path }) =>
			this.tables.function({ name: name || "(anonymous)", file: path ?? "" }),
		);
	}

	private begin(unit: string | undefined, where: string): void {
		if (typeof unit !== "string") fail("there is no unit", where);
		if (this.unit !== undefined && unit !== this.unit)
			fail(`the unit is ${unit}, that of others ${this.unit}`, where);
		if (this.unit !== undefined) return;
		this.unit = unit!;
		this.scale = NS[unit!] ?? 1;
		this.tables.types = [
			NS[unit!]
				? { type: "cpu", unit: "nanoseconds" }
				: unit === "bytes"
					? { type: "space", unit: "bytes" }
					: { type: "samples", unit: "count" },
		];
	}

	private add(stack: number, weight: number, where: string): void {
		const value = weight * this.scale;
		if (!(value >= 0 && value < 2 ** 53)) fail("a weight is negative or too large", where);
		this.tables.add(stack, this.labels, [Math.round(value)]);
	}

	private functionAt(frame: number, where: string): number {
		const fn = this.functions[frame];
		return fn ?? fail(`frame ${frame} is not there`, where);
	}

	private sampled({ samples, weights }: SpeedscopeProfile, where: string): void {
		if (!Array.isArray(samples) || !Array.isArray(weights) || samples.length !== weights.length)
			fail("there are not as many weights as samples", where);
		samples!.forEach((frames, index) => {
			const here = `${where}, sample ${index}`;
			let stack = 0;
			for (const frame of frames.slice(0, DEPTH_MAX))
				stack = this.tables.stack(stack, this.functionAt(frame, here));
			this.add(stack, weights![index]!, here);
		});
	}

	/* What passed since the last event was spent in the stack that was open. */
	private evented({ events, startValue }: SpeedscopeProfile, where: string): void {
		const stacks = [0];
		const open: number[] = [];
		let at = startValue ?? 0;
		(Array.isArray(events) ? events : []).forEach((event, index) => {
			const here = `${where}, event ${index}`;
			const stack = stacks[stacks.length - 1]!;
			if (event.at !== at && stack) this.add(stack, event.at - at, here);
			at = event.at;
			const fn = this.functionAt(event.frame, here);
			if (event.type === "O" && open.length < DEPTH_MAX) {
				open.push(event.frame);
				stacks.push(this.tables.stack(stack, fn));
			} else if (event.type === "C" && open[open.length - 1] === event.frame) {
				open.pop();
				stacks.pop();
			} else fail("events do not nest", here);
		});
	}

	read(profile: SpeedscopeProfile, index: number, several: boolean): void {
		const where = `profile ${index}`;
		this.begin(profile.unit, where);
		if (several) this.labels = this.tables.labels([["profile", profile.name || where]]);
		if (profile.type === "sampled") this.sampled(profile, where);
		else if (profile.type === "evented") this.evented(profile, where);
		else fail("it is neither sampled nor evented", where);
	}
}

export function decodeSpeedscope(file: SpeedscopeFile): Tables {
	const profiles = file.profiles ?? [];
	const reader = new Reader(file);
	profiles.forEach((profile, index) => reader.read(profile, index, profiles.length > 1));
	if (!profiles.length) fail("there is no profile in it", "");
	return reader.tables;
}
