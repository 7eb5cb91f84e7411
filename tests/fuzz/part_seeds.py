#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes seeds of part_fuzz of a part: the whole, its directory, and pieces of its largest partition.

    part_seeds.py PART DIRECTORY
"""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from part_reader import Part  # noqa: E402

COUNTS = ("series", "row_label_sets", "label_strings", "strings", "frames", "nodes", "stacks")


def main():
    part = Part(sys.argv[1])
    entry = max(part.partitions, key=lambda partition: partition["nodes"])
    chunk, reports, rows, columns, has_moments = next(stripe for stripe in part.stripes if stripe[4])
    counts = struct.pack("<7I", *(entry[name] for name in COUNTS))
    alone = dict(entry, strings=entry["strings"] - entry["label_strings"] + 1)
    alone = struct.pack("<7I", *(alone[name] for name in COUNTS))
    index, series, strings, frames, nodes = (part.section(entry, name).data
                                             for name in ("index", "series", "strings", "frames", "nodes"))
    headers = part.chunk(chunk)
    seeds = {
        "file": part.file,
        "directory": b"d" + struct.pack("<Q", part.end) + part.directory,
        "stripe": b"h" + struct.pack("<4I", reports, rows, columns, len(headers)) + headers + part.chunk(chunk + 1),
        "series": b"s" + counts + struct.pack("<I", len(index)) + index + series,
        "stacks": b"t" + alone + struct.pack("<2I", len(strings), len(frames)) + strings + frames + nodes,
    }
    if has_moments:
        seeds["moments"] = b"m" + struct.pack("<2I", reports, 1 << 16) + part.chunk(chunk + 2)
    for name, data in seeds.items():
        with open(os.path.join(sys.argv[2], name), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
