// SPDX-License-Identifier: Apache-2.0
/* files - a profile file in a worker of its own, which ends with it. */
import type { Profile } from "../model/profile";
import type { FileQuery } from "../files/tree";
import type { FileFacts, FileRequest } from "./file_worker";

interface Waiting {
	resolve(answer: never): void;
	reject(error: Error): void;
}

let files = 0;

export class OpenFile {
	private readonly worker = new Worker(new URL("./file_worker.ts", import.meta.url), { type: "module" });
	private readonly waiting = new Map<number, Waiting>();
	private last = 0;
	/* Two files may have one name. */
	readonly serial = ++files;

	private constructor(
		readonly name: string,
		readonly size: number,
	) {
		this.worker.onmessage = ({ data }: MessageEvent<{ id: number; answer?: never; error?: string }>) => {
			const waiter = this.waiting.get(data.id);
			this.waiting.delete(data.id);
			if (data.error === undefined) waiter?.resolve(data.answer as never);
			else waiter?.reject(new Error(data.error));
		};
		/* Out of memory, or its code could not be fetched. */
		this.worker.onerror = () =>
			this.end("what reads files ended: the file may be too large for this browser");
	}

	private ask<T>(request: { open: Blob } | { query: FileQuery }): Promise<T> {
		const id = ++this.last;
		return new Promise<T>((resolve, reject) => {
			this.waiting.set(id, { resolve: resolve as Waiting["resolve"], reject });
			this.worker.postMessage({ id, ...request } as FileRequest);
		});
	}

	private end(why: string): void {
		for (const { reject } of this.waiting.values()) reject(new Error(why));
		this.waiting.clear();
		this.worker.terminate();
	}

	static async open(file: File, aborted: AbortSignal): Promise<{ file: OpenFile; facts: FileFacts }> {
		const made = new OpenFile(file.name, file.size);
		aborted.addEventListener("abort", () => made.end("cancelled"));
		try {
			return { file: made, facts: await made.ask<FileFacts>({ open: file }) };
		} catch (error) {
			made.close();
			throw error;
		}
	}

	tree(query: FileQuery): Promise<Profile> {
		return this.ask<Profile>({ query });
	}

	close(): void {
		this.end("the file was closed");
	}
}
