# SPDX-License-Identifier: Apache-2.0
"""Arrow IPC streams as Parca's agents send them (format/Message.fbs, Schema.fbs), by Google's flatbuffers.

A column is an object that knows its type, its children and its buffers; `stream` writes one batch of them. Types that
common libraries cannot write are what this is for: run ends, dictionaries of structs, list views, string views.
"""
import ctypes
import ctypes.util
import struct

import flatbuffers

INT, BINARY, UTF8, BOOL, TIMESTAMP, LIST, STRUCT, FIXED = 2, 4, 5, 6, 10, 12, 13, 15
RUN_END, UTF8_VIEW, LIST_VIEW = 22, 24, 25
SCHEMA, DICTIONARY, BATCH = 1, 2, 3
V5 = 4
NANOSECONDS = 3


class Column:
    """Children are (name, column); buffers are bytes; dictionary is (id, bits of the index, column of the values)."""

    def __init__(self, tag, length, buffers, children=(), tables=(), variadic=None, nulls=0, has_node=True):
        self.tag, self.length, self.buffers, self.children = tag, length, buffers, list(children)
        self.tables, self.variadic, self.nulls, self.has_node = tables, variadic, nulls, has_node
        self.dictionary = None


def validity(values):
    if None not in values:
        return b""
    bits = bytearray((len(values) + 7) // 8)
    for i, value in enumerate(values):
        if value is not None:
            bits[i // 8] |= 1 << i % 8
    return bytes(bits)


def integers(values, bits=64, signed=True):
    code = {8: "b", 16: "h", 32: "i", 64: "q"}[bits]
    data = struct.pack(f"<{len(values)}{code if signed else code.upper()}", *(v or 0 for v in values))
    return Column(INT, len(values), [validity(values), data], tables=(("i32", 0, bits), ("bool", 1, signed)),
                  nulls=values.count(None))


def times(values):
    return Column(TIMESTAMP, len(values), [b"", struct.pack(f"<{len(values)}q", *values)],
                  tables=(("i16", 0, NANOSECONDS), ("text", 1, "UTC")))


def booleans(values):
    return Column(BOOL, len(values), [b"", validity([value or None for value in values]) or b"\xff" * len(values)])


def offsets_of(parts):
    ends, at = [0], 0
    for part in parts:
        at += len(part)
        ends.append(at)
    return struct.pack(f"<{len(ends)}i", *ends)


def texts(values, tag=UTF8):
    parts = [(value.encode() if isinstance(value, str) else value) or b"" if value else b"" for value in values]
    return Column(tag, len(values), [validity(values), offsets_of(parts), b"".join(parts)], nulls=values.count(None))


def bytes_column(values):
    return texts(values, BINARY)


def fixed_bytes(values, width):
    return Column(FIXED, len(values), [b"", b"".join(values)], tables=(("i32", 0, width),))


def text_views(values):
    views, heap = [], b""
    for value in values:
        data = (value or "").encode()
        if len(data) <= 12:
            views.append(struct.pack("<i", len(data)) + data.ljust(12, b"\0"))
        else:
            views.append(struct.pack("<i4sii", len(data), data[:4], 0, len(heap)))
            heap += data
    return Column(UTF8_VIEW, len(values), [validity(values), b"".join(views), heap], variadic=1,
                  nulls=values.count(None))


def structs(length, **fields):
    return Column(STRUCT, length, [b""], children=fields.items())


def lists(counts, items):
    return Column(LIST, len(counts), [b"", offsets_of([b"x" * count for count in counts])],
                  children=[("item", items)])


def list_views(places, items):
    """`places` are (first, count) of each list: they may overlap."""
    pack = [struct.pack(f"<{len(places)}i", *(place[i] for place in places)) for i in (0, 1)]
    return Column(LIST_VIEW, len(places), [b"", *pack], children=[("item", items)])


def dictionary(identity, indices, values, bits=32):
    column = integers(indices, bits, signed=False)
    column.dictionary = (identity, bits, values)
    return column


def run_ends(values, make):
    """Equal neighbours become one run; `make` makes the column of their values."""
    ends, kept = [], []
    for i, value in enumerate(values):
        if i and value == values[i - 1]:
            ends[-1] = i + 1
        else:
            ends.append(i + 1)
            kept.append(value)
    return Column(RUN_END, len(values), [], children=[("run_ends", integers(ends, 32)), ("values", make(kept))])


def text_dictionary(identity, values, make=texts):
    """A dictionary of what the values are."""
    distinct = sorted({value for value in values if value is not None})
    return dictionary(identity, [None if value is None else distinct.index(value) for value in values], make(distinct))


def offset_vector(builder, offsets):
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def put_type(builder, column):
    held = {slot: builder.CreateString(value) for kind, slot, value in column.tables if kind == "text"}
    builder.StartObject(2)
    for kind, slot, value in column.tables:
        if kind == "i32":
            builder.PrependInt32Slot(slot, value, 0)
        elif kind == "i16":
            builder.PrependInt16Slot(slot, value, 0)
        elif kind == "bool":
            builder.PrependBoolSlot(slot, value, False)
        else:
            builder.PrependUOffsetTRelativeSlot(slot, held[slot], 0)
    return builder.EndObject()


def put_encoding(builder, identity, bits):
    builder.StartObject(2)
    builder.PrependInt32Slot(0, bits, 0)
    index = builder.EndObject()
    builder.StartObject(4)
    builder.PrependInt64Slot(0, identity, 0)
    builder.PrependUOffsetTRelativeSlot(1, index, 0)
    return builder.EndObject()


def put_field(builder, name, column):
    shown = column.dictionary[2] if column.dictionary else column
    children = offset_vector(builder, [put_field(builder, *child) for child in shown.children])
    text, kind = builder.CreateString(name), put_type(builder, shown)
    encoding = put_encoding(builder, *column.dictionary[:2]) if column.dictionary else 0
    builder.StartObject(7)
    builder.PrependUOffsetTRelativeSlot(0, text, 0)
    builder.PrependBoolSlot(1, name != "run_ends", False)
    builder.PrependUint8Slot(2, shown.tag, 0)
    builder.PrependUOffsetTRelativeSlot(3, kind, 0)
    builder.PrependUOffsetTRelativeSlot(4, encoding, 0)
    builder.PrependUOffsetTRelativeSlot(5, children, 0)
    return builder.EndObject()


def put_pairs(builder, pairs):
    made = []
    for key, value in pairs.items():
        texts_of = builder.CreateString(key), builder.CreateString(value)
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(0, texts_of[0], 0)
        builder.PrependUOffsetTRelativeSlot(1, texts_of[1], 0)
        made.append(builder.EndObject())
    return offset_vector(builder, made)


def flatten(column, nodes, buffers, variadic):
    nodes.append((column.length, column.nulls))
    buffers += column.buffers
    if column.dictionary:
        return
    if column.variadic is not None:
        variadic.append(column.variadic)
    for _, child in column.children:
        flatten(child, nodes, buffers, variadic)


def lz4_frame(data):
    library = ctypes.CDLL(ctypes.util.find_library("lz4"))
    library.LZ4F_compressFrameBound.restype = library.LZ4F_compressFrame.restype = ctypes.c_size_t
    library.LZ4F_compressFrameBound.argtypes = [ctypes.c_size_t, ctypes.c_void_p]
    library.LZ4F_compressFrame.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t,
                                           ctypes.c_void_p]
    out = ctypes.create_string_buffer(library.LZ4F_compressFrameBound(len(data), None))
    used = library.LZ4F_compressFrame(out, len(out), data, len(data), None)
    return out.raw[:used]


def compressed(data):
    return struct.pack("<q", len(data)) + lz4_frame(data) if data else b""


def put_batch(builder, length, columns, lz4):
    """(offset of the RecordBatch, body)."""
    nodes, buffers, variadic, body, places = [], [], [], b"", []
    for column in columns:
        flatten(column, nodes, buffers, variadic)
    for data in (compressed(data) if lz4 else data for data in buffers):
        places.append((len(body), len(data)))
        body += data + b"\0" * (-len(data) % 8)
    offsets = []
    for pairs in (nodes, places):
        builder.StartVector(16, len(pairs), 8)
        for first, second in reversed(pairs):
            builder.Prep(8, 16)
            builder.PrependInt64(second)
            builder.PrependInt64(first)
        offsets.append(builder.EndVector())
    builder.StartVector(8, len(variadic), 8)
    for count in reversed(variadic):
        builder.PrependInt64(count)
    counts = builder.EndVector()
    packing = 0
    if lz4:
        builder.StartObject(2)
        packing = builder.EndObject()
    builder.StartObject(5)
    builder.PrependInt64Slot(0, length, 0)
    builder.PrependUOffsetTRelativeSlot(1, offsets[0], 0)
    builder.PrependUOffsetTRelativeSlot(2, offsets[1], 0)
    builder.PrependUOffsetTRelativeSlot(3, packing, 0)
    builder.PrependUOffsetTRelativeSlot(4, counts, 0)
    return builder.EndObject(), body


def message(builder, kind, header, body=b""):
    builder.StartObject(5)
    builder.PrependInt16Slot(0, V5, 0)
    builder.PrependUint8Slot(1, kind, 0)
    builder.PrependUOffsetTRelativeSlot(2, header, 0)
    builder.PrependInt64Slot(3, len(body), 0)
    builder.Finish(builder.EndObject())
    metadata = bytes(builder.Output())
    metadata += b"\0" * (-len(metadata) % 8)
    return struct.pack("<II", 0xFFFFFFFF, len(metadata)) + metadata + body


def dictionaries_of(column, lz4):
    """Messages of its dictionaries, inner ones first."""
    out = b""
    if column.dictionary:
        identity, _, values = column.dictionary
        out += dictionaries_of(values, lz4)
        builder = flatbuffers.Builder(1024)
        data, body = put_batch(builder, values.length, [values], lz4)
        builder.StartObject(3)
        builder.PrependInt64Slot(0, identity, 0)
        builder.PrependUOffsetTRelativeSlot(1, data, 0)
        return out + message(builder, DICTIONARY, builder.EndObject(), body)
    for _, child in column.children:
        out += dictionaries_of(child, lz4)
    return out


def stream(length, columns, metadata, lz4=False):
    """One batch of columns {name: column}."""
    builder = flatbuffers.Builder(1024)
    fields = offset_vector(builder, [put_field(builder, name, column) for name, column in columns.items()])
    pairs = put_pairs(builder, metadata)
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, fields, 0)
    builder.PrependUOffsetTRelativeSlot(2, pairs, 0)
    out = message(builder, SCHEMA, builder.EndObject())
    for column in columns.values():
        out += dictionaries_of(column, lz4)
    builder = flatbuffers.Builder(1024)
    header, body = put_batch(builder, length, columns.values(), lz4)
    return out + message(builder, BATCH, header, body) + struct.pack("<II", 0xFFFFFFFF, 0)
