# SPDX-License-Identifier: Apache-2.0
"""Judges samples of programs/chains.js, whose chains of calls are known, for the programs that run it by V8."""
import collections
import os

import harness
import recording
from harness import check, note
from recording import NATIVE, has_chain, is_marked

WHOLE = 0.99  # of the samples that hold the leaf, without those that say that a table was not there yet
LEAF = 0.75   # of those in the program's own functions
TIME = 0.5    # of the samples that the CPU time gives which the program takes; its compilers have some of it
ROOT = 0.99   # of the same as WHOLE: the thread's start is reached
MARKED = 0.5  # samples before the unwind table of a file was there: that mark goes away
NOT_LOADED = " " + recording.NOT_LOADED
UNREAD = "[javascript: name not read]"
GUESS = " [guess: javascript frames]"
UNNAMED = 0.01  # of the samples of the leaf
CPU_S = 1
FREQUENCY_HZ = 499
PROGRAM = os.path.join(harness.ROOT, "tests", "system", "programs", "chains.js")

# What is called by what, from the outermost on.
CALLBACKS = ["callbacks", NATIVE, "replacement", NATIVE, "byKey", "hotLeaf"]
CHAINS = {
    "callbacks": CALLBACKS,
    "recursion": ["recursion", *["dive"] * 301, "hotLeaf"],
    "generators": ["generators", NATIVE, "outerGenerator", NATIVE, "innerGenerator", "hotLeaf"],
    "asynchronous": ["innerAsync", "hotLeaf"],
    "exceptions": ["exceptions", "thrower?", "hotLeaf"],
    "threads": ["inThread", "hotLeaf"],
    "names": ["names", "table.member", "测量", "hotLeaf"],
    "constructors": ["constructors", "Derived", "Base?", "get method?", "hotLeaf"],
    "inlined": ["inlined", "total", "price", "tax"],
}
# The ways in which V8 runs a function.
TIERS = {
    "interpreted": ["--no-opt", "--no-sparkplug"],
    "baseline": ["--no-opt", "--always-sparkplug"],
}

with open(PROGRAM, encoding="utf-8") as source:
    SOURCE = source.read().splitlines()
FIRST_LINES = {leaf: next(n for n, line in enumerate(SOURCE, 1) if line.startswith(f"function {leaf}("))
               for leaf in ("hotLeaf", "tax")}
HOT_LINES = {leaf: {n for n, line in enumerate(SOURCE, 1) if line.endswith(mark)}
             for leaf, mark in (("hotLeaf", "// HOT"), ("tax", "// SMALL"))}


class Judge:
    """Of one runtime, which runs the program of this path: a copy of PROGRAM."""

    def __init__(self, program=PROGRAM):
        self.program = program
        self.lines = collections.Counter()
        self.names = collections.Counter()

    def names_of(self, stack):
        """The program's own functions; others behind a blank."""
        return [frame.name if frame.file == self.program else " " + frame.name for frame in stack]

    def judge(self, title, chain, samples):
        counts = collections.Counter()
        misfits = collections.Counter()
        leaf = chain[-1]
        for stack, count in samples:
            names = self.names_of(stack)
            counts["all"] += count
            counts["own"] += count * (chain[0] in names)
            if leaf not in names:
                misfits["no leaf: " + ";".join(names)[-300:]] += count * (chain[0] in names)
                continue
            counts["leaf"] += count
            line = next(frame.line for frame in reversed(stack) if frame.file == self.program and frame.name == leaf)
            counts["line"] += count * (line == FIRST_LINES[leaf] or line in HOT_LINES[leaf])
            counts["hot line"] += count * (line in HOT_LINES[leaf])
            if NOT_LOADED in names:
                counts["marked"] += count
                continue
            self.names.update(all=count, unread=count * (UNREAD in names))
            if UNREAD in names:  # judged at the end, of all programs
                continue
            counts["walked"] += count
            counts["root"] += count * (not is_marked(names))
            if has_chain(names, chain):
                counts["whole"] += count
            else:
                misfits[";".join(names)[-500:]] += count
        found, walked = max(counts["leaf"], 1), max(counts["walked"], 1)
        shares = {"root": counts["root"] / walked, "time": counts["leaf"] / (CPU_S * FREQUENCY_HZ),
                  "leaf": counts["leaf"] / max(counts["own"], 1), "whole": counts["whole"] / walked,
                  "line": counts["line"] / found, "marked": counts["marked"] / found,
                  "hot line": counts["hot line"] / found}
        said = f"{title}: {counts['all']} samples, " + ", ".join(f"{name} {share:.1%}"
                                                                 for name, share in shares.items())
        note(said)
        evidence = "\n".join([said] + [f"{n} {stack}" for stack, n in misfits.most_common(4)])
        check(shares["leaf"] >= LEAF, f"{title}: the leaf is found", evidence)
        check(shares["time"] >= TIME, f"{title}: most of the CPU time is in it", evidence)
        check(shares["marked"] <= MARKED, f"{title}: unwind tables are there after a moment", evidence)
        check(shares["root"] >= ROOT, f"{title}: the thread's start is reached", evidence)
        self.lines.update(right=counts["line"], all=found)
        if title == "inlined":
            check(shares["hot line"] >= 0.9, f"{title}: optimized code has the line that runs", evidence)
        check(shares["whole"] >= WHOLE, f"{title}: the whole chain, in order", evidence)

    def judge_lines(self):
        """Of all programs together: in each it is read once, with the name."""
        check(self.lines["right"] >= 0.9 * self.lines["all"],
              "functions have the line that they begin on, or the one that runs", str(self.lines))

    def judge_names(self):
        """Of all programs together: the garbage collector may move a function before its name is read."""
        check(self.names["unread"] <= UNNAMED * self.names["all"], "functions have their names", str(self.names))

    @staticmethod
    def judge_generated(samples, kinds):
        """Generated code that is no function in JavaScript is called what it is."""
        counts = collections.Counter()
        for stack, count in samples:
            names = [frame.name for frame in stack]
            for function, name in kinds.items():
                inner = names[names.index(function) + 1:] if function in names else []
                counts[function] += count * (function in names)
                counts[name] += count * (name in inner)
                counts[f"nameless in {function}"] += count * any("[anon" in frame for frame in inner)
        for function, name in kinds.items():
            nameless = counts[f"nameless in {function}"]
            check(counts[name] >= LEAF * counts[function] > 0 and nameless <= (1 - WHOLE) * counts[function],
                  f"{function}: {name} has its name", str(counts))

    def judge_inlined(self, title, samples):
        """Where it may not be known what is inlined, a stack has the functions, or a mark in their place."""
        outer, inner = CHAINS["inlined"][:2]
        counts = collections.Counter()
        for stack, count in samples:
            names = self.names_of(stack)
            counts["all"] += count * (outer in names)
            counts["inlined"] += count * (inner in names)
            counts["told"] += count * (GUESS in names)
        note(f"{title}: {counts}")
        check(counts["inlined"] + counts["told"] >= LEAF * counts["all"] > 0,
              f"{title}: what may be missing is said", str(counts))
