# SPDX-License-Identifier: Apache-2.0
"""A second reader of symbol tables, written from docs/formats/symbol-table.md alone."""
import ctypes
import ctypes.util
import struct
from bisect import bisect_right

HEADER_BYTES = 320
PARTS = ("rows", "build_id", "note", "segments", "sources", "regions", "starts", "scopes", "functions", "texts")
COUNTS = ("regions", "blocks", "scopes", "functions", "files", "texts", "segments", "sources", "texts_per_block",
          "unnamed")

ZSTD = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
ZSTD.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong


def crc32c_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


CRC = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def unzstd(data):
    size = ZSTD.ZSTD_getFrameContentSize(data, ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(size or 1)
    assert ZSTD.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data))) == size
    return out.raw[:size]


class Bits:
    def __init__(self, data):
        self.value = int.from_bytes(data, "little")
        self.at = 0

    def take(self, width):
        found = self.value >> self.at & ((1 << width) - 1)
        self.at += width
        return found


def unpack(data, fields):
    """The records of a pack; each number with whether it is a patch."""
    count, bits = data[0], Bits(data[1:])
    heads = [(bits.take(6), bits.take(7), bits.take(6), bits.take(5)) for _ in range(fields)]
    columns = []
    for width, patches, patch_width, base_width in heads:
        base = bits.take(base_width)
        column = [(base + bits.take(width), False) for _ in range(count)]
        for _ in range(patches):
            index = bits.take(6)
            column[index] = (bits.take(patch_width), True)
        columns.append(column)
    return list(zip(*columns))


class Table:
    def __init__(self, data):
        assert data[:8] == b"FIRNSYMT"
        self.version, header_crc, body_crc = struct.unpack_from("<III", data, 8)
        assert self.version == 4
        assert header_crc == crc32c(data[16:HEADER_BYTES])
        assert body_crc == crc32c(data[HEADER_BYTES:])
        assert struct.unpack_from("<Q", data, 24)[0] == len(data) - HEADER_BYTES
        assert data[-8:] == bytes(8)
        self.origin = data[32]
        self.count = dict(zip(COUNTS, struct.unpack_from("<10I", data, 56)))
        spans = struct.unpack_from("<20Q", data, 96)
        self.part = {name: data[spans[2 * i]:spans[2 * i] + spans[2 * i + 1]] for i, name in enumerate(PARTS)}
        self.build_id = self.part["build_id"].decode()
        self.regions = [struct.unpack_from("<QI", self.part["regions"], 16 * i) for i in range(self.count["regions"])]
        self.starts = [struct.unpack_from("<II", self.part["starts"], 8 * i) for i in range(self.count["blocks"] + 1)]
        self.scopes = self.records("scopes", 4)
        self.functions = [(file[0], line[0]) for file, line in self.records("functions", 2)]
        self.texts = self.read_texts()
        self.rows = [row for block in range(self.count["blocks"]) for row in self.block(block)]
        self.addresses = [row[0] for row in self.rows]
        assert self.addresses == sorted(set(self.addresses))

    def blocks(self, name, count):
        part = self.part[name]
        offsets = struct.unpack_from(f"<{count + 1}I", part)
        return [part[offsets[i]:offsets[i + 1]] for i in range(count)]

    def records(self, name, fields):
        return [record for block in self.blocks(name, -(-self.count[name] // 64)) for record in unpack(block, fields)]

    def read_texts(self):
        found = []
        for block in self.blocks("texts", -(-self.count["texts"] // self.count["texts_per_block"])):
            texts = unzstd(block).decode().split("\0")
            assert texts.pop() == ""
            found += texts
        assert len(found) == self.count["texts"] == self.count["files"] + 2 * self.count["functions"]
        return found

    def declared(self, scope):
        return self.functions[self.scopes[scope][1][0]] if scope is not None else (0, 0)

    def block(self, number):
        region = max(i for i, (_, first) in enumerate(self.regions) if first <= number)
        address = self.regions[region][0] + self.starts[number][0]
        data = self.part["rows"][self.starts[number][1]:self.starts[number + 1][1]]
        for i, (step, scope, line, file) in enumerate(unpack(data, 4)):
            address += step[0] if i else 0
            yield address, scope[0] - 1 if scope[0] else None, file, line

    def place(self, file, line, scope):
        """Of a row or a call, told from where the scope's function is declared."""
        declared = self.declared(scope)
        return file[0] or declared[0], line[0] if line[1] else line[0] + declared[1]

    def lookup(self, address):
        """(name, mangled name, file, line, line of declaration) of each frame."""
        at = bisect_right(self.addresses, address)
        if not at:
            return []
        _, scope, file, line = self.rows[at - 1]
        if scope is None:
            return [("", "", self.texts[file[0]], line[0], 0)] if line[0] else []
        frames = []
        while scope is not None:
            step, function, call_line, call_file = self.scopes[scope]
            text = self.count["files"] + 2 * function[0]
            path, number = self.place(file, line, scope)
            frames.append((self.texts[text], self.texts[text + 1], self.texts[path], number,
                           self.functions[function[0]][1]))
            file, line = call_file, call_line
            scope = scope - step[0] if step[0] else None
        return frames
