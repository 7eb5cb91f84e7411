#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A second reader of parts, written from docs/formats/part.md alone; needs nothing but libzstd.

    part_reader.py FILE            the profiles as sorted lines (tests/unit/persist/lines.h)
    part_reader.py --bytes FILE    stored bytes by what they hold
"""
import ctypes
import struct
import sys

KINDS = 15  # of frames
SECTIONS = ("index", "series", "strings", "frames", "nodes")
COUNTS = ("series", "row_label_sets", "label_strings", "strings", "frames", "nodes", "stacks", "reports", "rows")
LEVELS = {3: 5, 4: 7}  # of a version
INT64 = 1 << 63


class Damaged(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Damaged(what)


def crc32c(data, table=[]):
    if not table:
        for i in range(256):
            for _ in range(8):
                i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
            table.append(i)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def unzstd(data, size):
    lib = ctypes.CDLL("libzstd.so.1")
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size + 1)
    done = lib.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    need(done == size, "zstd")
    return out.raw[:size]


def signed(value):
    """The int64 of a number modulo 2^64."""
    value &= 2**64 - 1
    return value - 2**64 if value >= INT64 else value


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        need(count <= len(self.data) - self.at, "ends early")
        self.at += count
        return self.data[self.at - count:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                need(value < 2**64, "varint")
                return value

    def varints(self, count):
        return [self.varint() for _ in range(count)]

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def zigzags(self, count):
        return [self.zigzag() for _ in range(count)]

    def end(self):
        need(self.at == len(self.data), "bytes left")


def texts(source, lengths):
    return [source.take(length).decode("utf-8", "surrogateescape") for length in lengths]


class Part:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.file = file.read()
        magic, version, zero, number = struct.unpack_from("<8sIIQ", self.file)
        need((magic, zero) == (b"FIRNPRT\0", 0) and version in LEVELS, "header")
        self.levels = LEVELS[version]
        end = len(self.file) - 64
        offset, stored, raw, again, _, _, crc, own_crc, magic = struct.unpack_from("<QQQQQQII8s", self.file, end)
        need(magic == b"FIRNEND\0" and again == number and offset + stored == end, "trailer")
        need(crc32c(self.file[end:end + 52]) == own_crc, "trailer's checksum")
        self.chunks, self.raw = [(offset, stored, raw, crc)], {}
        self.directory, self.end = self.chunk(0), offset
        self.read_directory(Bytes(self.directory), offset)

    def chunk(self, number):
        """Raw bytes. Chunk 0 is the directory until it is read."""
        if number not in self.raw:
            offset, stored, raw, crc = self.chunks[number]
            data = self.file[offset:offset + stored]
            need(crc32c(data) == crc, "checksum")
            self.raw[number] = data if raw == stored else unzstd(data, raw)
        return self.raw[number]

    def read_directory(self, d, end):
        names = [""] + texts(d, d.varints(d.varint()))
        count, offset = d.varint(), 24
        stored = d.varints(count)
        more = d.varints(count)
        self.chunks, self.raw = [], {}
        for size, extra, crc in zip(stored, more, struct.unpack(f"<{count}I", d.take(4 * count))):
            self.chunks.append((offset, size, size + extra, crc))
            offset += size
        need(offset == end, "chunks")
        of_sections = []
        for _ in SECTIONS:
            numbers, following = [], 0
            for gap in d.varints(d.varint()):
                numbers.append(following + gap)
                following += gap + 1
            of_sections.append(iter(numbers))
        self.stripes, following = [], 0
        for _ in range(d.varint()):
            first = following + d.zigzag()
            reports, rows, word = d.varints(3)
            self.stripes.append((first, reports, rows, word >> 1, word & 1))
            following = first + 2 + (word & 1)
        types = []
        for _ in range(d.varint()):
            group = [names[d.varint()] for _ in range(3)] + [d.zigzag()]
            columns = [(names[d.varint()], names[d.varint()], d.varint()) for _ in range(d.varint())]
            types.append((group, columns))
        self.partitions, places = [], [None] * len(SECTIONS)
        for _ in range(d.varint()):
            p = {"tenant": names[d.varint()], "service": names[d.varint()], "label": names[d.varint()]}
            p["group"], p["columns"] = types[d.varint()]
            for field in COUNTS:
                p[field] = d.varint()
            p["start_min"] = d.zigzag()
            p["start_max"] = p["start_min"] + d.varint()
            p["row_label_names"] = [names[i] for i in d.varints(d.varint())]
            p["blocks"] = d.varints(self.levels)
            for i, section in enumerate(SECTIONS):
                word = d.varint()
                size = word >> 1
                if word & 1:
                    places[i] = [next(of_sections[i]), 0]
                p["@" + section] = (*places[i], size) if size else (0, 0, 0)
                if size:
                    places[i][1] += size
            self.partitions.append(p)
        d.end()

    def section(self, partition, name):
        chunk, offset, size = partition["@" + name]
        return Bytes(self.chunk(chunk)[offset:offset + size] if size else b"")


class Partition:
    """The dictionaries of one."""

    def __init__(self, part, entry):
        self.part, self.entry = part, entry
        self.read_series(part.section(entry, "series"))
        self.read_stacks()
        self.blocks = []
        index = part.section(entry, "index")
        for level, count in enumerate(entry["blocks"]):
            stripe, series_max, start_min = 0, 0, entry["start_min"]
            for _ in range(count):
                stripe += index.varint()
                first, reports, rows = index.varints(3)
                series_min = series_max + index.varint()
                series_max = series_min + index.varint()
                start_min += index.zigzag()
                start_max = entry["start_max"] - index.zigzag()
                self.blocks.append((level, stripe, first, reports, rows, series_min, series_max, start_min, start_max))
                stripe += 1
        index.end()

    def read_series(self, s):
        entry = self.entry
        count = s.varint()
        need(count + 1 == entry["label_strings"], "strings")
        shared, rest = s.varints(count), s.varints(count)
        strings = [b""]
        for same, more in zip(shared, rest):
            strings.append(strings[-1][:same] + s.take(more))
        need(strings == sorted(set(strings)), "order of strings")
        self.strings = strings
        self.series = [[] for _ in range(entry["series"])]
        name = 0
        for _ in range(s.varint()):
            name += s.varint()
            values, value = [None], 0
            for gap in s.varints(s.varint()):
                value += gap
                values.append(value)
            for labels, place in zip(self.series, s.varints(entry["series"])):
                if place:
                    labels.append((name, 0, values[place], 0, 0))
        sets = [[]]
        for _ in range(entry["row_label_sets"]):
            labels = []
            for _ in range(s.varint()):
                word = s.varint()
                if word & 1:
                    labels.append((word >> 1, 1, 0, s.varint(), s.zigzag()))
                else:
                    labels.append((word >> 1, 0, s.varint(), 0, 0))
            sets.append(labels)
        s.end()
        self.label_sets = sets + self.series

    def read_stacks(self):
        entry = self.entry
        s = self.part.section(entry, "strings")
        lengths = s.varints(entry["strings"] - entry["label_strings"])
        self.strings += [s.take(length) for length in lengths]
        s.end()
        self.strings = [text.decode("utf-8", "surrogateescape") for text in self.strings]
        f = self.part.section(entry, "frames")
        count = entry["frames"]
        columns = [f.varints(count), f.varints(count)]
        newest = entry["label_strings"] - 1
        for _ in range(5):
            text, column = 0, []
            for code in f.varints(count):
                if code == 1:
                    text = newest + 1
                elif code == 2:
                    text = 0
                elif code > 2:
                    text = newest - (code - 3)
                newest = max(newest, text)
                column.append(text)
            columns.append(column)
        for key in (2, 4, 4, 4):  # address by binary; line, column, start line by function
            last, column = {}, []
            for i in range(count):
                text = columns[key][i]
                last[text] = last.get(text, 0) + f.zigzag() & 2**64 - 1
                column.append(last[text])
            columns.append(column)
        f.end()
        self.frames = list(zip(*columns))
        n = self.part.section(entry, "nodes")
        count = entry["nodes"]
        paths = n.varint()
        downs, parents = n.varints(paths), [None]
        for i, up in enumerate([0] + [up + 1 for up in n.varints(paths - 1)]):
            at = len(parents) - 1
            for _ in range(up):
                at = parents[at]
            for _ in range(downs[i]):
                parents.append(at)
                at = len(parents) - 1
        need(len(parents) == count, "nodes")
        places = [Bytes(n.take(length)) for length in n.varints(4)]
        of_nodes, callees, popular, met, children = [None], {}, [], [], [0] * count
        for i in range(1, count):
            called, place = callees.setdefault(of_nodes[parents[i]], []), 0
            if len(called) > children[parents[i]]:
                place = places[(len(called) >= 2) + (len(called) >= 4) + (len(called) >= 16)].varint()
            children[parents[i]] += 1
            if place:
                of_nodes.append(called[place - 1])
                continue
            code = n.varint()
            frame = popular[code - 1] if code else len(popular)
            if not code:
                popular.append(frame)
                met.append(1)
            else:
                first = next(place for place in range(code) if met[popular[place]] == met[frame])
                popular[code - 1], popular[first] = popular[first], frame
                met[frame] += 1
            called.append(frame)
            of_nodes.append(frame)
        for list_of_places in places:
            list_of_places.end()
        leaf = [True] * count
        for i in range(1, count):
            leaf[parents[i]] = False
        classes = [0] * count
        for wanted in (True, False):
            for i in range(count):
                if leaf[i] is wanted:
                    classes[i] = n.take(1)[0]
        n.end()
        self.nodes = list(zip(parents, of_nodes))
        self.node_of_rank = sorted((i for i in range(count) if classes[i]), key=lambda i: (-classes[i], i))
        need(len(self.node_of_rank) == entry["stacks"], "stacks")


def clamp(value):
    return max(-INT64, min(INT64 - 1, value))


class Stripe:
    def __init__(self, part, number):
        chunk, self.reports_count, self.rows_count, self.columns, has_moments = part.stripes[number]
        self.read_headers(Bytes(part.chunk(chunk)))
        self.read_rows(Bytes(part.chunk(chunk + 1)))
        self.moments = [[] for _ in range(self.reports_count)]  # (row, tick or None, link) of each report
        if has_moments:
            self.read_moments(Bytes(part.chunk(chunk + 2)))

    def read_headers(self, h):
        flags = h.varint()
        blocks = h.varints(h.varint())
        need(sum(blocks) == self.reports_count, "blocks")
        self.codes = [(h.varint(), h.zigzag()) for _ in range(self.columns)]
        self.series, begins = [], []
        for block in blocks:
            series, left = 0, block
            while left:
                series += h.varint()
                run = h.varint() + 1
                need(run <= left, "runs")
                self.series += [series] * run
                begins += [True] + [False] * (run - 1)
                series += 1
                left -= run
        count, start, step, least = h.varint(), h.zigzag(), h.varint(), h.varint()
        starts = [start]
        for more in h.varints(count - 1):
            starts.append(signed(starts[-1] + (more + least) * step))
        duration, spans, until_next = 0, [], h.take(1)[0]
        for i, start in enumerate(starts):
            if until_next and i + 1 < count:
                duration = starts[i + 1] - start
            duration = signed(duration + h.zigzag())
            spans.append((start, duration))
        self.spans, first, expected = [], 0, 0
        for begin in begins:
            number = (first if begin else expected) + h.zigzag()
            first = number if begin else first
            expected = number + 1
            self.spans.append(spans[number])
        self.row_counts, excesses = [], []
        for byte in h.take(self.reports_count):
            self.row_counts.append(byte & 15)
            excesses.append(byte >> 4)
        for i in range(self.reports_count):
            if self.row_counts[i] == 15:
                self.row_counts[i] += h.varint()
            if excesses[i] == 15:
                excesses[i] = h.zigzag()
        need(sum(self.row_counts) == self.rows_count, "rows")
        self.totals = [[] for _ in range(self.reports_count)]
        for column, (mode, number) in enumerate(self.codes):
            for i, rows in enumerate(self.row_counts):
                if mode == 0:
                    total = clamp(number * rows)
                elif mode == 1:
                    total = signed(self.totals[i][0] * number)
                else:
                    total = signed(((h.zigzag() if column else excesses[i]) + rows) * number)
                self.totals[i].append(total)
        self.counts = [1] * self.reports_count
        self.ends = [clamp(start + duration) for start, duration in self.spans]
        if flags & 2:
            self.counts = h.varints(self.reports_count)
            self.ends = [signed(start + h.zigzag()) for start, _ in self.spans]
        self.has_labels = bool(flags & 1)
        h.end()

    def read_rows(self, r):
        strata = r.varint()
        table = [r.varints(2) for _ in range(r.varint())]
        streams = {kind: Bytes(r.take(size)) for kind, size in table}
        r.end()
        nothing = Bytes(b"")
        gaps, more = streams.get(1, nothing), streams.get(2, nothing)
        ends = [[(j * count + strata - 1) // strata for j in range(strata + 1)] for count in self.row_counts]
        by_report = [b""] * self.reports_count
        for stratum in range(strata):
            for i, begins in enumerate(ends):
                by_report[i] += gaps.take(begins[stratum + 1] - begins[stratum])
        self.ranks = []
        for of_report in by_report:
            rank = 0
            for gap in of_report:
                if gap == 255:
                    gap = int.from_bytes(more.take(4), "little")
                elif gap >= 192:
                    gap = 192 + (gap - 192) * 256 + more.take(1)[0]
                rank += gap
                self.ranks.append(rank)
        gaps.end()
        more.end()
        self.label_sets = []
        labels = streams.get(3, nothing)
        while self.has_labels and len(self.label_sets) < self.rows_count:
            label_set, run = labels.varints(2)
            self.label_sets += [label_set] * run
        self.label_sets = self.label_sets or [0] * self.rows_count
        self.values = []
        for i, (mode, number) in enumerate(self.codes):
            if mode == 0:
                column = [number] * self.rows_count
            elif mode == 1:
                column = [signed(value * number) for value in self.values[0]]
            else:
                distances, others = streams.get(16 + 2 * i, nothing), streams.get(17 + 2 * i, nothing)
                column, ones = [], distances.varint() if distances.data else -1
                for totals, rows in zip(self.totals, self.row_counts):
                    if mode == 3 and (rows == 1 or totals[i] == signed(rows * number)):
                        column += [totals[i] if rows == 1 else number] * rows
                        continue
                    for _ in range(rows):
                        if ones:
                            column.append(number)
                            ones -= 1
                        else:
                            column.append(signed(others.zigzag() * number))
                            ones = distances.varint() if distances.at < len(distances.data) else -1
                others.end()
            self.values.append(column)

    def read_moments(self, m):
        links = [b""] + [m.take(24) for _ in range(m.varint())]
        counts = m.varints(self.reports_count)
        rows = []
        for count, row_count in zip(counts, self.row_counts):
            row = 0
            for gap in m.varints(count):
                row += gap
                need(row < row_count, "row of a moment")
                rows.append(row)
        high = m.varints(len(rows))
        ticks = [(upper << 8 | m.take(1)[0]) - 1 for upper in high]
        of_moments = []
        while len(links) > 1 and len(of_moments) < len(rows):
            link, run = m.varints(2)
            of_moments += [links[link]] * run
        m.end()
        at = 0
        for of_report, count in zip(self.moments, counts):
            for i in range(at, at + count):
                of_report.append((rows[i], ticks[i] if ticks[i] >= 0 else None, of_moments[i] if of_moments else b""))
            at += count


def label_text(partition, label_set):
    out = ""
    for name, numeric, value, unit, number in partition.label_sets[label_set]:
        out += partition.strings[name] + "|" + (f"{number} " if numeric else "")
        out += partition.strings[unit if numeric else value] + "|"
    return out


def stack_text(partition, node):
    out = ""
    while node:
        parent, frame = partition.nodes[node]
        kind, flags, *strings, address, line, column, start_line = partition.frames[frame]
        need(kind < KINDS, "kind")
        out += f" <- {kind},{flags},{address:x},"
        out += "".join(partition.strings[text] + "|" for text in strings)
        out += f"{line},{column},{start_line}"
        node = parent
    return out


def lines_of(part):
    stripes, lines = {}, []
    for entry in part.partitions:
        partition = Partition(part, entry)
        first_series = 1 + entry["row_label_sets"]
        head = "".join(text + "|" for text in entry["group"][:3]) + f"{entry['group'][3]}|"
        head += "".join(f"{kind}|{unit}|{number}|" for kind, unit, number in entry["columns"])
        stacks = {}
        for level, number, first, count, _, _, _, start_min, start_max in partition.blocks:
            stripe = stripes.setdefault(number, None) or Stripe(part, number)
            stripes[number] = stripe
            row = sum(stripe.row_counts[:first])
            for i in range(first, first + count):
                start, duration = stripe.spans[i]
                need(start_min <= start <= start_max, "zone")
                text = head + label_text(partition, first_series + stripe.series[i])
                text += f" @{start}+{duration}-{stripe.ends[i]} x{stripe.counts[i]}"
                totals = "".join(f" {total}" for total in stripe.totals[i])
                lines.append((level, f"{text} {stripe.row_counts[i]} rows{totals}"))
                moments = {}
                for of_row, tick, link in stripe.moments[i]:
                    moments.setdefault(of_row, []).append((-1 if tick is None else tick, link))
                for j in range(row, row + stripe.row_counts[i]):
                    node = partition.node_of_rank[stripe.ranks[j]]
                    if node not in stacks:
                        stacks[node] = stack_text(partition, node)
                    values = "".join(f" {column[j]}" for column in stripe.values)
                    labels = label_text(partition, stripe.label_sets[j])
                    lines.append((level, f"{text}{stacks[node]} {{{labels}}}{values}"))
                    for tick, link in moments.get(j - row, []):
                        lines.append((level, f"{text}{stacks[node]} {{{labels}}}{values} ^{tick} {link.hex()}"))
                row += stripe.row_counts[i]
    return lines


def main():
    part = Part(sys.argv[-1])
    if sys.argv[1] == "--bytes":
        sizes = dict.fromkeys(SECTIONS, 0) | {"headers": 0, "rows": 0, "moments": 0}
        for name in SECTIONS:
            for number in {p["@" + name][0] for p in part.partitions if p["@" + name][2]}:
                sizes[name] += part.chunks[number][1]
        for chunk, *_, has_moments in part.stripes:
            sizes["headers"] += part.chunks[chunk][1]
            sizes["rows"] += part.chunks[chunk + 1][1]
            sizes["moments"] += part.chunks[chunk + 2][1] if has_moments else 0
        sizes["directory"] = len(part.file) - 24 - sum(chunk[1] for chunk in part.chunks)
        print(" ".join(f"{name}={size}" for name, size in sizes.items()))
        return
    out = sorted(line.encode("utf-8", "surrogateescape") for _, line in lines_of(part))
    sys.stdout.buffer.write(b"".join(line + b"\n" for line in out))


if __name__ == "__main__":
    main()
