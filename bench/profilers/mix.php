<?php
// SPDX-License-Identifier: Apache-2.0
// Work of ten kinds, each of a known share of the CPU time, for bench/profilers_bench.
//
//     php mix.php SECONDS [PROFILE]     PROFILE: folded stacks, of excimer

function numbers() {
	$total = 0;
	for ($i = 0; $i < 60000; $i++)
		$total += $i * $i % 7;
	return $total;
}

function longer($one, $other) {
	$total = 0;
	for ($i = 0; $i < 12; $i++)
		$total += $one % 7;
	return $one + 0 * $total <=> $other;
}

function sorting() {
	$list = [];
	for ($i = 0; $i < 600; $i++)
		$list[] = $i * 7919 % 1009;
	usort($list, 'longer');
	return $list;
}

function strings() {
	$text = '';
	for ($i = 0; $i < 10000; $i++) {
		$text .= chr(97 + $i % 26);
		if (strlen($text) > 60)
			$text = substr(strtolower(strtoupper(str_replace('ab', 'ba', $text))), 0, 30);
	}
	return $text;
}

function tables() {
	$found = [];
	for ($i = 0; $i < 20000; $i++)
		$found[$i * 31 % 997] = ($found[$i % 997] ?? 0) + 1;
	return $found;
}

function fib($n) {
	return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

function recursion() {
	return fib(19);
}

function closures() {
	$adders = [];
	for ($i = 0; $i < 10; $i++)
		$adders[] = fn($x) => $x + $i;
	$total = 0;
	for ($x = 0; $x < 5000; $x++)
		$total += $adders[$x % 10]($x);
	return $total;
}

class Shape {
	protected $side;

	function __construct($side) {
		$this->side = $side;
	}

	function area() {
		return $this->side * $this->side;
	}
}

class Disc extends Shape {
	function area() {
		return 3 * parent::area();
	}
}

function objects() {
	$shapes = [new Shape(2), new Disc(3)];
	$total = 0;
	for ($i = 0; $i < 10000; $i++)
		$total += $shapes[$i % 2]->area();
	return $total;
}

function patterns() {
	$total = 0;
	for ($i = 0; $i < 800; $i++) {
		$total += strlen(preg_replace('/(\w+)-(\d+)/', '$2', 'one-12 two-345 three-6'));
		for ($j = 0; $j < 20; $j++)
			$total += $j % 3;
	}
	return $total;
}

function fail($i) {
	if ($i % 2)
		throw new RangeException('odd');
	return $i;
}

function errors() {
	$total = 0;
	for ($i = 0; $i < 4000; $i++) {
		try {
			$total += fail($i);
		} catch (RangeException $error) {
			$total++;
		}
	}
	return $total;
}

function copies() {
	$total = 0;
	for ($i = 0; $i < 300; $i++)
		$total += count(array_merge(array_reverse(range(0, 400)), [$i]));
	return $total;
}

const SHARES = ['numbers' => 22, 'sorting' => 17, 'strings' => 13, 'tables' => 11, 'recursion' => 9, 'closures' => 8,
	'objects' => 7, 'patterns' => 6, 'errors' => 4, 'copies' => 3];

function clock() {
	return (int)explode(' ', file_get_contents('/proc/self/schedstat'))[0] / 1e9;
}

function next_kind($used) {
	$next = 'numbers';
	foreach (SHARES as $kind => $share)
		if ($used[$kind] / $share < $used[$next] / SHARES[$next])
			$next = $kind;
	return $next;
}

function work($seconds) {
	$used = array_fill_keys(array_keys(SHARES), 0.0);
	$begun = $last = clock();
	while ($last - $begun < $seconds) {
		$kind = next_kind($used);
		$kind();
		$now = clock();
		$used[$kind] += $now - $last;
		$last = $now;
	}
	return $used;
}

function profiled_work($seconds, $path) {
	$profiler = new ExcimerProfiler;
	$profiler->setEventType(EXCIMER_CPU);
	$profiler->setPeriod(0.002);
	$profiler->start();
	$used = work($seconds);
	$profiler->stop();
	file_put_contents($path, $profiler->getLog()->formatCollapsed());
	return $used;
}

$used = isset($argv[2]) ? profiled_work((float)$argv[1], $argv[2]) : work((float)$argv[1]);
foreach ($used as $kind => $seconds)
	echo "$kind $seconds\n";
