# SPDX-License-Identifier: Apache-2.0
"""Random profiles for a server with its own store and for servers over one ClickHouse, and random questions that both
have to answer alike."""
import json
import random
import time

from harness import check, equal
from retrying_senders import TYPE, pprof, send

NOW = int(time.time())
START = NOW - 3 * 3600
ROUNDS = 60
rng = random.Random(7)


def random_profile(number):
    stacks = []
    for _ in range(rng.randint(1, 20)):
        frames = ["main"] + [f"f{rng.randrange(12)}" for _ in range(rng.randint(0, 6))]
        labels = rng.choice([{}, {}, {"span": "s1"}, {"span": "s2", "kind": "slow"}])
        stacks.append((frames, labels, [rng.randint(1, 10**9)]))
    return pprof((START + number * 60) * 10**9, stacks)


def total(server, selector, **parameters):
    status, body = server.get("/api/v1/query", query=selector, **{"from": (START - 3600) * 1000, "to": NOW * 1000,
                                                                 **parameters})
    return json.loads(body)["total"] if status == 200 else f"{status} {body[:200]!r}"


def questions(count):
    """Paths with parameters, of every kind of answer that reads the store; eight times the count, and one."""
    times = {"from": (START - 600) * 1000, "to": NOW * 1000}
    yield "/api/v1/types", times
    for _ in range(count):
        begin = START + rng.randrange(ROUNDS * 60)
        asked = {"query": TYPE + rng.choice(
                     ["{}", '{job="a"}', '{job!="a"}', '{job=~"a|b"}', '{span="s1"}', '{none=""}']),
                 "from": begin * 1000, "to": (begin + rng.choice([61, 600, 3600])) * 1000}
        yield "/api/v1/labels", asked
        yield "/api/v1/label_values", {**asked, "label": "job"}
        yield "/api/v1/series", {**asked, "step": "60s", "sum_by": rng.choice(["", "job", "*"])}
        yield "/api/v1/query", {**asked, "format": rng.choice(["json", "folded", "top"])}
        yield "/api/v1/query", {**asked, "group_by": "span", "format": "json"}
        yield "/api/v1/diff", {**asked, "base_from": (START - 600) * 1000, "base_to": begin * 1000}
        yield "/api/v1/heatmap", asked
        yield "/api/v1/callgraph", asked


def meaning(answer):
    """An answer, byte for byte; but that lists of functions, to which numbers in a tree point, have any order."""
    status, body = answer
    if not body.startswith(b"{"):
        return answer
    tree = json.loads(body)
    tree.pop("rows", None)  # how many were read, of sums fewer
    functions = tree.pop("functions", [])
    for node in tree.get("nodes", []):
        node["function"] = functions[node["function"]]
    tree["edges"] = sorted([functions[a]["name"], functions[b]["name"], value] for a, b, value in tree.get("edges", []))
    if not tree.get("nodes"):
        tree["functions"] = sorted(functions, key=json.dumps)
    return status, json.dumps(tree)


def compare(own, servers, count):
    """The same profiles for a server with its own store and, in turns, for those over ClickHouse."""
    sent = []
    for number in range(ROUNDS):
        labels, profile = {"job": rng.choice("abc"), "pod": f"p{number % 4}"}, random_profile(number)
        sent.append((labels, profile))
        for server in (own, servers[number % len(servers)]):
            if send(server.url, "process_cpu", labels, profile) != 200:
                raise RuntimeError(f"not stored: {server.output()[-2000:]}")
    wrong, asked = [], 0
    for path, parameters in questions(count):
        want = meaning(own.get(path, **parameters))
        for server in servers:
            asked += 1
            got = meaning(server.get(path, **parameters))
            if got != want:
                at = next((i for i, (a, b) in enumerate(zip(got[1], want[1])) if a != b), 0)
                wrong.append(f"{path} {parameters}, byte {at}\ngot  {got[1][max(0, at - 200):at + 200]!r}\n"
                             f"want {want[1][max(0, at - 200):at + 200]!r}")
    check(not wrong and asked > 100, f"{asked} answers are those of a server with its own store",
          "\n".join(wrong[:3]))
    before = [total(server, TYPE) for server in servers]
    for labels, profile in sent[:6]:
        equal([send(server.url, "process_cpu", labels, profile) for server in servers], [200] * len(servers),
              "a profile is sent again to all servers")
    equal([total(server, TYPE) for server in servers], before, "and counts once")
