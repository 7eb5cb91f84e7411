# SPDX-License-Identifier: Apache-2.0
# Chains of calls that are known, with all the time in one sub: tests/system/perl_test.
#
#   perl chains.pl SHAPE SECONDS [GATE]
#
# SECONDS of CPU time. With GATE, a FIFO, it waits first until that was opened for writing.
use strict;
use warnings;
no warnings 'recursion';
use utf8;

package Leaf;

sub hotLeaf {
    my ($deadline) = @_;
    my $sum = 0;
    while (Chains::cpu_seconds() < $deadline) {
        my $i = 0;
        while ($i < 20000) {            # HOT
            $sum += $i * $i % 7;        # HOT
            $i += 1;                    # HOT
        }
    }
    return $sum;
}

package Größe;

sub measure { return 測量(@_) }
sub 測量 { return Leaf::hotLeaf(@_) }

package Speaker;

our $AUTOLOAD;
sub new { return bless {}, shift }
sub AUTOLOAD { return $_[0]->shout($_[1]) }
sub shout { return Leaf::hotLeaf($_[1]) }
sub DESTROY { Leaf::hotLeaf($_[0]{deadline}) if $_[0]{deadline} }

package Sum;
use overload '+' => \&plus, '""' => sub { 'sum' };

sub new { return bless { deadline => $_[1] }, $_[0] }
sub plus { my $x = $_[0]; tie my $y, 'Tied', $x->{deadline}; return "$y" }

package Tied;
sub TIESCALAR { return bless [$_[1]], $_[0] }
sub FETCH { return Leaf::hotLeaf($_[0][0]) }

package Chains;

use List::Util qw(first reduce);
use POSIX ();

sub cpu_seconds { my @t = times; return $t[0] + $t[1] + $t[2] + $t[3] }

sub callbacks {
    my ($deadline) = @_;
    return first { inFirst($deadline) } 1, 2;
}

sub inFirst {
    my ($deadline) = @_;
    return reduce { my @sorted = sort { compare($deadline) } 2, 1; 1 } 1, 2;
}

sub compare { Leaf::hotLeaf($_[0]); return 0 }

sub recursion { return dive(300, $_[0]) }

sub dive {
    my ($n, $deadline) = @_;
    for my $one (1) {
        return dive($n - 1, $deadline) if $n;
    }
    return Leaf::hotLeaf($deadline);
}

# Errors are caught below a comparison, which C has called: an interpreter's loop of its own.
sub exceptions {
    my ($deadline) = @_;
    my @sorted = sort { caught($deadline) } 2, 1;
}

sub caught {
    my ($deadline) = @_;
    eval { die "once\n" };
    eval { local $SIG{__DIE__} = sub { Leaf::hotLeaf($deadline) }; die "twice\n" };
    return 0;
}

sub after {
    my ($deadline) = @_;
    my @sorted = sort { afterEval($deadline) } 2, 1;
}

sub afterEval {
    my ($deadline) = @_;
    eval { die "once\n" };
    return Leaf::hotLeaf($deadline);
}

sub destructors { my $x = Speaker->new; $x->{deadline} = $_[0]; undef $x }
sub names { return Größe::measure($_[0]) }
sub magic { return Speaker->new->whatever($_[0]) }
sub operators { return Sum->new($_[0]) + 1 }

our $Deadline;

sub evaluated {
    ($Deadline) = @_;
    return eval 'eval { require "./chains_required.pl"; 1 } or die $@';
}

sub replaces {
    my ($deadline) = @_;
    (my $text = 'a') =~ s/a/inReplace($deadline)/e;
}

sub inReplace { my ($deadline) = @_; 'b' =~ /(?{ Leaf::hotLeaf($deadline) })b/ }

# Each closure lives for a moment.
sub closures {
    my ($deadline) = @_;
    while (cpu_seconds() < $deadline) {
        for my $n (1 .. 4) {
            my $closure = sub { brief($n) };
            first { $closure->(); 0 } 1, 2;
        }
    }
}

sub brief {
    my ($x) = @_;
    for my $i (1 .. 2000) {             # HOT
        $x += $i % 7;                   # HOT
    }
    return $x;
}

sub small {
    my ($deadline) = @_;
    while (cpu_seconds() < $deadline) { fib(14) }
}

sub fib {
    my ($n) = @_;                                   # HOT
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2); # HOT
}

sub several {
    my ($deadline) = @_;
    require threads;
    $_->join for map { threads->create(\&inThread, $deadline) } 1, 2;
}

sub inThread { my ($deadline) = @_; return first { inFirst($deadline) } 1, 2 }

# Processes that last for a third of a second each.
sub children {
    my ($deadline) = @_;
    for (1 .. 6) {
        my $child = fork;
        if (!$child) {
            inChild(cpu_seconds() + 0.33);
            POSIX::_exit(0);
        }
        waitpid $child, 0;
    }
}

sub inChild { return Leaf::hotLeaf($_[0]) }

package main;

sub run { my ($shape, $seconds) = @_; Chains->can($shape)->(Chains::cpu_seconds() + $seconds) }

if (@ARGV) {
    if (defined $ARGV[2]) {
        open my $gate, '<', $ARGV[2] or die;
        <$gate>;
    }
    chdir $1 if __FILE__ =~ m{(.*)/};
    run(@ARGV[0, 1]);
}
1;
