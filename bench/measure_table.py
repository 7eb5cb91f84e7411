# SPDX-License-Identifier: Apache-2.0
"""What a program's debug information takes, and what its symbol table does; for the benchmarks."""
import glob
import os
import re
import struct
import tempfile
from dataclasses import dataclass

import symbol_peer

COMPRESSED = 0x800  # SHF_COMPRESSED


def sections_bytes(path):
    """Of all .debug_* sections of an ELF64 file, unpacked."""
    total = 0
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
        for name, _, flags, _, offset, size, *_ in sections:
            name = texts[name:texts.index(b"\0", name)]
            file.seek(offset)
            head = file.read(16)
            if name.startswith(b".zdebug") and head[:4] == b"ZLIB":
                total += struct.unpack_from(">Q", head, 4)[0]
            elif name.startswith(b".debug"):
                total += struct.unpack_from("<Q", head, 8)[0] if flags & COMPRESSED else size
    return total


def dwarf_bytes(path):
    """Of a program: its own, its debug file's, those of split units beside it and of dwz's common file."""
    folder = os.path.dirname(path)
    paths = {os.path.realpath(each) for each in (path, symbol_peer.separate_of(path))}
    for beside in (path + ".debug", path + ".dwp", path + ".common"):
        paths.add(beside)
    if os.path.basename(path) == "program":
        paths.update(glob.glob(os.path.join(folder, "*.dwo")))
    return sum(sections_bytes(each) for each in paths if os.path.exists(each))


@dataclass
class Stats:
    table_bytes: int
    build_seconds: float
    build_cpu_seconds: float
    answer_seconds: float
    build_mb: int
    anonymous_mb: int


def stats(path, addresses):
    """What `firn symbolize --stats` says."""
    with tempfile.TemporaryFile("w+") as errors:
        usage = []
        symbol_peer.timed([os.environ["FIRN"], "symbolize", "--stats", path], symbol_peer.lines_of(addresses), usage,
                          errors)
        errors.seek(0)
        found = dict(re.findall(r"^([a-z ]+): ([0-9.]+)$", errors.read(), re.MULTILINE))
    return Stats(int(found["table bytes"]), float(found["seconds to build"]),
                 usage[0][1] - float(found["seconds to answer"]), float(found["seconds to answer"]),
                 int(found["peak bytes to build"]) >> 20, int(found["bytes besides mapped files"]) >> 20)
