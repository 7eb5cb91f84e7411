// SPDX-License-Identifier: Apache-2.0
/* decode_worker - decodes and rebuilds trees off the page's thread; buffers are handed over, not copied. */
import { compareProfiles } from "../model/compare";
import { decodeProfile, transferables } from "../model/decode";
import { foldRuntimes } from "../model/fold";
import { invertProfile } from "../model/invert";
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

const scope = self as unknown as {
	onmessage: ((event: MessageEvent<DecodeRequest>) => void) | null;
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

scope.onmessage = ({ data }) => {
	try {
		const profile = answer(data);
		scope.postMessage({ id: data.id, profile }, transferables(profile));
	} catch (error) {
		scope.postMessage({ id: data.id, error: error instanceof Error ? error.message : String(error) });
	}
};
