// SPDX-License-Identifier: Apache-2.0
// Work of ten kinds, each of a known share of the CPU time, for bench/profilers_bench.
//
//     node --cpu-prof --cpu-prof-interval 2000 mix.js SECONDS
"use strict";
const fs = require("fs");

function numbers() {
	let total = 0;
	for (let i = 0; i < 400000; i++) total += (i * i) % 7;
	return total;
}

function longer(one, other) {
	return one - other;
}

function sorting() {
	const list = [];
	for (let i = 0; i < 6000; i++) list.push((i * 7919) % 10007);
	return list.sort(longer);
}

function strings() {
	let text = "";
	for (let i = 0; i < 20000; i++) {
		text += String.fromCharCode(97 + (i % 26));
		if (text.length > 60) text = text.replace("ab", "ba").toUpperCase().toLowerCase().slice(0, 30);
	}
	return text;
}

function tables() {
	const found = new Map();
	for (let i = 0; i < 40000; i++) found.set((i * 31) % 997, (found.get(i % 997) || 0) + 1);
	return found;
}

function fib(n) {
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

function recursion() {
	return fib(22);
}

function closures() {
	const adders = [];
	for (let i = 0; i < 10; i++) adders.push((x) => x + i);
	const list = Array.from({ length: 9000 }, (_, x) => x);
	return list.map((x) => adders[x % 10](x)).reduce((sum, x) => sum + x, 0);
}

class Shape {
	constructor(side) {
		this.side = side;
	}
	area() {
		return Math.sqrt(this.side * this.side + 1);
	}
}

class Disc extends Shape {
	area() {
		return 3 * super.area();
	}
}

function objects() {
	let total = 0;
	for (let i = 0; i < 60000; i++) total += (i % 3 ? new Shape(i) : new Disc(i)).area();
	return total;
}

function patterns() {
	let total = 0;
	for (let i = 0; i < 3000; i++) total += "one-12 two-345".replace(/(\w+)-(\d+)/g, (_, a, b) => b).length;
	return total;
}

function fail(i) {
	if (i % 2) throw new RangeError("odd");
	return i;
}

function errors() {
	let total = 0;
	for (let i = 0; i < 600; i++) {
		try {
			total += fail(i);
		} catch (error) {
			total += error.message.length;
		}
	}
	return total;
}

function copies() {
	let total = 0;
	for (let i = 0; i < 600; i++) {
		const row = new Array(200).fill(i);
		total += row.concat(row).reverse().length;
	}
	return total;
}

const SHARES = [
	[numbers, 22],
	[sorting, 17],
	[strings, 13],
	[tables, 11],
	[recursion, 9],
	[closures, 8],
	[objects, 7],
	[patterns, 6],
	[errors, 4],
	[copies, 3],
];

function threadSeconds() {
	return Number(fs.readFileSync("/proc/thread-self/schedstat", "latin1").split(" ")[0]) / 1e9;
}

function work(seconds) {
	const used = SHARES.map(() => 0);
	const begun = threadSeconds();
	let last = begun;
	while (last - begun < seconds) {
		let next = 0;
		for (let i = 1; i < used.length; i++) {
			if (used[i] / SHARES[i][1] < used[next] / SHARES[next][1]) next = i;
		}
		const until = Date.now() + 10;
		do SHARES[next][0](); while (Date.now() < until);
		const now = threadSeconds();
		used[next] += now - last;
		last = now;
	}
	return used;
}

work(Number(process.argv[2])).forEach((seconds, i) => console.log(SHARES[i][0].name, seconds));
