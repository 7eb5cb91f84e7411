// SPDX-License-Identifier: Apache-2.0
/* decode_worker - runs the decoder off the page's thread; buffers are handed over, not copied. */
import { decodeProfile, transferables } from "../model/decode";

export interface DecodeRequest {
	id: number;
	buffer: ArrayBuffer;
}

const scope = self as unknown as {
	onmessage: ((event: MessageEvent<DecodeRequest>) => void) | null;
	postMessage(message: unknown, transfer?: Transferable[]): void;
};

scope.onmessage = ({ data: { id, buffer } }) => {
	try {
		const profile = decodeProfile(buffer);
		scope.postMessage({ id, profile }, transferables(profile));
	} catch (error) {
		scope.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
	}
};
