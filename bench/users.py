# SPDX-License-Identifier: Apache-2.0
"""People who look at a server, by its HTTP API: each asks again when he has looked at his answer."""
import http.client
import json
import random
import threading
import time
import urllib.parse

KINDS = (("one service", 80), ("time series", 15), ("all services", 5))


class Users:
    """
    `count` threads that ask until stop(); begin and end are seconds of the range. Each looks at an answer for `look`
    seconds on average (exponential: people do not keep step); with 0 it is a closed loop, which asks as fast as it is
    answered, so that `count` queries are always there. With `own`, no two ask for the same range (they begin at some
    ms before, where nothing is), so that each query is computed.
    """

    def __init__(self, address, selector, services, begin, end, count=50, look=0.0, own=False):
        self.address, self.selector, self.services = address, selector, services
        self.begin, self.end, self.own = begin * 1000, end * 1000, own
        self.took = {kind: [] for kind, _ in KINDS}
        self.look, self.refused, self.errors = look, 0, []
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(random.Random(i),)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def path(self, kind, dice):
        service = dice.choice(self.services)
        one = f'{self.selector}{{comm="{service}"}}'
        what, asked = "query", {"query": one, "format": "binary", "width": 1920}
        if kind == "time series":
            what, asked = "series", {"query": one, "sum_by": "comm", "step": "30s"}
        elif kind == "all services":
            asked = {"query": self.selector, "format": "top", "limit": 50}
        begin = self.begin - (dice.randrange(10**6) if self.own else 0)
        return f"/api/v1/{what}?" + urllib.parse.urlencode(asked | {"from": begin, "to": self.end})

    def run(self, dice):
        connection = http.client.HTTPConnection(self.address, timeout=120)
        while not self.ended.wait(dice.expovariate(1 / self.look) if self.look else 0):
            kind = dice.choices([k for k, _ in KINDS], [share for _, share in KINDS])[0]
            begin = time.perf_counter()
            try:
                connection.request("GET", self.path(kind, dice))
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(repr(error))
                connection.close()
                continue
            if answer.status == 200:
                self.took[kind].append(time.perf_counter() - begin)
            elif answer.status == 429:
                self.refused += 1
                time.sleep(1)
            else:
                self.errors.append(f"{kind}: {answer.status}")

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def percentile(self, kind, share):
        times = sorted(self.took[kind])
        return times[min(len(times) - 1, int(share * len(times)))] if times else float("nan")


def cancel(address, selector, begin, end):
    """Goes away while a query about everything runs; seconds until it is no longer listed."""
    query = urllib.parse.urlencode({"query": selector, "format": "json", "id": "gone", "from": begin * 1000,
                                    "to": end * 1000})
    asking = http.client.HTTPConnection(address, timeout=120)
    asking.request("GET", "/api/v1/query?" + query)
    watching = http.client.HTTPConnection(address, timeout=120)

    def listed():
        watching.request("GET", "/api/v1/queries?id=gone")
        return json.loads(watching.getresponse().read())["queries"]

    until = time.perf_counter() + 5
    while not listed() and time.perf_counter() < until:
        time.sleep(0.005)
    asking.close()
    left = time.perf_counter()
    while listed():
        time.sleep(0.005)
    return time.perf_counter() - left
