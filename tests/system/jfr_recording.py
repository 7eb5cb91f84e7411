# SPDX-License-Identifier: Apache-2.0
"""Writes flight recordings by the format's description: chunks of events whose classes are told in their metadata."""
import struct
import time


def varint(n):
    n, out = n & (1 << 64) - 1, b""
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def text(s):
    return b"\x03" + varint(len(s.encode())) + s.encode()


def sized(body):
    """An event: its own length comes first, and counts itself."""
    for width in range(1, 5):
        if len(varint(len(body) + width)) == width:
            return varint(len(body) + width) + body
    raise ValueError("too large")


NOW = int(time.time())  # recordings begin 20 s before, unless told otherwise
PRIMITIVES = ("boolean", "char", "float", "double", "byte", "short", "int", "long", "java.lang.String")
CONSTANTS = {  # class: fields (name, class, constant, array)
    "java.lang.Thread": [("osName", "java.lang.String", 0, 0), ("javaName", "java.lang.String", 0, 0)],
    "java.lang.Class": [("name", "jdk.types.Symbol", 1, 0)],
    "jdk.types.Symbol": [("string", "java.lang.String", 0, 0)],
    "jdk.types.Method": [("type", "java.lang.Class", 1, 0), ("name", "jdk.types.Symbol", 1, 0)],
    "jdk.types.StackTrace": [("truncated", "boolean", 0, 0), ("frames", "jdk.types.StackFrame", 0, 1)],
    "jdk.types.StackFrame": [("method", "jdk.types.Method", 1, 0), ("lineNumber", "int", 0, 0)],
    "jdk.types.ThreadState": [("name", "java.lang.String", 0, 0)],
    "profiler.types.AttributeValue": [("value", "java.lang.String", 0, 0)],
}
SAMPLE = [("stackTrace", "jdk.types.StackTrace", 1, 0), ("state", "jdk.types.ThreadState", 1, 0)]
SPANS = [("spanId", "long", 0, 0), ("localRootSpanId", "long", 0, 0)]
EVENTS = {
    "jdk.ActiveSetting": [(n, t, 0, 0) for n, t in (("id", "long"), ("name", "java.lang.String"),
                                                    ("value", "java.lang.String"))],
    "jdk.ExecutionSample": [("sampledThread", "java.lang.Thread", 1, 0), *SAMPLE, ("contextId", "long", 0, 0),
                            ("spanId", "long", 0, 0), ("spanName", "long", 0, 0)],
    "datadog.DatadogProfilerConfig": [("cpuInterval", "long", 0, 0), ("wallInterval", "long", 0, 0)],
    "datadog.ExecutionSample": [("eventThread", "java.lang.Thread", 1, 0), *SAMPLE, ("weight", "long", 0, 0), *SPANS,
                                ("tenant", "profiler.types.AttributeValue", 1, 0)],
    "datadog.ObjectSample": [("eventThread", "java.lang.Thread", 1, 0), SAMPLE[0], ("size", "long", 0, 0),
                             ("weight", "float", 0, 0), *SPANS],
}


def chunk(names, events, start_ns=None, duration_ns=10**10):
    """Of events (class, values), whose stacks, states, threads and attributes are given as what they say."""
    classes = [*PRIMITIVES, *CONSTANTS, *names]
    ids = {name: 20 + i for i, name in enumerate(classes)}
    layouts = {**CONSTANTS, **{n: EVENTS[n] for n in names}}
    pools = {name: {} for name in CONSTANTS}

    def constant(kind, said):
        if kind == "jdk.types.StackTrace":
            body = b"\0" + varint(len(said)) + b"".join(
                varint(constant("jdk.types.Method", frame)) + varint(7) for frame in said)
        elif kind == "jdk.types.Method":
            of, _, name = said.rpartition(".")
            body = varint(constant("java.lang.Class", of)) + varint(constant("jdk.types.Symbol", name))
        elif kind == "java.lang.Class":
            body = varint(constant("jdk.types.Symbol", said))
        else:
            body = text(said) * len(CONSTANTS[kind])
        return pools[kind].setdefault(body, len(pools[kind]) + 1)

    out = b""
    for name, values in events:
        body = varint(ids[name])
        for (_, kind, is_constant, _), value in zip(layouts[name], values):
            body += (varint(constant(kind, value)) if is_constant else text(value) if kind == "java.lang.String"
                     else struct.pack(">f", value) if kind == "float" else varint(value))
        out += sized(body)
    checkpoint = varint(1) + varint(0) * 3 + b"\0" + varint(len(pools))
    for name, pool in pools.items():
        checkpoint += varint(ids[name]) + varint(len(pool)) + b"".join(varint(k) + v for v, k in pool.items())
    strings = {}

    def element(name, attributes, children=()):
        number = [varint(strings.setdefault(s, len(strings))) for s in (name, *sum(attributes.items(), ()))]
        return (number[0] + varint(len(attributes)) + b"".join(number[1:]) + varint(len(children))
                + b"".join(children))
    tree = element("root", {}, [element("metadata", {}, [
        element("class", {"name": name, "id": str(ids[name])}, [
            element("field", {"name": n, "class": str(ids[t]), **({"constantPool": "true"} if c else {}),
                              **({"dimension": "1"} if a else {})}) for n, t, c, a in layouts.get(name, [])])
        for name in classes]), element("region", {})])
    metadata = varint(0) * 4 + varint(len(strings)) + b"".join(text(s) for s in strings) + tree
    checkpoint, metadata = sized(checkpoint), sized(metadata)
    head = 68 + len(out)
    return struct.pack(">4sHHqqqqqqqI", b"FLR\0", 2, 1, head + len(checkpoint) + len(metadata), head,
                       head + len(checkpoint), start_ns or (NOW - 20) * 10**9, duration_ns, 0, 10**9, 1
                       ) + out + checkpoint + metadata


def settings(**values):
    return [("jdk.ActiveSetting", (1, n, str(v))) for n, v in values.items()]
