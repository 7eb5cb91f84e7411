// SPDX-License-Identifier: Apache-2.0
/*
 * generated - profiles made up for a test and sent to the server as OTLP Profiles: what they hold, and when,
 * is known exactly. They lie hours back, where nothing else is.
 */
import assert from "node:assert/strict";
import { base } from "./page.mjs";

export const TYPE = "on_cpu:samples:count:cpu:nanoseconds:delta";
const PERIOD_NS = 10_000_000;

/* Protobuf, as far as needed: [field, varint | text | bytes | list of messages]. */
function varint(value) {
	const bytes = [];
	let rest = BigInt(value);
	for (; rest >= 128n; rest >>= 7n)
		bytes.push(Number(rest & 127n) | 128);
	bytes.push(Number(rest));
	return Buffer.from(bytes);
}

const bytes = (field, data) => Buffer.concat([varint((field << 3) | 2), varint(data.length), data]);
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const message = (field, ...parts) => bytes(field, Buffer.concat(parts));
const text = (field, value) => bytes(field, Buffer.from(value));
const packed = (field, values) => bytes(field, Buffer.concat(values.map(varint)));

function fixed64(value) {
	const data = Buffer.alloc(8);
	data.writeBigUInt64LE(BigInt(value));
	return data;
}

/* What messages of one request share, by number; number 0 stands for nothing. */
class Table {
	list = [];
	numbers = new Map();

	constructor(nothing, write) {
		this.write = write;
		this.id(nothing);
	}

	id(value) {
		const key = JSON.stringify(value);
		if (!this.numbers.has(key)) {
			this.numbers.set(key, this.list.length);
			this.list.push(this.write(value));
		}
		return this.numbers.get(key);
	}
}

/*
 * One report: `samples` are { stack: ["main", .., "leaf"], labels: { cpu: "3" } } with a `value`, or
 * with `atMs`, when each of them was taken.
 */
export function report(labels, fromMs, durationMs, samples) {
	const strings = new Table("", (value) => text(5, value));
	const functions = new Table("", (name) => message(3, number(1, strings.id(name))));
	const locations = new Table("", (name) => message(2, number(1, 0), message(3, number(1, functions.id(name)))));
	const stacks = new Table([], (names) => message(7, packed(1, names.map((name) => locations.id(name)).reverse())));
	const attributes = new Table(["", ""], ([key, value]) =>
		message(6, number(1, strings.id(key)), message(2, text(1, value))));
	const rows = samples.map(({ stack, labels: own = {}, value, atMs = [] }) => message(2,
		number(1, stacks.id(stack)), packed(2, Object.entries(own).map((pair) => attributes.id(pair))),
		packed(4, atMs.length ? atMs.map(() => 1) : [value]), bytes(5, Buffer.concat(atMs.map((ms) => fixed64(BigInt(Math.round(ms * 1000)) * 1000n))))));
	const valueType = (field, type, unit) => message(field, number(1, strings.id(type)), number(2, strings.id(unit)));
	const profile = message(2, valueType(1, "samples", "count"), ...rows,
		Buffer.concat([varint((3 << 3) | 1), fixed64(BigInt(fromMs) * 1_000_000n)]), number(4, BigInt(durationMs) * 1_000_000n),
		valueType(5, "cpu", "nanoseconds"), number(6, PERIOD_NS));
	const resource = Object.entries(labels).map(([key, value]) => message(1, text(1, key), message(2, text(1, value))));
	const dictionary = [message(1), ...locations.list, ...functions.list, message(4), ...strings.list,
		...attributes.list, ...stacks.list];
	return Buffer.concat([message(1, message(1, ...resource), message(2, profile)), message(2, ...dictionary)]);
}

export async function send(...report_) {
	const answer = await fetch(new URL("v1development/profiles", base), {
		method: "POST", headers: { "content-type": "application/x-protobuf" }, body: report(...report_),
	});
	const said = await answer.text();
	assert.equal(answer.status, 200, said);
	/* What is refused is told in the answer. */
	assert.equal(said, "");
}

/* A round time some hours back; each test file takes its own hour. */
export const hoursAgo = (hours) => Math.floor(Date.now() / 600_000) * 600_000 - hours * 3600_000;

export const query = (matchers, fromMs, toMs, more = "") =>
	`?query=${encodeURIComponent(`${TYPE}{${matchers}}`)}&from=${fromMs}&to=${toMs}${more}`;
