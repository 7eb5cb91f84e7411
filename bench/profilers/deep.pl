# SPDX-License-Identifier: Apache-2.0
# A chain of DEPTH calls without end, with a millisecond of work in the innermost, for bench/runtimes_bench.
use strict;
use warnings;
no warnings 'recursion';

sub spin {
	my $total = 0;
	for my $i (0 .. 20000) {
		$total += $i % 7;
	}
	return $total;
}

sub dive {
	my $depth = shift;
	return $depth == 0 ? spin() : 1 + dive($depth - 1);
}

dive($ARGV[0]) while 1;
