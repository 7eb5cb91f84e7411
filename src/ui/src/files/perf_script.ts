// SPDX-License-Identifier: Apache-2.0
/*
 * perf_script - reads the samples that `perf script` prints (tools/perf/builtin-script.c):
 *
 *     comm  pid/tid [cpu]  time:  period event:
 *             ffffffff810b3c4e schedule+0x2e ([kernel.kallsyms])
 *                     55d0c9a3 main+0x13 (/usr/bin/cat)
 *
 * The leaf is first, and an empty line ends a sample. Sample types and labels are the same as in the
 * server's decoder (codec/profile/perf_script.h).
 */
import { eachLine } from "./lines";
import { DEPTH_MAX, FileError, type FrameText, Tables } from "./tables";

interface Head {
	comm: string;
	pid: string;
	event: string;
	/* NaN: not said. */
	period: number;
	/* What stands behind the event: of samples without call graphs, their frame. */
	rest: string;
	seconds: number;
}

const HEAD = /^\s*(\S.*?)\s+(\d+)(?:\/\d+)?\s+(?:\[\d+\]\s+)?(?:\S+\s+)?([\d.]+):\s*(?:(\d+)\s+)?(\S*)\s*(.*)$/;
const FRAME = /^\s*([0-9a-f]{1,16})(?:\s+(.*))?$/;

export function parseHead(line: string): Head | null {
	const found = HEAD.exec(line);
	if (!found) return null;
	const [, comm, pid, time, period, event, rest] = found;
	return {
		comm: comm!.slice(0, 64),
		pid: pid!,
		seconds: Number(time),
		period: period === undefined ? NaN : Number(period),
		event: event!.replace(/:+$/, ""),
		rest: rest!,
	};
}

/* "([kernel.kallsyms])" -> "[kernel]", "(/path (deleted))" -> "/path". */
function mappingOf(text: string): string {
	const path = text.replace(/ \(deleted\)$/, "");
	if (path.startsWith("[kernel.kallsyms]") || path.startsWith("[guest.kernel")) return "[kernel]";
	return path === "[unknown]" || path === "inlined" ? "" : path;
}

/* Where the " (binary)" that ends a frame begins, brackets in it counted; -1: nowhere. */
function findMapping(text: string): number {
	if (!text.endsWith(")")) return -1;
	let depth = 0;
	for (let at = text.length - 1; at > 0; at--)
		if (text[at] === ")") depth++;
		else if (text[at] === "(" && --depth <= 0 && /\s/.test(text[at - 1]!)) return at - 1;
	return -1;
}

export function parseFrame(line: string): FrameText | null {
	const [, address, text = ""] = FRAME.exec(line) ?? [];
	if (!address) return null;
	const rest = text.trimEnd();
	const at = findMapping(rest);
	const mapping = at < 0 ? "" : mappingOf(rest.slice(at + 2, -1));
	const name = (at < 0 ? rest : rest.slice(0, at)).trim().replace(/\+0x[0-9a-f]+$/, "");
	if (name && name !== "[unknown]") return { name, mapping };
	const base = mapping.slice(mapping.lastIndexOf("/") + 1);
	return { name: base ? `0x${address} [${base}]` : `0x${address}`, mapping };
}

const isClock = (event: string) => event.startsWith("cpu-clock") || event.startsWith("task-clock");

class Reader {
	readonly tables = new Tables();
	private frames: number[] = [];
	private head: Head | null = null;
	private lines = new Map<string, number>();
	private labels = new Map<string, number>();
	private first = Infinity;
	private last = 0;

	private functionOf(line: string): number {
		let fn = this.lines.get(line);
		if (fn === undefined) {
			const frame = parseFrame(line);
			fn = frame ? this.tables.function(frame) : -1;
			/* The text of a frame repeats from sample to sample; that of one without a name does not. */
			if (this.lines.size < 1 << 18) this.lines.set(line, fn);
		}
		return fn;
	}

	private begin({ event, period }: Head): void {
		const { types } = this.tables;
		types.push({ type: "samples", unit: "count" });
		if (Number.isNaN(period) || !event) return;
		types.push(
			isClock(event)
				? { type: "cpu", unit: "nanoseconds" }
				: { type: event.slice(0, 100), unit: "count" },
		);
	}

	end(): void {
		const { head, frames, tables } = this;
		if (!head) return;
		let stack = 0;
		for (let at = frames.length - 1; at >= 0; at--) stack = tables.stack(stack, frames[at]!);
		const key = `${head.comm}\0${head.pid}`;
		let labels = this.labels.get(key);
		if (labels === undefined)
			this.labels.set(
				key,
				(labels = tables.labels([
					["comm", head.comm],
					["pid", head.pid],
				])),
			);
		tables.add(stack, labels, [1, head.period || 0]);
		this.head = null;
		this.frames = [];
	}

	take(line: string, number: number): void {
		if (line.startsWith("#")) return;
		if (!line.trim()) {
			this.end();
			return;
		}
		if (this.head && /^\s/.test(line)) {
			const fn = this.functionOf(line);
			if (fn >= 0) {
				if (this.frames.length < DEPTH_MAX) this.frames.push(fn);
				return;
			}
		}
		const head = parseHead(line);
		if (!head)
			throw new FileError(
				"perf script",
				"this is neither the head of a sample nor a frame",
				`line ${number}`,
			);
		this.end();
		if (!this.tables.types.length) this.begin(head);
		this.head = head;
		this.first = Math.min(this.first, head.seconds);
		this.last = Math.max(this.last, head.seconds);
		const fn = head.rest ? this.functionOf(head.rest) : -1;
		if (fn >= 0) this.frames.push(fn);
	}

	finish(): Tables {
		this.end();
		if (this.last > this.first) this.tables.durationMs = 1000 * (this.last - this.first);
		this.tables.chosen = Math.max(0, this.tables.types.length - 1);
		return this.tables;
	}
}

export async function decodePerfScript(text: ReadableStream<string>): Promise<Tables> {
	const reader = new Reader();
	await eachLine(text, (line, number) => reader.take(line, number));
	return reader.finish();
}
