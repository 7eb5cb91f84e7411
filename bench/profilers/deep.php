<?php
// SPDX-License-Identifier: Apache-2.0
// A chain of DEPTH calls without end, with a millisecond of work in the innermost, for bench/runtimes_bench.

function spin() {
	$total = 0;
	for ($i = 0; $i < 50000; $i++)
		$total += $i % 7;
	return $total;
}

function dive($depth) {
	return $depth == 0 ? spin() : 1 + dive($depth - 1);
}

while (true)
	dive((int)$argv[1]);
