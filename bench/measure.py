# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of the agent share: processes and what they cost."""
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIRN = os.environ.get("FIRN", os.path.join(ROOT, "build", "firn"))
STATS = "/proc/sys/kernel/bpf_stats_enabled"
TICKS = os.sysconf("SC_CLK_TCK")


def start(*command, **more):
    """A process whose output nobody reads."""
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def end(process, number):
    """Ends a process; returns the CPU seconds of its whole life."""
    process.send_signal(number)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return used.ru_utime + used.ru_stime


def cpu_s(pid):
    """CPU seconds of a process until now."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def thread_cpu_s(pid):
    """{name: CPU seconds until now} of a process's threads."""
    used = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            name = open(f"/proc/{pid}/task/{task}/comm").read().strip()
            ns = int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0])
        except FileNotFoundError:
            continue  # ended since
        used[name] = used.get(name, 0.0) + ns / 1e9
    return used


def rss_mb(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def bpftool(*what):
    listed = subprocess.run(["bpftool", "-j", *what], capture_output=True, text=True).stdout
    return json.loads(listed or "[]")


def bpf_time(names):
    """(ns, runs) of the loaded perf_event programs whose name begins with one of `names`."""
    ns = runs = 0
    for p in bpftool("prog", "show"):
        if p.get("type") == "perf_event" and p.get("name", "").startswith(names):
            ns += p.get("run_time_ns", 0)
            runs += p.get("run_cnt", 0)
    return ns, runs


def bpf_maps_of(pid):
    """{map id: bytes} of the maps that a process holds open."""
    maps = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as lines:
                told = dict(line.split(":", 1) for line in lines if ":" in line)
        except FileNotFoundError:
            continue  # closed since
        if "map_id" in told:
            maps[int(told["map_id"])] = int(told["memlock"])
    return maps


def tell(what, value, limit, unit="", digits=2, least=False):
    """One figure with its limit and whether that holds."""
    holds = value >= limit if least else value <= limit
    print(f"{what:<66}{value:>10.{digits}f} {unit:<4} at {'least' if least else 'most'} {limit:g}: "
          f"{'holds' if holds else 'MISSES'}", flush=True)


class BpfStats:
    """with BpfStats(): the kernel measures its programs."""

    def __enter__(self):
        self.before = open(STATS).read()
        open(STATS, "w").write("1")

    def __exit__(self, *_):
        open(STATS, "w").write(self.before)
