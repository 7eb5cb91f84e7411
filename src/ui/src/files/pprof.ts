// SPDX-License-Identifier: Apache-2.0
/*
 * pprof - reads a decompressed perftools.profiles.Profile (github.com/google/pprof
 * proto/profile.proto). Errors name the byte offset in the decompressed data.
 */
import { DEPTH_MAX, FileError, type Label, Tables } from "./tables";

type Id = number | bigint;

const fail = (what: string, offset: number): never => {
	throw new FileError("pprof", what, `at byte ${offset}`);
};

/* Fields of one message. Numbers beyond 2^53 keep their bits as bigint only where `id` is asked for. */
class Message {
	field = 0;
	/* Of the current field, when it is length-delimited. */
	from = 0;
	to = 0;
	private wire = 0;
	private low = 0;
	private high = 0;

	constructor(
		readonly bytes: Uint8Array,
		private at: number,
		private readonly end: number,
	) {}

	private varint(): void {
		const start = this.at;
		let low = 0;
		let high = 0;
		for (let shift = 0; shift < 70; shift += 7) {
			if (this.at >= this.end) fail("a number is cut short", start);
			const byte = this.bytes[this.at++]!;
			if (shift < 28) low |= (byte & 127) << shift;
			else if (shift === 28) {
				low |= (byte & 15) << 28;
				high = (byte & 127) >> 4;
			} else high |= (byte & 127) << (shift - 32);
			if (byte < 128) {
				this.low = low >>> 0;
				this.high = high >>> 0;
				return;
			}
		}
		fail("a number is too long", start);
	}

	next(): boolean {
		if (this.at >= this.end) return false;
		const start = this.at;
		this.varint();
		const tag = this.low;
		this.field = tag >>> 3;
		this.wire = tag & 7;
		if (!this.field || this.high) fail("a field has no number", start);
		if (this.wire === 0) this.varint();
		else if (this.wire === 2) {
			this.varint();
			this.from = this.at;
			this.to = this.at + this.low;
			if (this.high || this.to > this.end) fail(`field ${this.field} goes past the end`, start);
			this.at = this.to;
		} else if (this.wire === 1 || this.wire === 5) {
			this.at += this.wire === 1 ? 8 : 4;
			if (this.at > this.end) fail(`field ${this.field} is cut short`, start);
		} else fail(`field ${this.field} is of a wire type that is not known (${this.wire})`, start);
		return true;
	}

	get isMessage(): boolean {
		return this.wire === 2;
	}

	/* Signed. */
	number(): number {
		return (this.high | 0) * 2 ** 32 + this.low;
	}

	id(): Id {
		return this.high < 1 << 21
			? this.high * 2 ** 32 + this.low
			: (BigInt(this.high) << 32n) | BigInt(this.low);
	}

	message(): Message {
		if (this.wire !== 2) fail(`field ${this.field} is no message`, this.at);
		return new Message(this.bytes, this.from, this.to);
	}

	/* A repeated number, packed or not. */
	each<T>(take: (message: Message) => T): void {
		if (this.wire !== 2) {
			take(this);
			return;
		}
		const packed = new Message(this.bytes, this.from, this.to);
		while (packed.at < packed.end) {
			packed.varint();
			take(packed);
		}
	}
}

interface Mapping {
	file: number;
	buildId: number;
}

interface Line {
	function: Id;
}

interface Location {
	mapping: Id;
	address: Id;
	lines: Line[];
}

interface Fn {
	name: number;
	systemName: number;
	file: number;
	startLine: number;
}

class Reader {
	readonly tables = new Tables();
	private strings: string[] = [];
	private mappings = new Map<Id, Mapping>();
	private locations = new Map<Id, Location>();
	private functions = new Map<Id, Fn>();
	/* Where samples are: they can be read when all else is known. */
	private samples: [from: number, to: number][] = [];
	private types: [type: number, unit: number][] = [];
	private periodType: [type: number, unit: number] = [0, 0];
	private defaultType = 0;
	private chains = new Map<Id, number[]>();

	constructor(private readonly bytes: Uint8Array) {}

	private valueType(message: Message): [number, number] {
		const pair: [number, number] = [0, 0];
		while (message.next())
			if (message.field === 1 || message.field === 2) pair[message.field - 1] = message.number();
		return pair;
	}

	private mapping(message: Message): void {
		let id: Id = 0;
		const made: Mapping = { file: 0, buildId: 0 };
		while (message.next()) {
			if (message.field === 1) id = message.id();
			else if (message.field === 5) made.file = message.number();
			else if (message.field === 6) made.buildId = message.number();
		}
		this.mappings.set(id, made);
	}

	private location(message: Message): void {
		let id: Id = 0;
		const made: Location = { mapping: 0, address: 0, lines: [] };
		while (message.next()) {
			if (message.field === 1) id = message.id();
			else if (message.field === 2) made.mapping = message.id();
			else if (message.field === 3) made.address = message.id();
			else if (message.field === 4) made.lines.push(this.line(message.message()));
		}
		this.locations.set(id, made);
	}

	private line(message: Message): Line {
		const made: Line = { function: 0 };
		while (message.next()) if (message.field === 1) made.function = message.id();
		return made;
	}

	private fn(message: Message): void {
		let id: Id = 0;
		const made: Fn = { name: 0, systemName: 0, file: 0, startLine: 0 };
		while (message.next()) {
			if (message.field === 1) id = message.id();
			else if (message.field === 2) made.name = message.number();
			else if (message.field === 3) made.systemName = message.number();
			else if (message.field === 4) made.file = message.number();
			else if (message.field === 5) made.startLine = Math.max(0, message.number());
		}
		this.functions.set(id, made);
	}

	/* Everything but the samples. */
	private outer(): void {
		const decoder = new TextDecoder();
		const top = new Message(this.bytes, 0, this.bytes.length);
		while (top.next()) {
			const { field, from, to } = top;
			if (field === 1) this.types.push(this.valueType(top.message()));
			else if (field === 2) this.samples.push([top.message() && from, to]);
			else if (field === 3) this.mapping(top.message());
			else if (field === 4) this.location(top.message());
			else if (field === 5) this.fn(top.message());
			else if (field === 6)
				this.strings.push(top.message() && decoder.decode(this.bytes.subarray(from, to)));
			else if (field === 9) this.tables.timeMs = top.number() / 1e6;
			else if (field === 10) this.tables.durationMs = Math.max(0, top.number()) / 1e6;
			else if (field === 11) this.periodType = this.valueType(top.message());
			else if (field === 12) this.tables.period = top.number();
			else if (field === 14) this.defaultType = top.number();
		}
	}

	private text(index: number): string {
		return this.strings[index] ?? "";
	}

	/* Functions of a location, outermost first. */
	private chain(id: Id): number[] {
		let chain = this.chains.get(id);
		if (chain) return chain;
		const at = this.locations.get(id);
		const mapping = at && this.mappings.get(at.mapping);
		const binary = this.text(mapping?.file ?? 0);
		const buildId = this.text(mapping?.buildId ?? 0);
		chain = (at?.lines ?? [])
			.map((line) => this.functions.get(line.function))
			.reverse()
			.flatMap((fn) => {
				const name = fn && (this.text(fn.name) || this.text(fn.systemName));
				if (!name) return [];
				const system = this.text(fn.systemName);
				return [
					this.tables.function({
						name,
						mapping: binary,
						buildId,
						file: this.text(fn.file),
						startLine: fn.startLine,
						systemName: system === name ? "" : system,
					}),
				];
			});
		if (!chain.length) {
			const base = binary.slice(binary.lastIndexOf("/") + 1);
			const name = `0x${(at?.address ?? 0).toString(16)}${base && ` [${base}]`}`;
			chain = [this.tables.function({ name, mapping: binary, buildId })];
		}
		this.chains.set(id, chain);
		return chain;
	}

	private label(message: Message): Label {
		let [key, text, number] = [0, 0, 0];
		while (message.next()) {
			if (message.field === 1) key = message.number();
			else if (message.field === 2) text = message.number();
			else if (message.field === 3) number = message.number();
		}
		return [this.text(key), text ? this.text(text) : String(number)];
	}

	private sample(from: number, to: number): void {
		const message = new Message(this.bytes, from, to);
		const locations: Id[] = [];
		const values: number[] = [];
		const labels: Label[] = [];
		while (message.next()) {
			if (message.field === 1) message.each((each) => locations.push(each.id()));
			else if (message.field === 2) message.each((each) => values.push(each.number()));
			else if (message.field === 3) labels.push(this.label(message.message()));
		}
		if (values.length !== this.types.length)
			fail(`a sample has ${values.length} values, not ${this.types.length}`, from);
		let stack = 0;
		for (let at = Math.min(locations.length, DEPTH_MAX) - 1; at >= 0; at--)
			for (const fn of this.chain(locations[at]!)) stack = this.tables.stack(stack, fn);
		this.tables.add(stack, this.tables.labels(labels), values);
	}

	run(): Tables {
		const { tables } = this;
		this.outer();
		if (!this.types.length) fail("it has no sample types", 0);
		tables.types = this.types.map(([type, unit]) => ({ type: this.text(type), unit: this.text(unit) }));
		tables.periodUnit = this.text(this.periodType[1]);
		const wanted = this.text(this.defaultType);
		const chosen = tables.types.findIndex(({ type }) => type === wanted);
		tables.chosen = wanted && chosen >= 0 ? chosen : tables.types.length - 1;
		for (const [from, to] of this.samples) this.sample(from, to);
		return tables;
	}
}

export function decodePprof(bytes: Uint8Array): Tables {
	return new Reader(bytes).run();
}
