# SPDX-License-Identifier: Apache-2.0
"""Requests with pprof that has its names with it, as a host's SDKs send them: 300 rows and 330 kB of text each."""
import gzip
import random
import resource
import struct
import zlib

HOSTS, PROFILES = 8, 100
NAMES, STACKS, ROWS, DEPTH = 2_600, 3_000, 300, 24
NAME_BYTES = 90
START_NS = 1700006400 * 10**9


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, body):
    """A field that is a number, or one that is bytes."""
    if isinstance(body, int):
        return varint(number << 3) + varint(body)
    return varint(number << 3 | 2) + varint(len(body)) + body


def program(rng):
    """What all profiles of one program share, and its samples: each leaves another one a few frames below its top."""
    texts = ["", "samples", "count", "cpu", "nanoseconds"]
    names = (f"github.com/example/project_{i % 97}/package_{i % 13}.(*Receiver{i}).method_{i}_" for i in range(NAMES))
    texts += [name.ljust(NAME_BYTES, "x") for name in names]
    texts += [f"/build/src/project_{i % 97}/file_{i % 400}.go" for i in range(NAMES)]
    tables = b"".join(field(6, text.encode()) for text in texts)
    for i in range(1, NAMES + 1):
        tables += field(5, field(1, i) + field(2, 4 + i) + field(4, 4 + NAMES + i))
        tables += field(4, field(1, i) + field(4, field(1, i) + field(2, rng.randint(1, 999))))
    tables += field(1, field(1, 1) + field(2, 2)) + field(11, field(1, 3) + field(2, 4)) + field(12, 10**7)
    stacks = [[rng.randint(1, NAMES) for _ in range(DEPTH)]]
    while len(stacks) < STACKS:
        old = stacks[int(len(stacks) * rng.random()**2)]
        cut = rng.randint(1, 8)
        stacks.append([rng.randint(1, NAMES) for _ in range(rng.randint(1, 8))] + old[cut:])
    return tables, [field(2, field(1, b"".join(map(varint, stack))) + field(2, varint(1))) for stack in stacks]


def label(name, value):
    return field(1, field(1, name.encode()) + field(2, value.encode()))


def write(path):
    """Writes the requests (requests.h); bytes before compression, and the seconds of CPU that zlib takes for them."""
    raw_bytes = packed_s = 0
    with open(path, "wb") as file:
        programs = [program(random.Random(number)) for number in range(HOSTS)]
        for number in range(PROFILES):
            for host, (tables, samples) in enumerate(programs):
                rng = random.Random(number * HOSTS + host)
                raw = tables + field(9, START_NS + number * 10**10) + field(10, 10**10)
                raw += b"".join(samples[int(STACKS * rng.random()**2)] for _ in range(ROWS))
                packed = gzip.compress(raw, 6)
                begin = resource.getrusage(resource.RUSAGE_SELF).ru_utime
                zlib.decompress(packed, 31)
                packed_s += resource.getrusage(resource.RUSAGE_SELF).ru_utime - begin
                raw_bytes += len(raw)
                labels = label("__name__", "process_cpu") + label("comm", f"program-{host}")
                body = field(2, field(1, labels) + field(2, field(1, packed)))
                file.write(struct.pack("=QQ", len(body), ROWS) + body)
    return raw_bytes, packed_s
