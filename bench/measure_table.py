# SPDX-License-Identifier: Apache-2.0
"""What a program's debug information takes, and what its symbol table does; for the benchmarks."""
import glob
import os
import re
import struct
import subprocess
import tempfile
from dataclasses import dataclass

import symbol_peer

COMPRESSED = 0x800  # SHF_COMPRESSED
NOBITS = 8  # SHT_NOBITS
SYMBOLS = (b".symtab", b".strtab", b".dynsym", b".dynstr", b".gopclntab", b".data.rel.ro.gopclntab", b".gnu_debugdata")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESOLVE_BENCH = os.environ.get("RESOLVE_BENCH", os.path.join(ROOT, "build/release/bench/resolve_bench"))
FEW, MANY = 10000, 300000  # addresses


def sections_bytes(path):
    """Of an ELF64 file: of all .debug_* sections, unpacked; of the tables of symbols and Go's functions."""
    total = symbols = 0
    with open(path, "rb") as file:
        header = file.read(64)
        table = struct.unpack_from("<Q", header, 40)[0]
        entry, count, names = struct.unpack_from("<HHH", header, 58)
        sections = []
        for i in range(count):
            file.seek(table + i * entry)
            sections.append(struct.unpack("<IIQQQQIIQQ", file.read(64)))
        file.seek(sections[names][4])
        texts = file.read(sections[names][5])
        for name, kind, flags, _, offset, size, *_ in sections:
            name = texts[name:texts.index(b"\0", name)]
            file.seek(offset)
            head = file.read(16)
            if name.startswith(b".zdebug") and head[:4] == b"ZLIB":
                total += struct.unpack_from(">Q", head, 4)[0]
            elif name.startswith(b".debug"):
                total += struct.unpack_from("<Q", head, 8)[0] if flags & COMPRESSED else size
            elif name in SYMBOLS and kind != NOBITS:
                symbols += size
    return total, symbols


def source_bytes(path):
    """(DWARF, symbols) of a program: its own, its debug file's, split units' beside it, dwz's common file's."""
    folder = os.path.dirname(path)
    paths = {os.path.realpath(each) for each in (path, symbol_peer.separate_of(path))}
    for beside in (path + ".debug", path + ".dwp", path + ".common"):
        paths.add(beside)
    if os.path.basename(path) == "program":
        paths.update(glob.glob(os.path.join(folder, "*.dwo")))
    found = [sections_bytes(each) for each in paths if os.path.exists(each)]
    return sum(dwarf for dwarf, _ in found), sum(symbols for _, symbols in found)


@dataclass
class Stats:
    table_bytes: int
    build_seconds: float
    build_cpu_seconds: float
    answer_seconds: float
    build_mb: int
    anonymous_mb: int


def stats(path, addresses):
    """What `firn symbolize --stats` says, of a table that is kept: no other is made small."""
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryDirectory(prefix="firn-bench-") as tables:
        usage = []
        symbol_peer.timed([os.environ["FIRN"], "symbolize", "--stats", "--tables-path", tables, path],
                          symbol_peer.lines_of(addresses), usage, errors)
        errors.seek(0)
        found = dict(re.findall(r"^([a-z ]+): ([0-9.]+)$", errors.read(), re.MULTILINE))
    return Stats(int(found["table bytes"]), float(found["seconds to build"]),
                 usage[0][1] - float(found["cpu seconds to answer"]), float(found["cpu seconds to answer"]),
                 int(found["peak bytes to build"]) >> 20, int(found["bytes besides mapped files"]) >> 20)


def table_rates(path):
    """Of look-ups in the table alone, by resolve_bench: {(what, order): M addresses/s of CPU time}."""
    out = subprocess.run([RESOLVE_BENCH, path, "1", str(MANY)], capture_output=True, text=True, check=True).stdout
    return {(what, order): float(rate) for what, order, rate in
            re.findall(r"^(frames|frames of many at once|frames with names) +(at random|sorted) +([0-9.]+) M addresses",
                       out, re.MULTILINE)}


def text_seconds(command, addresses):
    """CPU time of a program that reads addresses from a file and writes answers into a pipe."""
    with tempfile.TemporaryFile("w+") as given:
        given.write(symbol_peer.lines_of(addresses))
        given.seek(0)
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        reader = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
        process.stdout.close()
        _, _, spent = os.wait4(process.pid, 0)
        process.returncode = 0
        reader.wait()
        return spent.ru_utime + spent.ru_stime


def print_text_pace(name, path):
    """From text to text, beside llvm-symbolizer, both with and both without the names as in the source."""
    few, many = symbol_peer.code_addresses(path, FEW), symbol_peer.code_addresses(path, MANY)
    tables = tempfile.TemporaryDirectory(prefix="firn-bench-")
    for what, ours, llvm in (("as linked", "none", "--no-demangle"), ("as in the source", "full", "--demangle")):
        firn = [os.environ["FIRN"], "symbolize", "--demangle", ours, path]
        peer = ["llvm-symbolizer-14", "--inlines", llvm, f"--obj={path}"]
        kept = [*firn, "--tables-path", tables.name]
        cold, peer_cold = min(text_seconds(firn, few) for _ in range(3)), text_seconds(peer, few)
        text_seconds(kept, few)
        warm = text_seconds(kept, many) - text_seconds(kept, few)
        peer_warm = text_seconds(peer, many) - peer_cold
        print(f"{name}, text to text, names {what}: table warm {(MANY - FEW) / max(warm, 1e-3) / 1e3:.0f} k/s, "
              f"{peer_warm / max(warm, 1e-3):.1f} times llvm-symbolizer; from cold, {FEW} addresses, in {cold:.3f} s, "
              f"{peer_cold / cold:.1f} times", flush=True)
    tables.cleanup()


def print_pace(name, path):
    """How fast a warm table answers, beside llvm-symbolizer with its tables warm: CPU time beyond FEW addresses."""
    usage = []
    symbol_peer.llvm(path, symbol_peer.code_addresses(path, FEW), usage)
    symbol_peer.llvm(path, symbol_peer.code_addresses(path, MANY), usage)
    slow = (MANY - FEW) / max(usage[1][1] - usage[0][1], 1e-3)
    print(f"{name}: llvm-symbolizer through its standard input {slow / 1e3:.0f} k/s of CPU time; firn "
          f"{stats(path, symbol_peer.code_addresses(path, MANY)).anonymous_mb} MB besides the mapped table")
    print_text_pace(name, path)
    for (what, order), rate in table_rates(path).items():
        print(f"    {what + ', ' + order:<32}{rate:>6.2f} M/s {1e6 * rate / slow:>6.0f} times", flush=True)
