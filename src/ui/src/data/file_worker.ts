// SPDX-License-Identifier: Apache-2.0
/* file_worker - holds the opened file, and answers queries about it in a worker thread. */
import { openFile } from "../files/open";
import { type Tables } from "../files/tables";
import { type FileQuery, treeOf, typeName } from "../files/tree";
import { transferables } from "../model/decode";

/* What the page has to know of a file. */
export interface FileFacts {
	format: string;
	types: string[];
	/* The type that is shown first. */
	chosen: string;
	labels: string[];
}

export type FileRequest = { id: number } & ({ open: Blob } | { query: FileQuery });

const scope = self as unknown as {
	onmessage: ((event: MessageEvent<FileRequest>) => void) | null;
	postMessage(message: unknown, transfer?: Transferable[]): void;
};

let tables: Tables | null = null;

async function open(file: Blob): Promise<FileFacts> {
	const { format, tables: read } = await openFile(file);
	tables = read;
	const types = read.types.map(typeName);
	return { format, types, chosen: types[read.chosen]!, labels: read.labelNames() };
}

async function answer(request: FileRequest): Promise<void> {
	if ("open" in request) {
		scope.postMessage({ id: request.id, answer: await open(request.open) });
		return;
	}
	if (!tables) throw new Error("no file is open");
	const profile = treeOf(tables, request.query);
	scope.postMessage({ id: request.id, answer: profile }, transferables(profile));
}

scope.onmessage = ({ data }) => {
	answer(data).catch((error: unknown) => {
		scope.postMessage({ id: data.id, error: error instanceof Error ? error.message : String(error) });
	});
};
