<?php
// SPDX-License-Identifier: Apache-2.0
// As deep.php, each call of another function.

function spin() {
	$total = 0;
	for ($i = 0; $i < 50000; $i++)
		$total += $i % 7;
	return $total;
}

$depth = (int)$argv[1];
$code = '';
for ($i = 1; $i <= $depth; $i++)
	$code .= "function dive_$i() {\n\treturn 1 + " . ($i < $depth ? 'dive_' . ($i + 1) : 'spin') . "();\n}\n";
eval($code);

while (true)
	dive_1();
