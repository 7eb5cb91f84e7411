# SPDX-License-Identifier: Apache-2.0
# Work of ten kinds, each of a known share of the CPU time, for bench/profilers_bench.
#
#     perl mix.pl SECONDS PROFILE     PROFILE: folded stacks, which a handler of SIGPROF asks caller for
use strict;
use warnings;
use Time::HiRes qw(clock_gettime setitimer CLOCK_PROCESS_CPUTIME_ID ITIMER_PROF);

sub numbers {
	my $total = 0;
	for my $i (0 .. 30000) {
		$total += $i * $i % 7;
	}
	return $total;
}

sub longer {
	my ($one, $other) = @_;
	return $one <=> $other;
}

sub sorting {
	my @list = map { $_ * 7919 % 1009 } 1 .. 800;
	my @sorted = sort { longer($a, $b) } @list;
	return $#sorted;
}

sub strings {
	my $text = '';
	for my $i (1 .. 8000) {
		$text .= chr(97 + $i % 26);
		if (length($text) > 60) {
			$text =~ s/ab/ba/;
			$text = substr(lc(uc($text)), 0, 30);
		}
	}
	return $text;
}

sub tables {
	my %found;
	for my $i (0 .. 8000) {
		$found{$i * 31 % 997} = ($found{$i % 997} // 0) + 1;
	}
	return $found{1};
}

sub fib {
	my $n = shift;
	return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

sub recursion {
	return fib(16);
}

sub closures {
	my @adders = map { my $i = $_; sub { return $_[0] + $i } } 0 .. 9;
	my $total = 0;
	$total += $adders[$_ % 10]->($_) for 0 .. 5000;
	return $total;
}

package Shape;

sub new {
	my ($class, $side) = @_;
	return bless { side => $side }, $class;
}

sub area {
	my $self = shift;
	return $self->{side} * $self->{side};
}

package Disc;
our @ISA = ('Shape');

sub area {
	my $self = shift;
	return 3 * $self->SUPER::area();
}

package main;

sub objects {
	my @shapes = (Shape->new(2), Disc->new(3));
	my $total = 0;
	for my $i (0 .. 4000) {
		$total += $shapes[$i % 2]->area();
	}
	return $total;
}

sub patterns {
	my $total = 0;
	for my $i (0 .. 900) {
		(my $text = 'one-12 two-345 three-6') =~ s/(\w+)-(\d+)/$2/g;
		$total += length($text);
	}
	return $total;
}

sub fail {
	my $i = shift;
	die "odd\n" if $i % 2;
	return $i;
}

sub errors {
	my $total = 0;
	for my $i (0 .. 3000) {
		$total += eval { fail($i) } // 1;
	}
	return $total;
}

sub copies {
	my $total = 0;
	for my $i (0 .. 200) {
		my @row = reverse 0 .. 400;
		$total += scalar(@{[ @row, $i ]});
	}
	return $total;
}

my %kinds = (numbers => \&numbers, sorting => \&sorting, strings => \&strings, tables => \&tables,
	recursion => \&recursion, closures => \&closures, objects => \&objects, patterns => \&patterns,
	errors => \&errors, copies => \&copies);
my %shares = (numbers => 22, sorting => 17, strings => 13, tables => 11, recursion => 9, closures => 8, objects => 7,
	patterns => 6, errors => 4, copies => 3);
my %stacks;

sub sample {
	my @names;
	for (my $depth = 1; my @frame = caller($depth); $depth++) {
		unshift @names, $frame[3] unless $frame[3] eq '(eval)';
	}
	$stacks{join ';', @names}++;
}

sub work {
	my $seconds = shift;
	my %used = map { $_ => 0 } keys %shares;
	my $begun = clock_gettime(CLOCK_PROCESS_CPUTIME_ID);
	my $last = $begun;
	while ($last - $begun < $seconds) {
		my ($kind) = sort { $used{$a} / $shares{$a} <=> $used{$b} / $shares{$b} } keys %shares;
		$kinds{$kind}->();
		my $now = clock_gettime(CLOCK_PROCESS_CPUTIME_ID);
		$used{$kind} += $now - $last;
		$last = $now;
	}
	return %used;
}

$SIG{PROF} = \&sample;
setitimer(ITIMER_PROF, 0.002, 0.002);
my %used = work($ARGV[0]);
setitimer(ITIMER_PROF, 0);
open(my $out, '>', $ARGV[1]) or die;
print $out "$_ $stacks{$_}\n" for keys %stacks;
close($out);
print "$_ $used{$_}\n" for keys %used;
