# SPDX-License-Identifier: Apache-2.0
"""How long a process takes to end, on a machine that does other things as well.

What counts is the time from the signal to the end, without the time that other programs took: of each moment in
which a thread of ours was ready to run, what the threads of ours did not run, times the share that other programs
had of the CPU time that was used. On an idle machine it is the time on the clock.
"""
import glob
import os
import signal
import time

from processes import family


def busy_s():
    """CPU time that was used on this machine."""
    with open("/proc/stat") as text:
        user, nice, system, _, _, irq, softirq = (int(n) for n in text.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def read(path):
    try:
        with open(path) as text:
            return text.read()
    except OSError:
        return ""


class Load:
    """What other programs took from a process and its descendants since this was made."""

    def __init__(self, pid):
        self.pid, self.ran_ns, self.lost_s = pid, {}, 0
        self.at_s, self.busy_s = time.monotonic(), busy_s()
        self.own_s = 0  # that they ran
        self.look()

    def look(self):
        """To be called every moment."""
        ran_s, is_ready = 0, False
        for pid in family(self.pid):
            for path in glob.glob(f"/proc/{pid}/task/*"):
                times, state = read(path + "/schedstat").split(), read(path + "/stat").rpartition(") ")[2]
                if not times:
                    continue
                ran_s += (int(times[0]) - self.ran_ns.get(path, int(times[0]))) / 1e9
                self.ran_ns[path] = int(times[0])
                is_ready |= state.startswith("R")
        now_s = time.monotonic()
        if is_ready:
            self.lost_s += max(0, now_s - self.at_s - ran_s)
        self.own_s += ran_s
        self.at_s = now_s

    def seconds(self):
        used_s = busy_s() - self.busy_s
        return self.lost_s * max(0, used_s - self.own_s) / used_s if used_s else 0


class Share:
    """Seconds on the clock since this was made, times the share of the machine that was left to a process and us."""

    def __init__(self, pid):
        self.pid = pid
        self.at_s, self.busy_s, self.own_s = time.monotonic(), busy_s(), self.own()

    def own(self):
        ran = read(f"/proc/{self.pid}/stat").rpartition(") ")[2].split()[11:13]
        return sum(map(int, ran)) / os.sysconf("SC_CLK_TCK") + time.process_time()

    def seconds(self):
        took = time.monotonic() - self.at_s
        others = max(0, busy_s() - self.busy_s - (self.own() - self.own_s))
        return took * max(0.02, 1 - others / (took * os.cpu_count()))


def priority(value):
    try:  # who looks is not to be kept from looking by the load
        os.setpriority(os.PRIO_PROCESS, 0, value)
    except PermissionError:
        pass


def end(process, limit_s):
    """Sends SIGTERM: (exit code or None, seconds on the clock, seconds that count, seconds that it ran)."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    priority(-15)
    load, began = Load(process.pid), time.monotonic()
    process.send_signal(signal.SIGTERM)
    while process.poll() is None and time.monotonic() < began + limit_s:
        load.look()
        time.sleep(0.02)
    took = time.monotonic() - began
    priority(usual)
    return process.poll(), took, max(0, took - load.seconds()), load.own_s
