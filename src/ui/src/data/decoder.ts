// SPDX-License-Identifier: Apache-2.0
/* decoder - decode(bytes) -> Profile, by the worker. */
import type { Profile } from "../model/profile";

interface Answer {
	id: number;
	profile?: Profile;
	error?: string;
}

interface Waiting {
	resolve(profile: Profile): void;
	reject(error: Error): void;
}

/* What decoding a large answer leaves behind is given back with the worker; the next one starts in a moment. */
const KEPT_BYTES_MAX = 1 << 20;

const waiting = new Map<number, Waiting>();
let worker: Worker | undefined;
let last = 0;
let large = false;

function start(): Worker {
	const started = new Worker(new URL("./decode_worker.ts", import.meta.url), { type: "module" });
	started.onmessage = ({ data }: MessageEvent<Answer>) => {
		const waiter = waiting.get(data.id);
		waiting.delete(data.id);
		if (data.profile)
			waiter?.resolve(data.profile);
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

/* With `base`, a comparison to it; with `runtimes`, the C frames of interpreters stay. */
export function decode(
	buffer: ArrayBuffer, inverted: boolean, runtimes: boolean, base?: ArrayBuffer,
): Promise<Profile> {
	worker ??= start();
	large ||= buffer.byteLength > KEPT_BYTES_MAX;
	const id = ++last;
	return new Promise((resolve, reject) => {
		waiting.set(id, { resolve, reject });
		worker!.postMessage({ id, buffer, base, inverted, runtimes }, base ? [buffer, base] : [buffer]);
	});
}
