# SPDX-License-Identifier: Apache-2.0
"""What firn symbolize says about addresses, beside llvm-symbolizer and eu-addr2line.

An answer is a list of frames (function, file, line), innermost first. Answers are equal when all
frames are, but for these differences, which are no matter of right or wrong:

  clone      llvm takes the name of the function itself from the symbol table, "work.part.0" or
             "_ZN3boxC2Ev"; ours is DWARF's, "work" or "_ZN3boxC1Ev" (or "C4", the common part).
             Likewise "eq.[5]string" is "eq.[...]string" in Go's own table.
  alias      the symbol table has several names for one address, and llvm takes the last of them;
             ours is the one of the source, or of all the strongest.
  path       the same file, spelt with "." or ".." in it.

  no call    DWARF 2 does not say where an inlined call is: ours has the file in which the caller is
             declared and no line, llvm another guess at the file.

  more       llvm does not read the symbol table of a separate debug file: it says nothing, ours names.

Anything else is a disagreement; eu-addr2line is asked about some, and result.by_second counts those
in which it says what we say.
"""
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field

import harness
import symbol_corpus

LLVM = ["llvm-symbolizer-14", "--no-demangle", "--inlines"]
EXAMPLES = 16
AGREEING = (None, "clone", "alias", "no call", "more")
CLONE = re.compile(r"(\.(cold|part|constprop|isra|lto_priv|llvm|localalias|str|clone|abi0|abiinternal|[0-9]+)"
                   r"(\.[0-9]+)*)+$|@.*$")
ARGUMENTS = re.compile(r"\[[^\]]*\]")
VARIANT = re.compile(r"([CD])[0-5](E|I)")


@dataclass
class Result:
    compared: int = 0
    agreed: int = 0
    named: int = 0
    by_second: int = 0
    kinds: Counter = field(default_factory=Counter)
    examples: list = field(default_factory=list)
    firn_seconds: float = 0.0
    llvm_seconds: float = 0.0
    firn_mb: int = 0
    llvm_mb: int = 0

    def summary(self):
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        return f"{self.agreed} of {self.compared} agree, {self.named} named" + (f" ({kinds})" if kinds else "")


def sections(path):
    """(name, address, bytes) of each section."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    found = []
    for line in out.splitlines():
        match = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+([0-9a-f]+)\s+([0-9a-f]+)\s+([0-9a-f]+)\s", line)
        if match:
            found.append((match[1], int(match[2], 16), int(match[4], 16)))
    return found


def code_addresses(path, count):
    """Random addresses in .text, the same on every run."""
    text = next(section for section in sections(path) if section[0] == ".text")
    pick = random.Random(7)
    return [text[1] + pick.randrange(text[2]) for _ in range(count)]


def timed(command, text, usage, errors=None):
    """Standard output; appends seconds, CPU seconds and peak MB to `usage`."""
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+", errors="replace") as out:
        given.write(text)
        given.seek(0)
        began = time.monotonic()
        process = subprocess.Popen(command, stdin=given, stdout=out, stderr=errors or subprocess.DEVNULL)
        _, status, spent = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        usage.append((time.monotonic() - began, spent.ru_utime + spent.ru_stime, spent.ru_maxrss >> 10))
        out.seek(0)
        return out.read()


def lines_of(addresses):
    return "".join(f"{address:#x}\n" for address in addresses)


def ours(path, addresses, usage=None):
    out = timed([harness.FIRN, "symbolize", "--demangle", "none", path], lines_of(addresses),
                usage if usage is not None else [])
    answers = []
    for block in out.split("\n\n")[:-1]:
        frames = [line.split("\t") for line in block.split("\n")]
        answers.append([(name, *split_place(place)) for name, place, _ in frames])
    return answers


def split_place(place):
    name, _, line = place.rpartition(":")
    return name, int(line) if line.isdigit() else 0


def llvm(path, addresses, usage=None):
    out = timed([*LLVM, f"--obj={path}"], lines_of(addresses), usage if usage is not None else [])
    answers = []
    for block in out.split("\n\n"):
        rows = block.strip("\n").split("\n")
        if rows == [""]:
            continue
        answers.append([(rows[i], *split_place(rows[i + 1].rpartition(":")[0])) for i in range(0, len(rows) - 1, 2)])
    return answers


def second(path, addresses):
    """eu-addr2line's answers: function, then place, for each frame."""
    if not shutil.which("eu-addr2line"):
        return [None] * len(addresses)
    answers = []
    for address in addresses:
        out = subprocess.run(["eu-addr2line", "-ife", path, f"{address:#x}"], capture_output=True, text=True,
                             check=False).stdout.splitlines()
        rows = [(out[i].partition(" inlined at")[0], out[i + 1].partition(" (")[0]) for i in range(0, len(out) - 1, 2)]
        answers.append([(name, *split_place(place.rpartition(":")[0])) for name, place in rows])
    return answers


def plain(name):
    return ARGUMENTS.sub("[...]", VARIANT.sub(r"\1*\2", CLONE.sub("", name)))


def separate_of(path):
    """The installed debug file of a program, or the program."""
    note = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", note)
    separate = f"/usr/lib/debug/.build-id/{found[1][:2]}/{found[1][2:]}.debug" if found else path
    return separate if os.path.exists(separate) else path


def aliases(path):
    """Name -> addresses, from the symbol tables."""
    places = {}
    for table in ([path], ["-D", path], [separate_of(path)]):
        out = subprocess.run(["nm", "--defined-only", "--no-demangle", *table], capture_output=True, text=True,
                             check=False).stdout
        for line in out.splitlines():
            words = line.split()
            if len(words) == 3:
                places.setdefault(plain(words[2]), set()).add(int(words[0], 16))
    return places


def same_file(a, b):
    return a == b or os.path.normpath(a) == os.path.normpath(b)


def difference(mine, theirs, places):
    """None when they agree, "clone" or "alias" when they agree but for that, else what differs."""
    if theirs == [("??", "??", 0)] and mine[0][0] != "??":
        return "more"
    if len(mine) != len(theirs):
        return "DEPTH"
    kind = None
    for i, (a, b) in enumerate(zip(mine, theirs)):
        if a[2] != b[2]:
            return "LINE"
        if not same_file(a[1], b[1]) and i and not a[2]:
            kind = "no call"
        elif not same_file(a[1], b[1]):
            return "FILE"
        if a[0] == b[0]:
            continue
        if i + 1 < len(mine):
            return "INLINED NAME"
        if plain(a[0]) == plain(b[0]):
            kind = "clone"
        elif places.get(plain(b[0]), set()) & places.get(plain(a[0]), set()):
            kind = "alias"
        else:
            return "NAME"
    return kind


def compare(path, addresses, program):
    result = Result()
    mine_usage, theirs_usage = [], []
    peer = symbol_corpus.peer_of(path, program)
    mine, theirs = ours(path, addresses, mine_usage), llvm(peer, addresses, theirs_usage)
    if program.flat:
        theirs = [[(frames[-1][0], *frames[0][1:])] for frames in theirs]
    places = aliases(peer)
    result.firn_seconds, _, result.firn_mb = mine_usage[0]
    result.llvm_seconds, _, result.llvm_mb = theirs_usage[0]
    if len(mine) != len(addresses) or len(theirs) != len(addresses):
        result.examples.append(f"{len(addresses)} addresses, {len(mine)} answers, the peer's {len(theirs)}")
        return result
    differing = []
    for address, a, b in zip(addresses, mine, theirs):
        kind = difference(a, b, places)
        result.compared += 1
        result.named += a[0][0] != "??"
        if kind in AGREEING:
            result.agreed += 1
        else:
            differing.append((address, a, b, kind))
        if kind:
            result.kinds[kind] += 1
    for (address, a, b, kind), c in zip(differing[:40], second(peer, [entry[0] for entry in differing[:40]])):
        agrees = c is not None and difference(a, c, places) in AGREEING
        result.by_second += agrees
        if len(result.examples) < EXAMPLES:
            note = " (eu-addr2line is with us)" if agrees else ""
            result.examples.append(f"{kind} at {address:#x}{note}\n ours   {a}\n theirs {b}")
    return result
