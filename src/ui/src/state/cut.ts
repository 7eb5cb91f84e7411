// SPDX-License-Identifier: Apache-2.0
/*
 * cut - the callers and callees of a function, cut out of the profile on screen. A worker thread does it, because a
 * function that occurs everywhere has the whole profile as callers and callees.
 */
import { type ReadonlySignal, effect, signal } from "@preact/signals";
import { cutOut } from "../data/decoder";
import type { Sandwich } from "../model/invert";
import { type Profile, functionName } from "../model/profile";
import { profile } from "./session";

export interface Cut extends Sandwich {
	name: string;
	/* Its first function; 0 when the profile has none of that name. */
	fn: number;
	/* What it was cut out of. */
	of: Profile;
}

async function cut(of: Profile, name: string): Promise<Cut> {
	const wanted = new Uint8Array(of.functions.count);
	for (let fn = 1; fn < wanted.length; fn++)
		wanted[fn] = functionName(of, fn) === name ? 1 : 0;
	return { name, fn: Math.max(0, wanted.indexOf(1)), of, ...(await cutOut(of, wanted)) };
}

/*
 * The cut of the function that `name` names, null when there is nothing to cut, undefined before the first is there.
 * The last one stays until the next is there; `stop` ends it.
 */
export function followCut(name: ReadonlySignal<string>): {
	shown: ReadonlySignal<Cut | null | undefined>; stop(): void;
} {
	const shown = signal<Cut | null | undefined>(undefined);
	let newest = 0;
	const stop = effect(() => {
		const [current, wanted] = [profile.value, name.value];
		const mine = ++newest;
		if (!current)
			return;
		if (current.sides || !wanted) {
			shown.value = current.sides ? undefined : null;
			return;
		}
		cut(current, wanted).then((next) => {
			if (mine === newest)
				shown.value = next;
		}, () => undefined);
	});
	return { shown, stop: () => {
		newest++;
		stop();
	} };
}
