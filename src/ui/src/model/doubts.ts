// SPDX-License-Identifier: Apache-2.0
/* doubts - reasons to doubt the numbers of a profile (few samples, truncated, lost), the largest first. */
import { functionName, kindName, type Profile } from "./profile";
import { THIN_SAMPLES, type Unit, formatCount, formatPercent, samplesOf } from "./quantity";
import type { Matcher } from "./selector";

export interface Doubt {
	/* For a line, and for a place that has room. */
	brief: string;
	full: string;
	/* Which page tells more. */
	page?: "targets" | "status";
}

/* A sender, as the server's list of targets has it. */
export interface Sender {
	labels: Record<string, string>;
	peer: string;
	lost: number;
	lost_ms?: number;
}

/* How long after a loss it may be heard of. */
const HEARD_WITHIN_MS = 60_000;

/* Whether a sender's profiles can be among those that are shown. */
function mayBeShown({ labels }: Sender, matchers: readonly Matcher[]): boolean {
	return matchers.every(({ name, op, value }) => {
		const own = labels[name];
		return own === undefined || (op === "=" ? own === value : op === "!=" ? own !== value : true);
	});
}

function lostDoubt({ header }: Profile, senders: readonly Sender[], matchers: readonly Matcher[]): Doubt | null {
	const losing = senders.filter((sender) => sender.lost > 0 && sender.lost_ms !== undefined &&
		sender.lost_ms >= header.from_ms && sender.lost_ms <= header.to_ms + HEARD_WITHIN_MS &&
		mayBeShown(sender, matchers)).sort((a, b) => b.lost - a.lost);
	const [worst] = losing;
	if (!worst)
		return null;
	const name = worst.labels["node"] ?? worst.labels["host"] ?? worst.peer;
	const others = losing.length > 1 ? ` So did ${formatCount(losing.length - 1)} more.` : "";
	return {
		brief: "samples were lost",
		full: `${name} lost samples in this range: ${formatCount(worst.lost)} since it started.${others}`,
		page: "targets",
	};
}

/* Stacks that end, at their root, in a marker that says why they were cut. */
function cutDoubt(profile: Profile): Doubt | null {
	const whole = profile.total[0]!;
	const cuts: { value: number; why: string }[] = [];
	for (let fn = 1; fn < profile.functions.count; fn++) {
		if (kindName(profile, fn) !== "marker")
			continue;
		const [, why] = /^\[truncated: (.*)\]$/.exec(functionName(profile, fn)) ?? [];
		if (why && profile.functionTotal[fn]! > 0)
			cuts.push({ value: profile.functionTotal[fn]!, why });
	}
	if (!cuts.length)
		return null;
	cuts.sort((a, b) => b.value - a.value);
	const share = (value: number) => formatPercent(value, whole);
	const all = share(cuts.reduce((sum, { value }) => sum + value, 0));
	const reasons = cuts.slice(0, 3).map(({ value, why }) => `${why} (${share(value)})`).join(", ");
	return {
		brief: `${all} of stacks are cut`,
		full: `${all} of samples have a stack whose callers are not known: ${reasons}.`,
	};
}

function thinDoubt(profile: Profile, unit: Unit): Doubt | null {
	const totals = profile.sides ? profile.sides.map(({ total }) => total[0]!) : [profile.total[0]!];
	const counts = totals.filter(Boolean).map((total) => Math.round(samplesOf(profile.header, unit, total)));
	const least = Math.min(...counts, Infinity);
	if (least >= THIN_SAMPLES)
		return null;
	const samples = `${least} ${least === 1 ? "sample" : "samples"}`;
	const where = profile.sides ? " on one side" : "";
	return {
		brief: `only ${samples}`,
		full: `Statistically thin: ${samples}${where}, fewer than ${THIN_SAMPLES}.`,
	};
}

/* How many samples end in code without a name, and how many meet any. */
export function unnamedText({ header: { unresolved }, total }: Profile): string {
	const share = (value: number) => formatPercent(value, total[0]!);
	return `Leaf unnamed ${share(unresolved.leaf ?? 0)}, some frame unnamed ${share(unresolved.value)}`;
}

export function doubtsOf(
	profile: Profile, unit: Unit, senders: readonly Sender[], matchers: readonly Matcher[],
): Doubt[] {
	const { partial, parts_unreadable: parts, pending, unresolved } = profile.header;
	const several = parts > 1 ? `${formatCount(parts)} parts` : "Part";
	const some = `${formatCount(pending)} ${pending === 1 ? "frame" : "frames"}`;
	return [
		partial ? {
			brief: "some data could not be read",
			full: `${several} of the store could not be read: what was in there is missing here.`,
			page: "status" as const,
		} : null,
		lostDoubt(profile, senders, matchers),
		thinDoubt(profile, unit),
		cutDoubt(profile),
		unresolved.reasons.length ? { brief: unnamedText(profile), full: "" } : null,
		pending ? {
			brief: "reading symbols…",
			full: `The symbols of ${some} are still being read; their names come by themselves.`,
		} : null,
	].filter((doubt) => doubt !== null);
}
