// SPDX-License-Identifier: Apache-2.0
/*
 * clients - asks every method through real clients: @grpc/grpc-js, and @connectrpc/connect by gRPC, gRPC-Web and
 * Connect, in protobuf and JSON. All must understand the same. Arrow answers are read by apache-arrow.
 *
 *	node clients.mjs URL DESCRIPTORS < calls
 *
 * takes [{ service, method, request }] and protoc's descriptor set,
 *
 * writes [{ answer or code, arrow, differ }]: how the first client understood it, and those that did not agree.
 *
 *	node clients.mjs URL DESCRIPTORS SERVICE...
 *
 * watches the health of services through grpc-js, until all streams have ended; writes lines "SERVICE: STATUS" as they
 * come, and "SERVICE: end CODE".
 */
import { createRegistryFromDescriptors } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import { tableFromIPC } from "apache-arrow";
import { readFileSync } from "node:fs";

const [url, descriptors, ...watched] = process.argv.slice(2);
const set = readFileSync(descriptors);
const registry = createRegistryFromDescriptors(set);
const packages = grpc.loadPackageDefinition(loader.loadFileDescriptorSetFromBuffer(set, { keepCase: false }));
const transports = {
	"connect grpc": createGrpcTransport({ baseUrl: url, httpVersion: "2" }),
	"connect grpc-web": createGrpcWebTransport({ baseUrl: url, httpVersion: "1.1" }),
	"connect grpc-web h2": createGrpcWebTransport({ baseUrl: url, httpVersion: "2" }),
	"connect protobuf": createConnectTransport({ baseUrl: url, httpVersion: "1.1", useBinaryFormat: true }),
	"connect json": createConnectTransport({ baseUrl: url, httpVersion: "2", useBinaryFormat: false }),
};
const codes = (code) => grpc.status[code] ?? String(code);

/* An answer as plain JSON, through the message's own type. */
async function askConnect(transport, { service, method, request }) {
	const type = registry.findService(service);
	const called = Object.values(type.methods).find((m) => m.name === method);
	try {
		const client = createClient(type, transport);
		const local = Object.entries(type.methods).find(([, m]) => m === called)[0];
		const answer = await client[local](called.I.fromJson(request));
		return { answer: answer.toJson() };
	} catch (error) {
		return { code: codes(error.code) };
	}
}

const stubs = {};
function stubOf(service) {
	const Stub = service.split(".").reduce((at, name) => at[name], packages);
	return (stubs[service] ??= new Stub(new URL(url).host, grpc.credentials.createInsecure()));
}

function askGrpc({ service, method, request }) {
	const type = registry.findService(service);
	const called = Object.values(type.methods).find((m) => m.name === method);
	const stub = stubOf(service);
	const definition = stub[method];
	/* The request goes out as the other clients encode it, the answer is checked as bytes: grpc-js moves them. */
	const bytes = Buffer.from(called.I.fromJson(request).toBinary());
	return new Promise((resolve) =>
		stub.makeUnaryRequest(definition.path, () => bytes, (answer) => answer, {}, (error, answer) => resolve(
			error ? { code: codes(error.code) } : { answer: called.O.fromBinary(answer).toJson() })),
	);
}

const plain = (value) =>
	value instanceof Uint8Array ? Buffer.from(value).toString()
	: typeof value === "bigint" ? value.toString()
	: value && typeof value[Symbol.iterator] === "function" && typeof value !== "string" ? [...value].map(plain)
	: (value ?? null);

function readArrow(answer) {
	const record = answer?.flamegraphArrow?.record ?? answer?.tableArrow?.record ?? answer?.source?.record;
	if (!record)
		return null;
	const table = tableFromIPC(Buffer.from(record, "base64"));
	return {
		fields: table.schema.fields.map((f) => [f.name, String(f.type)]),
		rows: table.toArray().map((row) => table.schema.fields.map((f) => plain(row[f.name]))),
	};
}

const statuses = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
function watchHealth(service) {
	const stream = stubOf("grpc.health.v1.Health").watch({ service });
	return new Promise((resolve) => {
		stream.on("data", ({ status }) => console.log(`${service}: ${statuses[status]}`));
		stream.on("error", () => {}); /* told by its status */
		stream.on("status", ({ code }) => resolve(console.log(`${service}: end ${codes(code)}`)));
	});
}

if (watched.length) {
	await Promise.all(watched.map(watchHealth));
	process.exit(0);
}

const results = [];
for (const call of JSON.parse(readFileSync(0))) {
	const first = await askGrpc(call);
	const differ = {};
	for (const [name, transport] of Object.entries(transports)) {
		const other = await askConnect(transport, call);
		if (JSON.stringify(other) !== JSON.stringify(first))
			differ[name] = JSON.stringify(other).slice(0, 500);
	}
	results.push({ ...first, arrow: readArrow(first.answer), differ });
}
process.stdout.write(JSON.stringify(results), () => process.exit(0));
