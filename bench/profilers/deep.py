# SPDX-License-Identifier: Apache-2.0
"""A chain of DEPTH calls without end, with a millisecond of work in the innermost, for bench/runtimes_bench."""
import sys


def spin():
    total = 0
    for i in range(20000):
        total += i % 7
    return total


def dive(depth):
    return spin() if depth == 0 else 1 + dive(depth - 1)


while True:
    dive(int(sys.argv[1]))
