# SPDX-License-Identifier: Apache-2.0
"""Senders as agents are: each profile is sent until some server has acknowledged it, to one server after the other."""
import gzip
import threading
import time
import urllib.error
import urllib.request

import harness

(profile_pb2, store_pb2) = harness.messages("profile", "store")
WRITE = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
TYPE = "process_cpu:samples:count:cpu:nanoseconds:delta"
STOP_S = 120


def pprof(at_ns, stacks, heap=False):
    """stacks: (frames from the root, labels, values)"""
    p = profile_pb2.Profile(string_table=[""], time_nanos=at_ns, duration_nanos=0 if heap else 10**10, period=1000)
    ids = {}

    def text(value):
        if value not in ids:
            ids[value] = len(p.string_table)
            p.string_table.append(value)
        return ids[value]

    columns = [("alloc_space", "bytes"), ("inuse_space", "bytes")] if heap else [("samples", "count")]
    for name, unit in columns:
        p.sample_type.add(type=text(name), unit=text(unit))
    p.period_type.type, p.period_type.unit = (text("space"), text("bytes")) if heap else (text("cpu"),
                                                                                        text("nanoseconds"))
    places = {}
    for frames, labels, values in stacks:
        for frame in frames:
            if frame not in places:
                places[frame] = len(places) + 1
                p.function.add(id=places[frame], name=text(frame), filename=text(f"{frame}.c"))
                p.location.add(id=places[frame]).line.add(function_id=places[frame], line=places[frame])
        sample = p.sample.add(location_id=[places[f] for f in reversed(frames)], value=values)
        for name, value in labels.items():
            sample.label.add(key=text(name), str=text(value))
    return gzip.compress(p.SerializeToString())


def send(url, name, labels, profile, timeout=30):
    """The status; 0: no answer."""
    request = store_pb2.WriteRawRequest(normalized=False)
    raw = request.series.add()
    for key, value in (("__name__", name), *sorted(labels.items())):
        raw.labels.labels.add(name=key, value=value)
    raw.samples.add(raw_profile=profile)
    call = urllib.request.Request(url + WRITE, data=request.SerializeToString(),
                                  headers={"content-type": "application/proto"})
    try:
        with urllib.request.urlopen(call, timeout=timeout) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        error.read()
        return error.code
    except (urllib.error.URLError, ConnectionError, OSError):
        return 0


class Senders:
    """Threads that send until told to stop. Profile number c of sender w has the one stack main;w;c, so that
    each can be looked for."""

    def __init__(self, servers, start_s, count=3):
        self.servers, self.start_s, self.acknowledged, self.sent, self.going = servers, start_s, {}, 0, True
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        count = 0
        while self.going:
            count += 1
            value, at = number + count % 7 + 1, self.start_s * 10**9 + number * 10**6 + count * 10**7
            profile = pprof(at, [(["main", f"w{number}", f"c{count}"], {}, [value])])
            turn = count
            self.sent += 1
            while send(self.servers[turn % len(self.servers)].url, "process_cpu",
                       {"job": "kill", "w": str(number)}, profile) != 200:
                turn += 1
                self.sent += 1
                time.sleep(0.05)
            self.acknowledged[f"main;w{number};c{count}"] = value

    def stop(self):
        self.going = False
        for thread in self.threads:
            thread.join(STOP_S)

    def compare(self, server):
        """(lost, doubled): acknowledged profiles that the server lacks, and those that count more than once."""
        status, body = server.get("/api/v1/query", query=TYPE + '{job="kill"}', format="folded",
                                  **{"from": (self.start_s - 3600) * 1000, "to": int(time.time() + 60) * 1000})
        if status != 200:
            raise RuntimeError(f"no answer: {status} {body[:300]!r}")
        found = {}
        for line in body.decode().splitlines():
            stack, value = line.rsplit(" ", 1)
            found[stack] = found.get(stack, 0) + int(value)
        lost = sum(found.get(stack, 0) < value for stack, value in self.acknowledged.items())
        doubled = sum(value > self.acknowledged.get(stack, 0) for stack, value in found.items())
        return lost, doubled
