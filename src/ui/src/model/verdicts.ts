// SPDX-License-Identifier: Apache-2.0
/*
 * verdicts - whether a function in a comparison changed by more than noise, by the server's test. The graph's colours,
 * the table, the sentence and every tooltip use this module, so that they cannot disagree.
 */
import type { Significance } from "./answers";
import { type Mode, divisorOf, ratioOf, stepOf } from "./compare";
import { GROUP, TRIMMED, type Profile, functionName } from "./profile";

/*
 * "pending": the test has not answered; "untested": too few samples to tell; "none": values that cannot be tested
 * (bytes, a side without data), where every change is shown as it is.
 */
export type Verdict = "sure" | "noise" | "untested" | "pending" | "none";

/* What the test said, by function name; null while it has not. */
export type Verdicts = {
	method: NonNullable<Significance["significance"]>["method"];
	/* Names were missing: functions that it does not know may be tested later. */
	isPending: boolean;
	total: boolean | null;
	byName: ReadonlyMap<string, Tested>;
} | null;

export interface Tested {
	self: boolean | null;
	total: boolean | null;
	/* The smaller of both. */
	p: number;
}

export function verdictsOf({ pending, significance, functions }: Significance): Verdicts {
	if (!significance)
		return null;
	const byName = new Map<string, Tested>();
	for (const { name, change } of functions)
		if (change)
			byName.set(name, {
				self: change.self?.significant ?? null, total: change.total?.significant ?? null,
				p: Math.min(change.self?.p ?? 1, change.total?.p ?? 1),
			});
	const total = significance.total?.significant ?? null;
	return { method: significance.method, isPending: pending > 0, total, byName };
}

/* What can be said of any function before its own test is looked at; null: its test decides. */
function general(verdicts: Verdicts, profile: Profile): Verdict | null {
	const [a, b] = profile.sides!;
	if (!(a.total[0]! > 0) || !(b.total[0]! > 0))
		return "none";
	return !verdicts ? "pending" : verdicts.method === "none" ? "none" : null;
}

/* What has no test yet because its name, or what it was before, is still read. */
const awaited = (verdicts: Verdicts, profile: Profile, name: string): Verdict | null =>
	!verdicts!.byName.has(name) && (verdicts!.isPending || profile.header.pending > 0) ? "pending" : null;

const said = (significant: boolean | null | undefined): Verdict =>
	significant === true ? "sure" : significant === false ? "noise" : "untested";

/* Of a function: sure when what it did itself or what it did with its callees is. */
export function verdictOf(verdicts: Verdicts, profile: Profile, name: string): Verdict {
	const tested = verdicts?.byName.get(name);
	return general(verdicts, profile) ?? awaited(verdicts, profile, name) ??
		said(tested?.self || tested?.total || (tested?.self ?? tested?.total));
}

/* Of one of its two values. */
export function partVerdict(verdicts: Verdicts, profile: Profile, name: string, part: "self" | "total"): Verdict {
	return general(verdicts, profile) ?? awaited(verdicts, profile, name) ??
		said(verdicts!.byName.get(name)?.[part]);
}

/* Of all values together. */
export function totalVerdict(verdicts: Verdicts, profile: Profile): Verdict {
	return general(verdicts, profile) ?? said(verdicts!.total);
}

/* Of a box: that of its function. */
export function nodeVerdict(verdicts: Verdicts, profile: Profile, node: number): Verdict {
	if (node === 0)
		return totalVerdict(verdicts, profile);
	if (profile.flags[node]! & (GROUP | TRIMMED))
		return general(verdicts, profile) ?? "untested";
	return verdictOf(verdicts, profile, functionName(profile, profile.func[node]!));
}

/* Whether a change is shown as one. */
export const isShown = (verdict: Verdict): boolean => verdict === "sure" || verdict === "none";

/* Colour step of every node: grey unless the change is more than noise. */
export function stepsOf(profile: Profile, mode: Mode, verdicts: Verdicts): Int8Array {
	const sides = profile.sides!;
	const steps = new Int8Array(profile.count);
	const rest = general(verdicts, profile) ?? "untested";
	if (rest === "pending")
		return steps;
	const shown = new Uint8Array(profile.functions.count);
	for (let fn = 1; fn < shown.length; fn++)
		shown[fn] = Number(isShown(verdictOf(verdicts, profile, functionName(profile, fn))));
	const all = isShown(totalVerdict(verdicts, profile));
	const { count, flags, func } = profile;
	const [a, b] = [sides[0].total, sides[1].total];
	const [perA, perB] = [divisorOf(sides[0], mode), divisorOf(sides[1], mode)];
	for (let node = 0; node < count; node++) {
		const isOther = (flags[node]! & (GROUP | TRIMMED)) !== 0;
		if (node === 0 ? all : isOther ? isShown(rest) : shown[func[node]!])
			steps[node] = stepOf(ratioOf(a[node]! / perA, b[node]! / perB));
	}
	return steps;
}
