#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes OTLP Profiles requests in several dialects, with Google's protobuf for Python (Debian:
python3-protobuf). The message layouts below are typed from the tables of opentelemetry-proto's
releases; nothing is shared with firn's own decoder or encoder.

    ./make.py [DIRECTORY]
"""
import os
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

F = descriptor_pb2.FieldDescriptorProto
KINDS = {"i32": F.TYPE_INT32, "i64": F.TYPE_INT64, "u32": F.TYPE_UINT32, "u64": F.TYPE_UINT64,
         "f64": F.TYPE_FIXED64, "dbl": F.TYPE_DOUBLE, "bool": F.TYPE_BOOL, "str": F.TYPE_STRING,
         "bytes": F.TYPE_BYTES}

COMMON = {
    "Request": "resource_profiles=1*ResourceProfiles dictionary=2:Dictionary",
    "Dictionary": "mapping=1*Mapping location=2*Location function=3*Function link=4*Link string=5*str "
                  "attribute=6*Attribute stack=7*Stack",
    "ResourceProfiles": "resource=1:Resource scope_profiles=2*ScopeProfiles schema_url=3:str",
    "ScopeProfiles": "scope=1:Scope profiles=2*Profile schema_url=3:str",
    "Resource": "attributes=1*KeyValue dropped=2:u32",
    "Scope": "name=1:str version=2:str attributes=3*KeyValue",
    "KeyValue": "key=1:str value=2:Any key_strindex=3:i32",
    "Any": "string=1:str bool=2:bool int=3:i64 double=4:dbl array=5:Array kvlist=6:List bytes=7:bytes "
           "string_strindex=8:i32",
    "Array": "values=1*Any",
    "List": "values=1*KeyValue",
    "Attribute": "key=1:i32 value=2:Any unit=3:i32",
    "Mapping": "start=1:u64 limit=2:u64 offset=3:u64 filename=4:i32 attributes=5*i32",
    "Location": "mapping=1:i32 address=2:u64 lines=3*Line attributes=4*i32",
    "Line": "function=1:i32 line=2:i64 column=3:i64",
    "Function": "name=1:i32 system_name=2:i32 filename=3:i32 start_line=4:i64",
    "Link": "trace_id=1:bytes span_id=2:bytes",
    "Stack": "locations=1*i32",
    "ValueType": "type=1:i32 unit=2:i32 temporality=3:i32",
}
DIALECTS = {
    "1.8": {"Profile": "sample_type=1:ValueType samples=2*Sample time=3:f64 duration=4:u64 period_type=5:ValueType "
                       "period=6:i64 comment=7*i32 id=8:bytes dropped=9:u32 attributes=12*i32",
            "Sample": "stack=1:i32 values=2*i64 attributes=3*i32 link=4:i32 times=5*f64"},
    "1.9": {"Profile": "sample_type=1:ValueType samples=2*Sample time=3:f64 duration=4:u64 period_type=5:ValueType "
                       "period=6:i64 id=7:bytes dropped=8:u32 attributes=11*i32",
            "Sample": "stack=1:i32 values=2*i64 attributes=3*i32 link=4:i32 times=5*f64"},
    "1.10": {"Profile": "sample_type=1:ValueType samples=2*Sample time=3:f64 duration=4:u64 period_type=5:ValueType "
                        "period=6:i64 id=7:bytes dropped=8:u32 attributes=11*i32",
             "Sample": "stack=1:i32 attributes=2*i32 link=3:i32 values=4*i64 times=5*f64"},
}

OLD_SAMPLE = "start=1:i32 length=2:i32 values=3*i64 attributes=4*i32 link=5:i32 times=6*u64"
OLD_LOCATION = "mapping=1:i32 address=2:u64 lines=3*Line folded=4:bool attributes=5*i32"
TABLES = "mapping location function link string attribute".split()
OLD_DIALECTS = {
    "1.5": {"Request": "resource_profiles=1*ResourceProfiles",
            "Profile": "sample_type=1*ValueType samples=2*Sample mapping=3*Mapping location=4*Location places=5*i32 "
                       "function=6*Function attribute=7*KeyValue link=9*Link string=10*str time=11:i64 "
                       "duration=12:i64 period_type=13:ValueType period=14:i64 id=17:bytes attributes=22*i32",
            "Location": OLD_LOCATION, "Sample": OLD_SAMPLE},
    "1.7": {"Dictionary": "mapping=1*Mapping location=2*Location function=3*Function link=4*Link string=5*str "
                          "attribute=6*KeyValue",
            "Profile": "sample_type=1*ValueType samples=2*Sample places=3*i32 time=4:i64 duration=5:i64 "
                       "period_type=6:ValueType period=7:i64 id=10:bytes attributes=14*i32",
            "Location": OLD_LOCATION, "Sample": OLD_SAMPLE},
}


def classes(dialect):
    """The message classes of a dialect, by name."""
    file = descriptor_pb2.FileDescriptorProto(name=dialect + ".proto", package="p" + dialect.replace(".", "_"),
                                              syntax="proto3")
    layout = {**COMMON, **(DIALECTS.get(dialect) or OLD_DIALECTS[dialect])}
    for name, fields in layout.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            field_name, rest = field.split("=")
            mark = "*" if "*" in rest else ":"
            number, kind = rest.split(mark)
            f = message.field.add(name=field_name, number=int(number),
                                  label=F.LABEL_REPEATED if mark == "*" else F.LABEL_OPTIONAL)
            if kind in KINDS:
                f.type = KINDS[kind]
            else:
                f.type, f.type_name = F.TYPE_MESSAGE, "." + file.package + "." + kind
    # Presence of oneof members of AnyValue that are zero.
    any_message = next(m for m in file.message_type if m.name == "Any")
    any_message.oneof_decl.add(name="value")
    for f in any_message.field:
        f.oneof_index = 0
    # So is that of indexes before 1.8: 0 is an entry like any other.
    for name, optional in (("Sample", "link"), ("Location", "mapping")) if dialect in OLD_DIALECTS else ():
        message = next(m for m in file.message_type if m.name == name)
        field = next(f for f in message.field if f.name == optional)
        message.oneof_decl.add(name="_" + optional)
        field.proto3_optional, field.oneof_index = True, 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {n: factory.GetPrototype(pool.FindMessageTypeByName(file.package + "." + n)) for n in layout}


class Builder:
    def __init__(self, dialect):
        self.types = classes(dialect)
        self.request = self.types["Request"]()
        self.d = self.request.dictionary
        for table in ("mapping", "location", "function", "link", "attribute", "stack"):
            getattr(self.d, table).add()
        self.d.string.append("")

    def string(self, text):
        if text not in self.d.string:
            self.d.string.append(text)
        return list(self.d.string).index(text)

    def attribute(self, key, value, unit=""):
        a = self.d.attribute.add(key=self.string(key), unit=self.string(unit))
        if isinstance(value, int):
            a.value.int = value
        else:
            a.value.string = value
        return len(self.d.attribute) - 1

    def function(self, name, filename, start_line=0):
        self.d.function.add(name=self.string(name), filename=self.string(filename), start_line=start_line)
        return len(self.d.function) - 1

    def location(self, kind, mapping=0, address=0, lines=()):
        l = self.d.location.add(mapping=mapping, address=address)
        if kind:
            l.attributes.append(self.attribute("profile.frame.type", kind))
        for function, line in lines:
            l.lines.add(function=function, line=line)
        return len(self.d.location) - 1

    def stack(self, *locations):
        self.d.stack.add(locations=locations)
        return len(self.d.stack) - 1

    def profile(self, scope, attributes, sample_type, period_type, period):
        r = self.request.resource_profiles.add()
        for key, value in attributes.items():
            a = r.resource.attributes.add(key=key)
            if isinstance(value, bool):
                a.value.bool = value
            elif isinstance(value, int):
                a.value.int = value
            elif isinstance(value, float):
                a.value.double = value
            elif isinstance(value, bytes):
                a.value.bytes = value
            elif isinstance(value, list):
                for item in value:
                    a.value.array.values.add(string=item)
            elif isinstance(value, dict):
                for k, v in value.items():
                    a.value.kvlist.values.add(key=k).value.int = v
            else:
                a.value.string = value
        s = r.scope_profiles.add()
        s.scope.name = scope
        p = s.profiles.add(time=1700000000 * 10**9, duration=10**10, period=period)
        p.sample_type.type, p.sample_type.unit = map(self.string, sample_type)
        p.period_type.type, p.period_type.unit = map(self.string, period_type)
        return p


def code(b):
    """A native stack without names, and a Python one on the kernel; as stacks."""
    b.d.mapping.add(filename=b.string("/usr/bin/app"),
                    attributes=[b.attribute("process.executable.build_id.htlhash", "00ff"),
                                b.attribute("process.executable.build_id.gnu", "ABCD")])
    b.d.mapping.add(filename=b.string("vmlinux"))
    native = b.location("native", 1, 0x1234)
    kernel = b.location("kernel", 2, 0, [(b.function("do_sys_open", ""), 0)])
    python = b.location("cpython", 0, 0, [(b.function("inner", "app.py", 3), 5), (b.function("outer", "app.py"), 9)])
    return b.stack(kernel, python), b.stack(native)


RESOURCE = {"service.name": "shop", "container.id": "c0ffee", "process.pid": 4711, "process.command_args": ["a", "b"],
            "canary": True, "ratio": 0.5, "zone": {"a": 1, "b": 2}, "hosts": ["x", "y"], "raw": b"\x01\xfe", "n": -7}


def ebpf(dialect):
    """As the OpenTelemetry eBPF profiler writes: attributes and times, no values."""
    b = Builder(dialect)
    first, second = code(b)
    p = b.profile("go.opentelemetry.io/ebpf-profiler", RESOURCE, ("samples", "count"), ("cpu", "nanoseconds"), 52631578)
    thread = b.attribute("thread.name", "worker")
    cpu = b.attribute("cpu.logical_number", 3)
    p.samples.add(stack=first, attributes=[thread, cpu], times=[p.time + 1, p.time + 2])
    p.samples.add(stack=second, attributes=[thread], times=[p.time + 3])
    p.samples.add(stack=second, attributes=[thread], times=[p.time + 4])
    return b.request


def values(dialect):
    """Values without times, with a link and a profile id."""
    b = Builder(dialect)
    first, second = code(b)
    b.d.link.add(trace_id=b"t" * 16, span_id=b"s" * 8)
    p = b.profile("my.memory-profiler", {"service.name": "shop"}, ("alloc_space", "bytes"), ("space", "bytes"), 524288)
    p.id = b"0123456789abcdef"
    size = b.attribute("size", 64, "bytes")
    p.samples.add(stack=first, attributes=[size], values=[100, 200], link=1)
    p.samples.add(stack=second, attributes=[size], values=[7])
    p.attributes.append(b.attribute("deployment", "blue"))
    return b.request


def references():
    """Keys and values of resource attributes as indexes into the dictionary, as the Collector's files have them."""
    b = Builder("1.10")
    first, _ = code(b)
    p = b.profile("", {}, ("off_cpu", "nanoseconds"), ("", ""), 0)
    resource = b.request.resource_profiles[0].resource
    a = resource.attributes.add(key_strindex=b.string("service.name"))
    a.value.string_strindex = b.string("shop")
    p.samples.add(stack=first, values=[5])
    return b.request


def old(dialect):
    """Two profiles with two sample types, whose tables have other contents (1.5) or are shared (1.7)."""
    request = classes(dialect)["Request"]()
    scope = request.resource_profiles.add().scope_profiles.add()
    scope.scope.name = "my.memory-profiler"
    for i, service in enumerate(("shop", "bank")):
        p = scope.profiles.add(duration=10**10, period=524288, id=(b"%d" % i) * 16)
        p.time = 1700000000 * 10**9
        d = p if dialect == "1.5" else request.dictionary
        at = {table: len(getattr(d, table)) for table in TABLES}
        if not i or dialect == "1.5":
            d.string.append("")
        base = len(d.string)
        d.string.extend(["alloc_objects", "count", "alloc_space", "bytes", "space", "/usr/bin/" + service,
                         service + "_main", service + ".c"])
        p.sample_type.add(type=base, unit=base + 1)
        p.sample_type.add(type=base + 2, unit=base + 3)
        p.period_type.type, p.period_type.unit = base + 4, base + 3
        d.mapping.add(filename=base + 5)
        d.function.add(name=base + 6, filename=base + 7)
        d.link.add(trace_id=b"t" * 16, span_id=b"s" * 8)
        d.attribute.add(key="size").value.int = 64 + i
        d.attribute.add(key="service.name").value.string = service
        p.attributes.append(at["attribute"] + 1)
        d.location.add(mapping=at["mapping"], address=0x1234 + i)
        d.location.add().lines.add(function=at["function"], line=7)
        p.places.extend([at["location"], at["location"], at["location"] + 1])
        p.samples.add(start=1, length=2, values=[3, 300 + i], attributes=[at["attribute"]], link=at["link"])
        p.samples.add(start=0, length=1, values=[1, 7])
    return request


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    requests = {"references_1.10": references()}
    for dialect in OLD_DIALECTS:
        requests["old_" + dialect] = old(dialect)
    for dialect in DIALECTS:
        requests["ebpf_" + dialect] = ebpf(dialect)
        requests["values_" + dialect] = values(dialect)
    for name, request in requests.items():
        with open(os.path.join(directory, name + ".pb"), "wb") as out:
            out.write(request.SerializeToString(deterministic=True))


main()
