# SPDX-License-Identifier: Apache-2.0
"""Work of ten kinds, each of a known share of the CPU time, for bench/profilers_bench.

    python3 mix.py SECONDS PROFILE      PROFILE: stacks that faulthandler writes at each SIGPROF
"""
import faulthandler
import re
import signal
import sys
import time


def numbers():
    total = 0
    for i in range(30000):
        total += i * i % 7
    return total


def longer(one, other):
    return (one > other) - (one < other)


class Key:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return longer(self.value, other.value) < 0


def sorting():
    return sorted([Key(i * 7919 % 1009) for i in range(600)])


def strings():
    text = ""
    for i in range(6000):
        text += chr(97 + i % 26)
        if len(text) > 60:
            text = text.replace("ab", "ba").upper().lower()[:30]
    return text


def tables():
    found = {}
    for i in range(9000):
        found[i * 31 % 997] = found.get(i % 997, 0) + 1
    return found


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def recursion():
    return fib(18)


def closures():
    adders = [lambda x, y=i: x + y for i in range(10)]
    return sum(map(lambda x: adders[x % 10](x), range(5000)))


class Shape:
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side


class Disc(Shape):
    def area(self):
        return 3 * super().area()


def objects():
    shapes = [Shape(2), Disc(3)] * 10
    total = 0
    for i in range(6000):
        total += shapes[i % 20].area()
    return total


PATTERN = re.compile(r"(\w+)-(\d+)")


def patterns():
    total = 0
    for i in range(900):
        total += len(PATTERN.sub(lambda match: match.group(2), "one-12 two-345 three-6"))
    return total


def fail(i):
    if i % 2:
        raise ValueError(i)
    return i


def errors():
    total = 0
    for i in range(5000):
        try:
            total += fail(i)
        except ValueError:
            total += 1
    return total


def copies():
    total = 0
    for i in range(600):
        row = list(range(200))
        total += len(row[::-1] + row)
    return total


SHARES = {numbers: 22, sorting: 17, strings: 13, tables: 11, recursion: 9, closures: 8, objects: 7, patterns: 6,
          errors: 4, copies: 3}


def work(seconds):
    used = dict.fromkeys(SHARES, 0.0)
    clock = time.thread_time
    begun = last = clock()
    while last - begun < seconds:
        kind = min(SHARES, key=lambda one: used[one] / SHARES[one])
        kind()
        now = clock()
        used[kind] += now - last
        last = now
    return used


def main():
    with open(sys.argv[2], "w", encoding="utf-8") as profile:
        faulthandler.register(signal.SIGPROF, profile, all_threads=False)
        signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
        used = work(float(sys.argv[1]))
        signal.setitimer(signal.ITIMER_PROF, 0)
    for kind, seconds in used.items():
        print(kind.__name__, seconds)


main()
