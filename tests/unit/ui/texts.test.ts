// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { agentCommand } from "../../../src/ui/src/model/agent_command";
import type { Point } from "../../../src/ui/src/model/answers";
import { chartOf } from "../../../src/ui/src/model/chart";
import { START, formatPlace, parsePlace } from "../../../src/ui/src/model/place";
import {
	digits, formatBytes, formatCount, formatPercent, formatRate, formatSamples, formatTime, formatValue,
	typeTitle, unitOf,
} from "../../../src/ui/src/model/quantity";
import {
	completionAt, formatMatchers, formatSelector, parseMatchers, splitSelector, tokenise,
} from "../../../src/ui/src/model/selector";
import { dropTemplateArguments, shorten } from "../../../src/ui/src/model/shortname";
import {
	absoluteRange, isValidRange, resolveTime, snapSpan, stepFor, zoomOut,
} from "../../../src/ui/src/model/timerange";
import { sourceRows } from "../../../src/ui/src/model/source";

const CPU = "on_cpu:samples:count:cpu:nanoseconds:delta";

test("numbers have three significant digits and no exponent", () => {
	const cases: [number, string][] = [
		[0, "0"], [1, "1.00"], [1.234, "1.23"], [12.34, "12.3"], [123.4, "123"],
		[9.996, "10.0"], [99.96, "100"],
		[1234567, "1\u202f234\u202f567"], [0.0123, "0.012"], [0.00001, "<0.001"],
	];
	for (const [value, text] of cases)
		assert.equal(digits(value), text);
	assert.equal(formatCount(90), "90");
	assert.equal(formatCount(1.5), "1.50");
	assert.equal(formatCount(1234567), "1.23 M");
	assert.equal(formatBytes(1536), "1.50 KiB");
	assert.equal(formatBytes(10), "10 B");
	assert.equal(formatTime(0), "0 ns");
	assert.equal(formatTime(1.5e9), "1.50 s");
	assert.equal(formatTime(3600e9), "60.0 min");
});

test("percentages never claim all or nothing wrongly", () => {
	const cases: [number, number, string][] = [
		[0, 10, "0 %"], [1, 1e6, "<0.01 %"], [999999, 1e6, ">99.9 %"], [10, 10, "100 %"],
		[1, 3, "33.3 %"], [1, 200, "0.50 %"], [1, 0, "–"],
	];
	for (const [part, whole, text] of cases)
		assert.equal(formatPercent(part, whole), text);
});

test("CPU samples are time and cores by their period, bytes and gauges are not", () => {
	const cpu = unitOf({ type: CPU, unit: "count", period: 5e7, period_unit: "nanoseconds", delta: true });
	assert.equal(formatValue(cpu, 20), "1.00 s");
	assert.equal(formatRate(cpu, 300, 10), "1.50 cores");
	assert.equal(formatRate(cpu, 200, 10), "1.00 core");
	assert.equal(formatSamples(cpu, 1), "1 sample");
	const heap = unitOf({ unit: "bytes", period: 524288, period_unit: "bytes", delta: false });
	assert.equal(formatValue(heap, 2048), "2.00 KiB");
	assert.equal(formatRate(heap, 2048, 10), "");
	assert.equal(formatSamples(heap, 3), "");
	const routines = unitOf({ unit: "count", period: 1, period_unit: "count", delta: false });
	assert.equal(formatValue(routines, 12), "12");
	assert.equal(typeTitle(CPU), "CPU");
	assert.equal(typeTitle("memory:inuse_space:bytes:space:bytes"), "memory · inuse space");
});

test("names give up template arguments, then the namespace, then their middle", () => {
	const name = "ns::Table<std::string, Doc<int>>::reserve_rehash";
	assert.equal(shorten(name, 100), name);
	assert.equal(dropTemplateArguments(name), "ns::Table::reserve_rehash");
	assert.equal(shorten(name, 30), "ns::Table::reserve_rehash");
	assert.equal(shorten(name, 16), "reserve_rehash");
	assert.equal(shorten(name, 6), "reser…");
	assert.equal(shorten("a_very_long_function_name_indeed", 16), "a_very_lon…ndeed");
	assert.equal(shorten("abcdef", 2), "");
	assert.equal(dropTemplateArguments("operator<"), "operator<");
	assert.equal(dropTemplateArguments("a < b"), "a < b");
	assert.equal(shorten("net/http.(*conn).serve", 20), "http.(*conn).serve");
	for (let room = 0; room < 60; room++)
		assert.ok(shorten(name, room).length <= room);
});

test("matchers are read with or without braces, and written back", () => {
	const texts = [
		'comm="nginx", node=~"web-.+"',
		'{comm="nginx",node=~"web-.+",}',
		' { comm = "nginx" , node =~ "web-.+" } ',
	];
	const matchers = [{ name: "comm", op: "=", value: "nginx" }, { name: "node", op: "=~", value: "web-.+" }];
	for (const text of texts) {
		const parsed = parseMatchers(text);
		assert.ok(parsed.ok, text);
		assert.deepEqual(parsed.matchers, matchers);
		assert.equal(formatMatchers(parsed.matchers), texts[0]);
	}
	const odd = parseMatchers('"k8s pod"!="a\\"b\\\\c\\n"');
	assert.ok(odd.ok);
	assert.deepEqual(odd.matchers, [{ name: "k8s pod", op: "!=", value: 'a"b\\c\n' }]);
	assert.equal(formatMatchers(odd.matchers), '"k8s pod"!="a\\"b\\\\c\\n"');
	assert.ok(parseMatchers("").ok);
	assert.ok(parseMatchers("{}").ok);
});

test("a wrong matcher names the column and what was expected there", () => {
	const cases: [string, number, RegExp][] = [
		["comm", 4, /=, !=/], ["comm=", 5, /value/], ["comm=nginx", 5, /value/],
		['comm="x" node="y"', 9, /comma/],
		['="x"', 0, /label name/], ['comm="x', 5, /value/], ['comm="x"}', 8, /no \{/], ["§", 0, /label name/],
	];
	for (const [text, column, reason] of cases) {
		const parsed = parseMatchers(text);
		assert.ok(!parsed.ok, text);
		assert.equal(parsed.column, column, text);
		assert.match(parsed.reason, reason);
	}
});

test("tokens cover the text without gaps, whatever it is", () => {
	for (const text of ['a="b', "{{}}==~!~", '\\"', 'x="\\', "日本=\"ü\"", 'a="\\""'])
		assert.equal(tokenise(text).map((token) => token.text).join(""), text);
	assert.equal(tokenise('"a\\"')[0]!.closed, false);
	assert.equal(tokenise('"a\\\\"')[0]!.closed, true);
});

test("completion knows what could stand at the caret", () => {
	const at = (text: string, caret = text.length) => {
		const { want, label, typed, from, to } = completionAt(text, caret);
		return [want, label, typed, text.slice(from, to)];
	};
	assert.deepEqual(at(""), ["name", "", "", ""]);
	assert.deepEqual(at("{"), ["name", "", "", ""]);
	assert.deepEqual(at("co"), ["name", "", "co", "co"]);
	assert.deepEqual(at("comm", 2), ["name", "", "co", "comm"]);
	assert.deepEqual(at("comm "), ["op", "comm", "", ""]);
	assert.deepEqual(at("comm="), ["value", "comm", "", ""]);
	assert.deepEqual(at('comm="ng'), ["value", "comm", "ng", '"ng']);
	assert.deepEqual(at("comm=ng"), ["value", "comm", "ng", "ng"]);
	assert.deepEqual(at('comm="nginx"'), ["comma", "comm", "", ""]);
	assert.deepEqual(at('comm="nginx", no'), ["name", "comm", "no", "no"]);
	assert.deepEqual(at('comm="nginx", node=~"', 9), ["value", "comm", "ngi".slice(0, 3), '"nginx"']);
});

test("a selector is type and matchers", () => {
	assert.equal(formatSelector(CPU, ""), CPU);
	assert.equal(formatSelector(CPU, '{comm="x"}'), `${CPU}{comm="x"}`);
	assert.deepEqual(splitSelector(`${CPU}{comm="x{}"}`), { type: CPU, matchers: 'comm="x{}"' });
	assert.deepEqual(splitSelector(""), { type: "", matchers: "" });
});

test("every place survives the URL, and the plain one leaves it empty", () => {
	assert.equal(formatPlace(START), "");
	const place = {
		...START,
		type: CPU,
		matchers: 'comm="a b&c", x=~"[+%]"',
		range: { from: "1700000000000", to: "1700000600000" },
		live: false,
		view: "table" as const,
		zoom: "12.9f3a6c21",
		search: "/json.*parse/i",
		groupBy: ["comm", "a,b"],
		sumBy: "node",
		colourBy: "kind" as const,
		demangle: "simple" as const,
	};
	assert.deepEqual(parsePlace(formatPlace(place)).place, place);
	const paused = { ...START, type: CPU, live: false };
	assert.deepEqual(parsePlace(formatPlace(paused)).place, paused);
});

test("unknown parameters are ignored, wrong values reported, never an error", () => {
	const { place, problems } = parsePlace(
		"?utm=x&view=sunburst&from=yesterday&colour=&demangle=most&group_by=%25zz");
	assert.equal(place.view, "flame");
	assert.deepEqual(place.range, START.range);
	assert.equal(problems.length, 4);
	assert.deepEqual(place.groupBy, ["%zz"]);
});

test("time ranges take what the server takes", () => {
	const now = Date.UTC(2026, 0, 2, 15, 4, 5);
	assert.equal(resolveTime("now", now), now);
	assert.equal(resolveTime("now-15m", now), now - 900_000);
	assert.equal(resolveTime("2026-01-02T15:04:05Z", 0), now);
	assert.equal(resolveTime("1700000000000", 0), 1_700_000_000_000);
	for (const wrong of ["", "now-", "soon", "now-1y", "-5"])
		assert.ok(Number.isNaN(resolveTime(wrong, now)), wrong);
	assert.ok(!isValidRange({ from: "now", to: "now-1h" }));
	assert.deepEqual(absoluteRange({ fromMs: 1.4, toMs: 2.6 }), { from: "1", to: "3" });
});

test("a brush covers whole buckets, and steps are multiples of a report", () => {
	assert.deepEqual(snapSpan({ fromMs: 10_500, toMs: 29_000 }, 10_000), { fromMs: 10_000, toMs: 30_000 });
	assert.deepEqual(snapSpan({ fromMs: 20_000, toMs: 20_000 }, 10_000), { fromMs: 20_000, toMs: 30_000 });
	for (const minutes of [1, 15, 60, 1440, 20_160])
		assert.equal(stepFor({ fromMs: 0, toMs: minutes * 60_000 }, 240) % 10_000, 0);
	assert.deepEqual(zoomOut({ fromMs: 100, toMs: 200 }, 1000), { fromMs: 0, toMs: 300 });
	assert.deepEqual(zoomOut({ fromMs: 100, toMs: 200 }, 250), { fromMs: -50, toMs: 250 });
});

test("a chart has gaps where nobody reported, zero where only others did, cores as unit", () => {
	const unit = unitOf({ type: CPU, unit: "count", period: 1e7, period_unit: "nanoseconds", delta: true });
	const answer = {
		type: CPU, unit: "count", period: 1e7, period_unit: "nanoseconds", delta: true, step_ms: 10_000,
		series: [
			{ labels: { comm: "b" }, points: [[0, 10, 1, 1]] as Point[] },
			{ labels: { comm: "a" }, points: [[0, 500, 50, 1], [20_000, 1000, 100, 1]] as Point[] },
		],
	};
	const chart = chartOf(answer, { fromMs: 0, toMs: 40_000 }, unit);
	assert.deepEqual(chart.xs, [0, 10, 20, 30]);
	assert.deepEqual(chart.lines.map((line) => line.label), ["a", "b"], "heaviest first");
	assert.deepEqual(chart.lines[0]!.ys, [0.5, null, 1, null]);
	assert.deepEqual(chart.lines[1]!.ys, [0.01, null, 0, null]);
	assert.deepEqual(chart.lines.map((line) => line.mean), [1500 / 40 / 100, 10 / 40 / 100],
		"the mean is of the whole range, empty buckets included");
});

test("source lines get their values; lines that the text lacks are kept", () => {
	const rows = sourceRows("one\ntwo\r\n", [[0, 1, 1], [2, 5, 7], [9, 3, 3]]);
	assert.deepEqual(rows.map(({ line, text, self, total }) => [line, text, self, total]), [
		["?", "(line not known)", 1, 1], ["1", "one", 0, 0], ["2", "two", 5, 7], ["9", "", 3, 3],
	]);
	assert.deepEqual(sourceRows(null, [[4, 1, 2]]).map(({ line }) => line), ["4"]);
});

test("the command for an agent goes to where the page is, with TLS where the page has it", () => {
	const command = (address: string) => agentCommand(new URL(address));
	assert.equal(command("http://perf:7070/targets"),
		"sudo firn agent --remote-store-address perf:7070 --remote-store-insecure");
	assert.equal(command("https://perf.example/"), "sudo firn agent --remote-store-address perf.example:443");
	assert.equal(command("https://perf.example:8443/"), "sudo firn agent --remote-store-address perf.example:8443");
});
