# SPDX-License-Identifier: Apache-2.0
"""A service-like mix for diff_bench: parse, match, sort, pack; request sizes vary. Arguments: seed, seconds."""
import json, random, re, sys, zlib, time

rng = random.Random(int(sys.argv[1]))
end = time.time() + float(sys.argv[2])
word = re.compile(r"\b([a-z]+)-(\d+)\b")


def make(n):
    return [
        {
            "id": i,
            "name": "item-%d" % rng.randrange(10**6),
            "tags": ["t%d" % rng.randrange(50) for _ in range(5)],
            "v": rng.random(),
        }
        for i in range(n)
    ]


def encode(rows):
    return json.dumps(rows)


def decode(text):
    return json.loads(text)


def match(text):
    return sum(int(m.group(2)) for m in word.finditer(text))


def order(rows):
    return sorted(rows, key=lambda r: (r["tags"][0], r["v"]))


def pack(text):
    return len(zlib.compress(text.encode(), 1))


def total(rows):
    t = 0.0
    for r in rows:
        for tag in r["tags"]:
            t += len(tag) * r["v"]
    return t


while time.time() < end:
    rows = make(int(rng.lognormvariate(6, 0.8)))
    text = encode(rows)
    back = decode(text)
    match(text)
    order(back)
    pack(text)
    total(back)
