<?php
// SPDX-License-Identifier: Apache-2.0
// A chain of DEPTH calls without end, with a millisecond of work in the innermost, for bench/runtimes_bench. With "many",
// each call is of another function.

function spin() {
	$total = 0;
	for ($i = 0; $i < 50000; $i++)
		$total += $i % 7;
	return $total;
}

function dive($depth) {
	return $depth == 0 ? spin() : 1 + dive($depth - 1);
}

function make_many($depth) {
	$code = '';
	for ($i = 1; $i <= $depth; $i++)
		$code .= "function dive_$i() {\n\treturn 1 + " . ($i < $depth ? 'dive_' . ($i + 1) : 'spin') . "();\n}\n";
	eval($code);
}

$depth = (int)$argv[1];
$is_many = ($argv[2] ?? '') == 'many';
if ($is_many)
	make_many($depth);
while ($is_many)
	dive_1();
while (true)
	dive($depth);
