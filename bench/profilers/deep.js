// SPDX-License-Identifier: Apache-2.0
// A chain of DEPTH calls without end, with a millisecond of work in the innermost, for bench/runtimes_bench.
"use strict";

function spin() {
	let total = 0;
	for (let i = 0; i < 500000; i++) total += i % 7;
	return total;
}

function dive(depth) {
	return depth === 0 ? spin() : 1 + dive(depth - 1);
}

for (;;) dive(Number(process.argv[2]));
