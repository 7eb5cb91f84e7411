// SPDX-License-Identifier: Apache-2.0
/*
 * open - reads a file of any supported format into Tables. The content decides the format; gzip is
 * decompressed. Text formats are read as a stream and may be larger than memory.
 */
import { type FirefoxFile, decodeFirefox } from "./firefox";
import { decodeFolded } from "./folded";
import { type GeckoFile, fromGecko } from "./gecko";
import { parseJson } from "./json";
import { decodePerfScript, parseHead } from "./perf_script";
import { decodePprof } from "./pprof";
import { type SpeedscopeFile, decodeSpeedscope } from "./speedscope";
import { FileError, Tables } from "./tables";

export interface Opened {
	format: "pprof" | "perf script" | "folded stacks" | "speedscope" | "Firefox profile";
	tables: Tables;
}

const LOOK_BYTES = 1 << 16;
const FEED_BYTES = 1 << 14;
/* Of formats that have to be in memory as a whole, unpacked. */
const WHOLE_BYTES_MAX = 1 << 30;

/* Unpacks; an error names the byte of the file that was reached. */
function gunzip(file: Blob): ReadableStream<Uint8Array> {
	const unpacker = new DecompressionStream("gzip");
	const writer = unpacker.writable.getWriter();
	let fed = 0;
	const feed = async () => {
		for (; fed < file.size; fed += FEED_BYTES)
			await writer.write(new Uint8Array(await file.slice(fed, fed + FEED_BYTES).arrayBuffer()));
		await writer.close();
	};
	/* The reader of the other end is told the same. */
	feed().catch(() => undefined);
	const reader = unpacker.readable.getReader();
	return new ReadableStream<Uint8Array>({
		async pull(controller) {
			try {
				const { value, done } = await reader.read();
				if (done) controller.close();
				else controller.enqueue(value!);
			} catch {
				const end = fed >= file.size ? file.size : fed;
				controller.error(
					new FileError("gzip", "it is damaged, or was cut off", `at byte ${end}`),
				);
			}
		},
	});
}

async function firstBytes(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
	const reader = stream.getReader();
	const parts: Uint8Array[] = [];
	let length = 0;
	try {
		while (length < LOOK_BYTES) {
			const { value, done } = await reader.read();
			if (done) break;
			parts.push(value!);
			length += value!.length;
		}
	} finally {
		reader.cancel().catch(() => undefined);
	}
	return joined(parts, length).subarray(0, LOOK_BYTES);
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
	const out = new Uint8Array(length);
	let at = 0;
	for (const part of parts) {
		out.set(part, at);
		at += part.length;
	}
	return out;
}

async function allBytes(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
	const reader = stream.getReader();
	const parts: Uint8Array[] = [];
	let length = 0;
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return joined(parts, length);
		parts.push(value!);
		length += value!.length;
		if (length > WHOLE_BYTES_MAX)
			throw new FileError(
				"This file",
				`unpacked it is larger than ${WHOLE_BYTES_MAX >> 20} MiB`,
				"",
			);
	}
}

const isText = (bytes: Uint8Array) => bytes.every((byte) => byte >= 9);

const beginsWith = (bytes: Uint8Array, text: string) =>
	[...text].every((char, at) => bytes[at] === char.charCodeAt(0));

/* Known, but not for a page. */
const OTHERS: [magic: string, remedy: string][] = [
	["PERFILE2", "this is perf.data: make text of it by `perf script > perf.txt`, or open it by `firn convert`"],
	["FIRN", "this is a recording of firn: open it by `firn view FILE`"],
	["heap profile:", "this is a legacy heap profile: open it by `firn view FILE`"],
	["--- ", "this is a legacy profile: open it by `firn view FILE`"],
];

async function decodeJson(text: string): Promise<Opened> {
	const json = parseJson(text) as Record<string, unknown> | null;
	if (json && Array.isArray(json.profiles) && json.shared)
		return { format: "speedscope", tables: decodeSpeedscope(json as SpeedscopeFile) };
	const { meta } = (json ?? {}) as FirefoxFile;
	if (meta && Array.isArray(json?.threads)) {
		const file =
			meta.preprocessedProfileVersion === undefined
				? fromGecko(json as GeckoFile)
				: (json as FirefoxFile);
		return { format: "Firefox profile", tables: decodeFirefox(file) };
	}
	throw new FileError("JSON", "this is neither a speedscope nor a Firefox profile", "");
}

export async function openFile(file: Blob): Promise<Opened> {
	const magic = new Uint8Array(await file.slice(0, 2).arrayBuffer());
	const packed = magic[0] === 0x1f && magic[1] === 0x8b;
	const stream = () => (packed ? gunzip(file) : (file.stream() as ReadableStream<Uint8Array>));
	const text = () =>
		stream().pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>);
	const head = await firstBytes(stream());
	if (!head.length) throw new FileError("This file", "it is empty", "");
	for (const [magicText, remedy] of OTHERS)
		if (beginsWith(head, magicText)) throw new FileError("This file", remedy, "");
	const opened = await decodeAs(head, stream, text);
	if (opened.tables.rows.count === 1) throw new FileError(opened.format, "there is no sample in it", "");
	return opened;
}

async function decodeAs(
	head: Uint8Array,
	stream: () => ReadableStream<Uint8Array>,
	text: () => ReadableStream<string>,
): Promise<Opened> {
	if (!isText(head)) return { format: "pprof", tables: decodePprof(await allBytes(stream())) };
	const start = new TextDecoder().decode(head).trimStart();
	if (start.startsWith("{")) return decodeJson(new TextDecoder().decode(await allBytes(stream())));
	const first = start.split("\n").find((line) => line.trim() && !line.startsWith("#")) ?? "";
	return parseHead(first)
		? { format: "perf script", tables: await decodePerfScript(text()) }
		: { format: "folded stacks", tables: await decodeFolded(text()) };
}
