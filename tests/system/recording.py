# SPDX-License-Identifier: Apache-2.0
"""Recordings of programs whose chains of calls are known, for the tests of languages.

A program waits at a gate, a FIFO that it reads to its end, until the agent has told of its interpreter. The tables of
some of its files may come a moment later: samples before say NOT_LOADED.
"""
import collections
import gzip
import os
import re
import shlex
import subprocess
import time

import harness
from stack_oracle import NOT_LOADED  # noqa: F401

WAIT_S = 60
AGAIN = 2  # times that a program is recorded again
NEXT_S = 10  # for each further program; the agent may come to know one that sleeps when it runs
INTERPRETER = r'msg="interpreter" pid=(\d+)'
NATIVE = "*"  # in a chain: frames of other languages, one or more
Frame = collections.namedtuple("Frame", "name file line mapping")
(profile_pb2,) = harness.messages("profile")


def text_of(path):
    with open(path, errors="replace") as file:
        return file.read()


def is_of(pid, ancestor):
    """True if the process is the other one, or descends from it."""
    while pid not in (ancestor, 0):
        try:
            pid = int(text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[1])
        except OSError:
            return False
    return pid == ancestor


def wait_for_agent(log, running, sign=INTERPRETER, pid=None, wait_s=WAIT_S):
    """Until the agent, whose log so far is log(), reads the frames of the program, or of one process of it, which
    waits for that. The sign is a pattern whose first group is the process, if it has any. Without it, the log is a
    note."""
    end = time.monotonic() + wait_s
    while time.monotonic() < end and running.poll() is None:
        for found in re.finditer(sign, log()):
            if not found.groups() or is_of(int(found[1]), pid or running.pid):
                return
        time.sleep(0.02)
    harness.note(log()[-2000:])


def has_ended(pid):
    try:
        return text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def open_gate(gate, running, pid):
    """Lets the program go on, once it waits at the FIFO; not one that could not begin."""
    while running.poll() is None and not has_ended(pid):
        try:
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
            return
        except OSError:
            time.sleep(0.02)


def record(command, frequency_hz=499, sign=INTERPRETER, waits_for_file=False, environment=None):
    """The samples of command(gate): [(frames from the root on, count)]."""
    return record_each({"": command}, frequency_hz, sign, waits_for_file, environment)[""]


def judge_more(samples, record_again, judge):
    """judge(samples, recordings), which checks; while a check fails, of what more recordings add to the samples. One
    or two of some 500 decide whether 99 % of them hold; of all of them together it takes more."""
    recordings = 1
    checks = harness.attempt(lambda: judge(samples, 1))
    while not all(ok for ok, *_ in checks) and recordings <= AGAIN:
        harness.note("recorded again: " + next(name for ok, name, _ in checks if not ok))
        samples = samples + record_again()
        recordings += 1
        checks = harness.attempt(lambda: judge(samples, recordings))
    for one in checks:
        harness.check(*one)


def judge_each(commands, judge, *how, **more):
    """judge(name, samples) of each of record_each(commands, *how, **more), as judge_more does."""
    for name, samples in record_each(commands, *how, **more).items():
        judge_more(samples, lambda name=name: record_each({name: commands[name]}, *how, **more)[name],
                   lambda samples, _, name=name: judge(name, samples))


def record_each(commands, frequency_hz=499, sign=INTERPRETER, waits_for_file=False, environment=None):
    """{name: samples} of {name: command(gate)}, which one recording sees run side by side. Processes that a command
    starts, rather than becomes, are not among its samples, unless it is the only one."""
    folder = harness.scratch()
    log = os.path.join(folder, "log")
    out = os.path.join(folder, "profile.firn" if len(commands) > 1 else "profile.pb.gz")
    gates = {name: os.path.join(folder, f"gate{i}") for i, name in enumerate(commands)}
    lines = []
    for name, gate in gates.items():
        if not waits_for_file:
            os.mkfifo(gate)
        words = ["env", *(f"{k}={v}" for k, v in (environment(gate) if environment else {}).items())]
        lines.append(f"{shlex.join(words + commands[name](gate))} & echo $! >{gate}.pid.new && "
                     f"mv {gate}.pid.new {gate}.pid")
    with open(log, "w") as said, subprocess.Popen(
            [harness.FIRN, "record", "--log-level", "debug", "--sample-labels", "pid", "-F", str(frequency_hz),
             "-o", out, "--", "sh", "-c", "\n".join([*lines, "wait"])],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said) as running:
        pids = {name: pid_in(f"{gate}.pid", running) for name, gate in gates.items()}
        for i, pid in enumerate(pids.values()):
            wait_for_agent(lambda: text_of(log), running, sign, pid, NEXT_S if i else WAIT_S)
        for name, gate in gates.items():
            if waits_for_file:
                with open(gate, "w"):
                    pass
            else:
                open_gate(gate, running, pids[name])
        running.wait(300)
    if len(commands) > 1:
        recorded, out = out, os.path.join(folder, "profile.pb.gz")
        harness.run("convert", "--group-by", "pid", recorded, out)
    with gzip.open(out) as file:
        data = file.read()
    if len(commands) == 1:
        return dict.fromkeys(commands, samples_of(data))
    found = samples_by_pid(data)
    return {name: found.get(pid, []) for name, pid in pids.items()}


def pid_in(path, running):
    """What a file says, once it is there."""
    end = time.monotonic() + WAIT_S
    while not os.path.exists(path) and time.monotonic() < end and running.poll() is None:
        time.sleep(0.02)
    return int(text_of(path))


def samples_of(data):
    """Of a pprof profile: [(frames from the root on, count)]. A place without a name is one frame without one."""
    return [sample for samples in samples_by_pid(data).values() for sample in samples]


def samples_by_pid(data):
    """The same by the label of the process, {pid: samples}; 0 = without one."""
    profile = profile_pb2.Profile()
    profile.ParseFromString(data)
    text = profile.string_table
    functions = {f.id: (text[f.name], text[f.filename]) for f in profile.function}
    mappings = {m.id: text[m.filename] for m in profile.mapping}
    frames = {}
    for location in profile.location:
        mapping = mappings.get(location.mapping_id, "")
        frames[location.id] = [Frame(*functions[line.function_id], line.line, mapping)
                               for line in reversed(location.line)] or [Frame("", "", 0, mapping)]
    found = collections.defaultdict(list)
    for sample in profile.sample:
        stack = [frame for at in reversed(sample.location_id) for frame in frames[at]]
        found[pid_of(sample, text)].append((stack, sample.value[0]))
    return found


def pid_of(sample, text):
    return next((int(text[label.str] or label.num) for label in sample.label if text[label.key] == "pid"), 0)


def names_of(stack, mapping):
    """The functions of one language; others behind a blank."""
    return [frame.name if frame.mapping == mapping else " " + frame.name for frame in stack]


def equal(found, wanted):
    return found == wanted


def has_chain(names, chain, same=equal):
    """All of the chain in order, and of the language's functions nothing else between; those of other languages begin
    with a blank. "name?" may be missing; "name+", the last one, may call itself."""
    at = 0
    native = False
    for name in names:
        while at < len(chain) and chain[at] == NATIVE and native:
            at += 1
        while at < len(chain) and chain[at].endswith("?") and name != chain[at][:-1] and not name.startswith(" "):
            at += 1
        if at == len(chain):
            break
        if same(name, chain[at].rstrip("+?")):
            at += 1
            native = False
        elif name.startswith(" "):
            native = True
        elif at:
            return False
    return at == len(chain)


def is_marked(names):
    """True if the stack says that it is cut, or that some of it is a guess."""
    return any(name.lstrip().startswith(("[truncated", "[guess")) for name in names)
