# SPDX-License-Identifier: Apache-2.0
"""Compares where functions start in a stripped copy of a program, as `firn symbolize` has it, with what the
symbols say that were stripped off. Used by unnamed_functions_test and bench/boundaries_bench."""
import bisect
import os
import random
import re
import struct
import subprocess
from dataclasses import dataclass

FUNC, GNU_IFUNC = 2, 10
LOAD = 1
EXECUTABLE = 4
CLONE = re.compile(r"\.(cold|warm)(\.\d+)?$")  # warm: of BOLT
GO_ABI = re.compile(r"\.abi(0|internal)$")  # Go's own table does not tell it


@dataclass
class Function:
    start: int
    end: int
    name: str


class Elf:
    """What of a 64-bit little-endian ELF file the comparison needs."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path}: no 64-bit little-endian ELF file")
        (sections_at,) = struct.unpack_from("<Q", self.bytes, 40)
        self.count, names = struct.unpack_from("<HH", self.bytes, 60)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, sections_at + 64 * i) for i in range(self.count)]
        self.names = self.sections[names]
        (segments_at,) = struct.unpack_from("<Q", self.bytes, 32)
        (segments,) = struct.unpack_from("<H", self.bytes, 56)
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.bytes, segments_at + 56 * i) for i in range(segments)]

    def text(self, section, at):
        start = section[4] + at
        return self.bytes[start:self.bytes.index(b"\0", start)].decode("utf-8", "replace")

    def section(self, name):
        return next((s for s in self.sections if self.text(self.names, s[0]) == name), None)

    def functions(self, table):
        """Sized functions of .symtab or .dynsym by address."""
        section = self.section(table)
        found = []
        for at in range(0, section[5] if section and section[1] != 8 else 0, 24):
            name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", self.bytes, section[4] + at)
            is_code = 0 < index < self.count and self.sections[index][2] & EXECUTABLE
            if info & 15 in (FUNC, GNU_IFUNC) and size and is_code:
                text = self.text(self.sections[section[6]], name)
                found.append(Function(value, value + size, text.split("@")[0]))
        return sorted(found, key=lambda f: (f.start, f.end))

    def offset_to_address(self, offset):
        """By program headers, as the loader has it: of what BOLT made, strip moves sections away from them."""
        for kind, flags, at, address, _, in_file, _, _ in self.segments:
            if kind == LOAD and flags & 1 and at <= offset < at + in_file:
                return address + offset - at
        return None


@dataclass
class Outcome:
    sampled: int = 0
    same: int = 0  # the function starts where the symbols say
    parts: int = 0  # of the sampled: in ".cold" parts of functions
    parts_alone: int = 0  # of these: shown as functions of their own
    bare: int = 0  # no function at all
    wrong: list = None  # (address, what the symbols say, what was answered)


def starts_at(functions, spans, address):
    """The starts of all functions that hold the address."""
    found = set()
    last = bisect.bisect_right(spans, address) - 1
    for i in range(last, max(-1, last - 8), -1):
        if functions[i].start <= address < functions[i].end:
            found.add(functions[i].start)
    return found


def compare(firn, whole, stripped, count, seed=1, debuginfo="/nonexistent"):
    """Samples addresses in functions of `whole`, evenly by bytes of code, and asks about them in `stripped`."""
    elf, bare = Elf(whole), Elf(stripped)  # whose offsets in the file may differ
    functions = elf.functions(".symtab")
    spans = [f.start for f in functions]
    by_name = {}
    for function in functions:
        by_name.setdefault(GO_ABI.sub("", function.name), set()).add(function.start)
    chance = random.Random(seed)
    picked = chance.choices(functions, weights=[f.end - f.start for f in functions], k=count) if functions else []
    addresses = [chance.randrange(f.start, f.end) for f in picked]
    answers = subprocess.run([firn, "symbolize", "--debuginfo-path", debuginfo, "--demangle", "none", stripped],
                             input="".join(f"{a:x}\n" for a in addresses), capture_output=True, text=True,
                             check=False).stdout
    outcome = Outcome(wrong=[])
    for address, answer in zip(addresses, answers.split("\n\n")):
        name = answer.strip("\n").split("\n")[-1].split("\t")[0]  # of the function itself, behind what is inlined
        starts = starts_at(functions, spans, address)
        part_of = set()
        near = [functions[i] for s in starts
                for i in range(bisect.bisect_left(spans, s), bisect.bisect_right(spans, s))]
        for function in near:
            if CLONE.search(function.name) and function.start <= address < function.end:
                part_of |= by_name.get(CLONE.sub("", function.name), set())
        if part_of:
            outcome.parts += 1
        unnamed = re.search(r"\+0x([0-9a-f]+)$", name)
        if name == "??":
            outcome.bare += 1
            got = set()
        elif unnamed:
            got = {bare.offset_to_address(int(unnamed.group(1), 16))}
        else:
            got = by_name.get(name, set())
        outcome.sampled += 1
        if got & (part_of or starts):
            outcome.same += 1
        else:
            outcome.parts_alone += bool(part_of and got & starts)
            outcome.wrong.append((address, functions[bisect.bisect_right(spans, address) - 1].name, name))
    return outcome


@dataclass
class Guesses:
    right: int = 0
    wrong: int = 0
    none: int = 0  # functions without a name, of which nothing is guessed
    examples: list = None  # wrong ones: (the guess, what the symbols say)


def guesses(firn, whole, stripped):
    """Asks `stripped` about the start of each function of `whole`: is what is guessed of its class right?"""
    by_start = {}
    for function in Elf(whole).functions(".symtab"):
        by_start.setdefault(function.start, []).append(function.name)
    answers = subprocess.run([firn, "symbolize", "--debuginfo-path", "/nonexistent", stripped],
                             input="".join(f"{a:x}\n" for a in by_start), capture_output=True, text=True,
                             check=False).stdout.split("\n\n")
    outcome = Guesses(examples=[])
    for names, answer in zip(by_start.values(), answers):
        name = answer.split("\t")[0]
        if not name.startswith("~"):
            outcome.none += "+0x" in name
            continue
        guess = name[1:name.rindex("::?")] + "::"
        said = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
        methods = [text.split(" thunk to ")[-1] for text in said.splitlines()]
        if any(method.startswith(guess) or f" {guess}" in method for method in methods):
            outcome.right += 1
        else:
            outcome.wrong += 1
            outcome.examples.append((name, methods[0]))
    return outcome


def strip(path, folder):
    """A copy without symbols, nor a build id by which a debug file of this host could be found."""
    copy = os.path.join(folder, os.path.basename(path))
    subprocess.run(["strip", "-s", "-R", ".note.gnu.build-id", "-o", copy, path], check=True, capture_output=True)
    return copy
