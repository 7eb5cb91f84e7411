# SPDX-License-Identifier: Apache-2.0
"""Parca's and Pyroscope's calls by Connect in JSON, and their answers as {stack, root first: value of its own}."""
import base64
import collections
import gzip
import json
import time
import urllib.error
import urllib.request

PARCA = "/parca.query.v1alpha1.QueryService/"
PYROSCOPE = "/querier.v1.QuerierService/"


def ask(url, method, message):
    """The answer, or {"code": .., "message": ..}."""
    call = urllib.request.Request(url + method, json.dumps(message).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(call, timeout=60) as reply:
            return json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())


def stamp(at_ns):
    """A protobuf Timestamp in JSON."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_ns // 10**9)) + f".{at_ns % 10**9:09d}Z"


def at_ns_of(text):
    """The other way round."""
    whole, _, part = text.rstrip("Z").partition(".")
    seconds = time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone
    return int(seconds) * 10**9 + int(part.ljust(9, "0") or 0)


def of_levels(names, levels, width, sides):
    """Pyroscope's levels: groups of `width` numbers; `sides` says where each has (offset, total, self); the last is
    the name. Returns a dictionary per side."""
    found, above = [collections.Counter() for _ in sides], []
    for depth, level in enumerate(levels):
        values = [int(v) for v in (level.get("values", []) if isinstance(level, dict) else level)]
        here, ends = [], [0] * len(sides)
        for i in range(0, len(values), width):
            spans = []
            for number, at in enumerate(sides):
                left = ends[number] + values[i + at]
                ends[number] = left + values[i + at + 1]
                spans.append((left, ends[number]))
            path = ()
            if depth:
                parent = next(p for s, p in above if all(a[0] <= b[0] and b[1] <= a[1] for a, b in zip(s, spans)))
                path = parent + (names[values[i + width - 1]],)
            here.append((spans, path))
            for number, at in enumerate(sides):
                found[number][path] += values[i + at + 2]
        above = here
    return [{k: v for k, v in side.items() if v} for side in found]


def of_pprof(profile_pb2, text, column=0):
    """A pprof in base64, packed or not."""
    raw = base64.b64decode(text)
    profile = profile_pb2.Profile.FromString(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    names = {f.id: profile.string_table[f.name] for f in profile.function}
    places = {p.id: [names[line.function_id] for line in p.line] for p in profile.location}
    found = collections.Counter()
    for sample in profile.sample:
        stack = [name for place in sample.location_id for name in places[place]]
        found[tuple(reversed(stack))] += sample.value[column]
    return {k: v for k, v in found.items() if v}


def of_nodes(root):
    """Parca's FLAMEGRAPH_UNSPECIFIED."""
    found, todo = {}, [((), root)]
    while todo:
        path, node = todo.pop()
        children = node.get("children", [])
        own = int(node.get("cumulative", 0)) - sum(int(c.get("cumulative", 0)) for c in children)
        if own:
            found[path] = found.get(path, 0) + own
        todo += [(path + (c["meta"]["function"]["name"],), c) for c in children]
    return found
