// SPDX-License-Identifier: Apache-2.0
/* decoder - has the worker decode bytes to a Profile, and cut the callers and callees of a function out of one. */
import { type Sandwich, type Trees, asProfiles, stacksOf } from "../model/invert";
import type { Profile } from "../model/profile";
import type { CutRequest, DecodeRequest } from "./decode_worker";

interface Answer {
	id: number;
	result?: unknown;
	error?: string;
}

interface Waiting {
	resolve(result: never): void;
	reject(error: Error): void;
}

/* What decoding a large answer leaves behind is given back with the worker; the next one starts in a moment. */
const KEPT_BYTES_MAX = 1 << 20;
const KEPT_NODES_MAX = KEPT_BYTES_MAX >> 5;

const waiting = new Map<number, Waiting>();
let worker: Worker | undefined;
let last = 0;
let large = false;

function start(): Worker {
	const started = new Worker(new URL("./decode_worker.ts", import.meta.url), { type: "module" });
	started.onmessage = ({ data }: MessageEvent<Answer>) => {
		const waiter = waiting.get(data.id);
		waiting.delete(data.id);
		if (data.result !== undefined)
			waiter?.resolve(data.result as never);
		else
			waiter?.reject(new Error(data.error ?? "the decoder gave no answer"));
		if (large && !waiting.size) {
			started.terminate();
			worker = undefined;
			large = false;
		}
	};
	started.onerror = () => {
		for (const waiter of waiting.values())
			waiter.reject(new Error("the decoder could not be started"));
		waiting.clear();
		worker = undefined;
	};
	return started;
}

function ask<T>(request: DecodeRequest | CutRequest, transfer: Transferable[]): Promise<T> {
	worker ??= start();
	return new Promise<T>((resolve, reject) => {
		waiting.set(request.id, { resolve, reject });
		worker!.postMessage(request, transfer);
	});
}

/* With `base`, a comparison to it; with `runtimes`, the C frames of interpreters stay. */
export function decode(
	buffer: ArrayBuffer, inverted: boolean, runtimes: boolean, base?: ArrayBuffer,
): Promise<Profile> {
	large ||= buffer.byteLength > KEPT_BYTES_MAX;
	return ask({ id: ++last, buffer, base, inverted, runtimes }, base ? [buffer, base] : [buffer]);
}

/* What calls the functions that `wanted` marks, and what they call. */
export async function cutOut(profile: Profile, wanted: Uint8Array): Promise<Sandwich> {
	large ||= profile.count > KEPT_NODES_MAX;
	return asProfiles(await ask<Trees>({ id: ++last, stacks: stacksOf(profile), wanted }, []), profile);
}
