// SPDX-License-Identifier: Apache-2.0
/* decode_worker - decodes, rebuilds and cuts trees in a worker thread; buffers are transferred, not copied. */
import { compareProfiles } from "../model/compare";
import { decodeProfile, transferables, treeBuffers } from "../model/decode";
import { foldRuntimes } from "../model/fold";
import { type Stacks, invertProfile, sandwich } from "../model/invert";
import type { Profile } from "../model/profile";

export interface DecodeRequest {
	id: number;
	buffer: ArrayBuffer;
	/* What it is compared to. */
	base?: ArrayBuffer;
	inverted: boolean;
	/* With the C frames of interpreters. */
	runtimes: boolean;
}

export interface CutRequest {
	id: number;
	stacks: Stacks;
	wanted: Uint8Array;
}

const scope = self as unknown as {
	onmessage: ((event: MessageEvent<DecodeRequest | CutRequest>) => void) | null;
	postMessage(message: unknown, transfer?: Transferable[]): void;
};

function answer({ buffer, base, inverted, runtimes }: DecodeRequest): Profile {
	const read = (bytes: ArrayBuffer) => {
		const all = decodeProfile(bytes);
		const profile = runtimes ? all : foldRuntimes(all);
		return inverted ? invertProfile(profile) : profile;
	};
	return base ? compareProfiles(read(base), read(buffer)) : read(buffer);
}

function work(data: DecodeRequest | CutRequest): void {
	if ("stacks" in data) {
		const result = sandwich(data.stacks, data.wanted);
		scope.postMessage({ id: data.id, result },
			[...treeBuffers(result.callers), ...treeBuffers(result.callees)]);
		return;
	}
	const result = answer(data);
	scope.postMessage({ id: data.id, result }, transferables(result));
}

scope.onmessage = ({ data }) => {
	try {
		work(data);
	} catch (error) {
		scope.postMessage({ id: data.id, error: error instanceof Error ? error.message : String(error) });
	}
};
