// SPDX-License-Identifier: Apache-2.0
/*
 * moments - profiles made up for a test and sent to the server as OTLP Profiles: what they hold, and when each
 * sample was taken, is known exactly. They lie hours back, where nothing else is.
 */
import assert from "node:assert/strict";
import { Message } from "./generated.mjs";
import { base } from "./page.mjs";

export const TYPE = "on_cpu:samples:count:cpu:nanoseconds:delta";
const PERIOD_NS = 10_000_000;

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

const message = () => new Message();
const text = (field, value) => message().bytes(field, Buffer.from(value));
const textValue = (value) => text(1, value);
const nanoseconds = (ms) => {
	const bytes = Buffer.alloc(8);
	bytes.writeBigUInt64LE(BigInt(Math.round(ms * 1000)) * 1000n);
	return bytes;
};

/*
 * One report: `samples` are { stack: ["main", .., "leaf"], labels: { cpu: "3" } } with a `value`, or
 * with `atMs`, when each of them was taken.
 */
export function report(labels, fromMs, durationMs, samples) {
	const strings = new Table("", (value) => value);
	const functions = new Table("", (name) => message().number(1, strings.id(name)));
	const locations = new Table("", (name) => message().number(1, 0)
		.message(3, message().number(1, functions.id(name))));
	const stacks = new Table([], (names) => message().packed(1, names.map((name) => locations.id(name)).reverse()));
	const attributes = new Table(["", ""], ([key, value]) =>
		message().number(1, strings.id(key)).message(2, textValue(value)));
	const profile = message();
	const valueType = (field, type, unit) =>
		profile.message(field, message().number(1, strings.id(type)).number(2, strings.id(unit)));
	valueType(1, "samples", "count");
	for (const { stack, labels: own = {}, value, atMs = [] } of samples)
		profile.message(2, message().number(1, stacks.id(stack))
			.packed(2, Object.entries(own).map((pair) => attributes.id(pair)))
			.packed(4, atMs.length ? atMs.map(() => 1) : [value])
				.bytes(5, Buffer.concat(atMs.map(nanoseconds))));
	profile.varint((3 << 3) | 1).raw(nanoseconds(fromMs)).number(4, durationMs * 1e6);
	valueType(5, "cpu", "nanoseconds");
	profile.number(6, PERIOD_NS);
	const resource = message();
	for (const [key, value] of Object.entries(labels))
		resource.message(1, text(1, key).message(2, textValue(value)));
	const dictionary = message().message(1, message());
	const table = (field, { list }) => list.forEach((each) =>
		(typeof each === "string" ? dictionary.bytes(field, Buffer.from(each))
			: dictionary.message(field, each)));
	[[2, locations], [3, functions], [5, strings], [6, attributes], [7, stacks]].forEach((each) => table(...each));
	dictionary.message(4, message());
	return message().message(1, message().message(1, resource).message(2, message().message(2, profile)))
		.message(2, dictionary).done();
}

export const send = (...report_) => sendAs({}, ...report_);

/* As a sender that says something of itself. */
export async function sendAs(headers, ...report_) {
	const answer = await fetch(new URL("v1development/profiles", base), {
		method: "POST", headers: { "content-type": "application/x-protobuf", ...headers },
		body: report(...report_),
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
