# SPDX-License-Identifier: Apache-2.0
"""A second reader of symbol tables, written from docs/formats/symbol-table.md alone."""
import ctypes
import ctypes.util
import struct
from bisect import bisect_right

HEADER_BYTES = 320
PARTS = ("rows", "build_id", "note", "segments", "sources", "regions", "starts", "scopes", "calls", "functions",
         "texts")
COUNTS = ("regions", "blocks", "scopes", "calls", "functions", "files", "texts", "segments", "sources")

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


def leb128(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


class Table:
    def __init__(self, data):
        assert data[:8] == b"FIRNSYMT"
        self.version, header_crc, body_crc = struct.unpack_from("<III", data, 8)
        assert self.version == 1
        assert header_crc == crc32c(data[16:HEADER_BYTES])
        assert body_crc == crc32c(data[HEADER_BYTES:])
        assert struct.unpack_from("<Q", data, 24)[0] == len(data) - HEADER_BYTES
        assert data[-8:] == bytes(8)
        self.origin = data[32]
        self.count = dict(zip(COUNTS, struct.unpack_from("<9I", data, 56)))
        spans = struct.unpack_from("<22Q", data, 96)
        self.part = {name: data[spans[2 * i]:spans[2 * i] + spans[2 * i + 1]] for i, name in enumerate(PARTS)}
        self.build_id = self.part["build_id"].decode()
        self.regions = [struct.unpack_from("<QI", self.part["regions"], 16 * i) for i in range(self.count["regions"])]
        self.starts = [struct.unpack_from("<II", self.part["starts"], 8 * i) for i in range(self.count["blocks"] + 1)]
        self.scopes = self.records("scopes", 2)
        self.calls = self.records("calls", 4)
        self.functions = self.records("functions", 4)
        self.texts = self.read_texts()
        self.rows = [row for block in range(self.count["blocks"]) for row in self.block(block)]
        self.addresses = [row[0] for row in self.rows]
        assert self.addresses == sorted(set(self.addresses))

    def records(self, name, fields):
        widths = self.part[name][:fields]
        bits = self.part[name][8:]
        found, width = [], sum(widths)
        for i in range(self.count[name]):
            start = i * width
            record = Bits(bits[start // 8:(start + width + 7) // 8])
            record.take(start % 8)
            found.append([record.take(each) for each in widths])
        return found

    def read_texts(self):
        found, part = [], self.part["texts"]
        count = -(-self.count["texts"] // 256)
        offsets = struct.unpack_from(f"<{count + 1}I", part)
        for i in range(count):
            data, at, text = unzstd(part[offsets[i]:offsets[i + 1]]), 0, b""
            for _ in range(min(256, self.count["texts"] - len(found))):
                shared, at = leb128(data, at)
                more, at = leb128(data, at)
                text = text[:shared] + data[at:at + more]
                at += more
                found.append(text.decode())
            assert at == len(data)
        return found

    def block(self, number):
        region = max(i for i, (_, first) in enumerate(self.regions) if first <= number)
        start = self.regions[region][0] + self.starts[number][0]
        data = self.part["rows"][self.starts[number][1]:self.starts[number + 1][1]]
        base, rows, files, step, scope, line, column, path, line_base = struct.unpack_from("<I8B", data)
        bits = Bits(data[12:])
        listed = [(bits.take(path), bits.take(line_base)) for _ in range(files)]
        for _ in range(rows):
            address = start + bits.take(step)
            held = bits.take(scope)
            file, lowest = listed[bits.take((files - 1).bit_length())]
            yield address, base + held - 1 if held else None, file, lowest + bits.take(line), bits.take(column)

    def lookup(self, address):
        """(name, mangled name, file, line, column, line of declaration) of each frame."""
        at = bisect_right(self.addresses, address)
        if not at:
            return []
        _, scope, *place = self.rows[at - 1]
        if scope is None:
            return [("", "", self.texts[place[0]], *place[1:], 0)] if place[1] else []
        frames = []
        while scope is not None:
            back, call = self.scopes[scope]
            function, *called_at = self.calls[call]
            name, mangled, declared, declared_line = self.functions[function]
            frames.append((self.texts[name], self.texts[mangled], self.texts[place[0] or declared], *place[1:],
                           declared_line))
            place = called_at
            scope = scope - back if back else None
        return frames
