// SPDX-License-Identifier: Apache-2.0
/*
 * firefox - processed profiles of the Firefox Profiler, as it, samply and others write them
 * (github.com/firefox-devtools/profiler, docs-developer/gecko-profile-format.md and
 * processed-profile-versioning history). In older versions each thread had tables of its own; newer
 * versions moved them one by one into `shared`, which is searched if a thread lacks a table.
 *
 * Value types: samples (each counts its weight), and cpu if the file has it. Samples without a stack
 * belong to idle threads and do not count, as in the Firefox Profiler. Labels: process, thread.
 */
import { FileError, type Label, Tables } from "./tables";

interface Columns {
	stackTable?: { length?: number; prefix: (number | null)[]; frame: number[] };
	frameTable?: { func: number[]; address?: number[] };
	funcTable?: {
		name: number[];
		fileName?: (number | null)[];
		source?: (number | null)[];
		lineNumber?: (number | null)[];
		resource?: number[];
	};
	resourceTable?: { lib?: (number | null)[]; name?: number[] };
	sources?: { filename: number[] };
	stringArray?: string[];
	stringTable?: string[];
}

interface Lib {
	path?: string;
	name?: string;
	codeId?: string | null;
}

interface Thread extends Columns {
	name?: string;
	processName?: string;
	pid?: string | number;
	/* Of older versions; later they are the file's. */
	libs?: Lib[];
	samples?: {
		stack: (number | null)[];
		weight?: (number | null)[] | null;
		weightType?: string;
		threadCPUDelta?: (number | null)[];
		time?: number[];
		timeDeltas?: number[];
	};
}

export interface FirefoxFile {
	meta?: {
		interval?: number;
		startTime?: number;
		preprocessedProfileVersion?: number;
		sampleUnits?: { threadCPUDelta?: string };
	};
	libs?: Lib[];
	shared?: Columns;
	threads?: Thread[];
}

const CPU_NS: Record<string, number> = { ns: 1, µs: 1e3 };

const fail = (what: string, where: string): never => {
	throw new FileError("Firefox profile", what, where);
};

class ThreadReader {
	private readonly strings: string[];
	private readonly columns: Required<Pick<Columns, "stackTable" | "frameTable" | "funcTable">> & Columns;
	private readonly functions = new Map<number, number>();
	private readonly stacks: Uint32Array;
	private readonly libs: Lib[];

	constructor(
		private readonly tables: Tables,
		file: FirefoxFile,
		thread: Thread,
		private readonly where: string,
	) {
		const shared = file.shared ?? {};
		this.libs = thread.libs ?? file.libs ?? [];
		const columns = {
			...shared,
			...Object.fromEntries(Object.entries(thread).filter(([, value]) => value)),
		};
		if (!columns.stackTable?.frame || !columns.frameTable?.func || !columns.funcTable?.name)
			fail("stackTable, frameTable or funcTable is missing", where);
		this.columns = columns as typeof this.columns;
		this.strings = columns.stringArray ?? columns.stringTable ?? fail("there is no stringArray", where);
		this.stacks = new Uint32Array(this.columns.stackTable.frame.length).fill(0);
		this.readStacks();
	}

	/* Every stack stands behind the one it goes on from. */
	private readStacks(): void {
		const { prefix, frame } = this.columns.stackTable;
		for (let at = 0; at < frame.length; at++) {
			const above = prefix[at] ?? null;
			if (above !== null && !(above >= 0 && above < at))
				fail(`stack ${at} goes on from ${above}`, this.where);
			const fn = this.columns.frameTable.func[frame[at]!];
			if (fn === undefined)
				fail(`stack ${at} names frame ${frame[at]}, which is not there`, this.where);
			this.stacks[at] = this.tables.stack(
				above === null ? 0 : this.stacks[above]!,
				this.functionOf(fn!),
			);
		}
	}

	private text(index: number | null | undefined): string {
		return typeof index === "number" && index >= 0 ? (this.strings[index] ?? "") : "";
	}

	private functionOf(index: number): number {
		let fn = this.functions.get(index);
		if (fn !== undefined) return fn;
		const { funcTable: table, resourceTable, sources } = this.columns;
		const source = table.source?.[index];
		const resource = table.resource?.[index] ?? -1;
		const lib = this.libs[resourceTable?.lib?.[resource] ?? -1];
		fn = this.tables.function({
			name: this.text(table.name[index]) || "(anonymous)",
			file: this.text(
				typeof source === "number" ? sources?.filename[source] : table.fileName?.[index],
			),
			startLine: Math.max(0, table.lineNumber?.[index] ?? 0),
			mapping: lib?.path ?? lib?.name ?? "",
			buildId: lib?.codeId ?? "",
		});
		this.functions.set(index, fn);
		return fn;
	}

	stackOf(index: number): number {
		return this.stacks[index] ?? fail(`a sample names stack ${index}, which is not there`, this.where);
	}
}

function readThread(tables: Tables, file: FirefoxFile, thread: Thread, index: number, cpuScale: number): void {
	const { samples } = thread;
	const where = `thread ${index}`;
	if (!samples?.stack?.some((stack) => stack !== null)) return;
	const reader = new ThreadReader(tables, file, thread, where);
	const process = thread.processName || String(thread.pid ?? "");
	const list: Label[] = [
		["process", process],
		["thread", thread.name ?? where],
	];
	const labels = tables.labels(list.filter(([, value]) => value));
	samples.stack.forEach((stack, at) => {
		if (stack === null || stack === undefined) return;
		const cpu = samples.threadCPUDelta?.[at] ?? 0;
		tables.add(reader.stackOf(stack), labels, [samples.weight?.[at] ?? 1, Math.round(cpu * cpuScale)]);
	});
}

export function decodeFirefox(file: FirefoxFile): Tables {
	const tables = new Tables();
	const threads = file.threads ?? [];
	const { interval = 1, startTime = 0, sampleUnits } = file.meta ?? {};
	const weights = new Set(threads.map(({ samples }) => samples?.weightType ?? "samples"));
	if (!threads.some(({ samples }) => samples)) fail("no thread has samples", "");
	if (weights.size > 1) fail(`its threads are of different weights: ${[...weights].join(", ")}`, "");
	const [weight] = weights;
	const cpuScale = CPU_NS[sampleUnits?.threadCPUDelta ?? ""] ?? 0;
	const hasCpu = cpuScale > 0 && threads.some(({ samples }) => samples?.threadCPUDelta);
	tables.types = [
		weight === "bytes"
			? { type: "space", unit: "bytes" }
			: weight === "tracing-ms"
				? { type: "wall", unit: "milliseconds" }
				: { type: "samples", unit: "count" },
	];
	if (hasCpu) tables.types.push({ type: "cpu", unit: "nanoseconds" });
	if (weight === "samples") {
		tables.period = Math.round(interval * 1e6);
		tables.periodUnit = "nanoseconds";
	}
	tables.timeMs = startTime;
	threads.forEach((thread, index) => readThread(tables, file, thread, index, cpuScale));
	return tables;
}
