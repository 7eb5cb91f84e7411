# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: the real binary on a free port, TAP output, small clients.

A test is a program NAME_test: it prints TAP, exits 0, or 77 when it cannot run here (with a line
that says why). It starts only what it stops, and works in a temporary folder of its own.
"""
import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import openapi_shapes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRN = os.environ.get("FIRN", os.path.join(ROOT, "build", "firn"))
SHORT_REPORTS = ["--profiling-duration", "2s"]  # of an agent: tests wait for them
ON_CPU = "on_cpu:samples:count:cpu:nanoseconds:delta"

_count = 0
_failed = 0
_held = None  # checks that are not told yet


def check(ok, name, detail=""):
    """One TAP line; the detail is printed when it failed."""
    global _count, _failed
    if _held is not None:
        _held.append((ok, name, detail))
        return ok
    _count += 1
    print(f"{'ok' if ok else 'not ok'} {_count} - {name}", flush=True)
    if not ok:
        _failed += 1
        for line in str(detail).splitlines()[:40]:
            print(f"# {line}", flush=True)
    return ok


def attempt(work):
    """What work() checks, not told yet: [(ok, name, detail)], for check()."""
    global _held
    _held = held = []
    try:
        work()
    finally:
        _held = None
    return held


def equal(got, want, name):
    return check(got == want, name, f"got  {got!r}\nwant {want!r}")


def note(text):
    print(f"# {text}", flush=True)


def skip(name, reason):
    """One TAP line for what cannot be checked here: counted as skipped."""
    global _count
    _count += 1
    print(f"ok {_count} - {name} # SKIP {reason}", flush=True)


def may_need_admin():
    """On some kernels nothing can be sampled without CAP_SYS_ADMIN (agent/attach/features.h)."""
    with open("/proc/kallsyms") as symbols, open("/proc/sys/kernel/perf_event_paranoid") as paranoid:
        has_iterator = any(line.split()[2] == "bpf_iter_task_vma_new" for line in symbols)
        return not has_iterator or int(paranoid.read()) > 2


def skip_all(reason):
    print(f"1..0 # SKIP {reason}", flush=True)
    sys.exit(77)


def done():
    print(f"1..{_count}", flush=True)
    sys.exit(1 if _failed else 0)


def scratch(prefix="firn-test-"):
    folder = tempfile.mkdtemp(prefix=prefix)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(*args, timeout=120, **kw):
    """Runs build/firn with arguments; returns the completed process (text unless told)."""
    kw.setdefault("text", True)
    return subprocess.run([FIRN, *args], capture_output=True, timeout=timeout, **kw)


def written(log):
    """What processes have written to an open file. They share its position, so it is opened once more: a line that a
    process writes while the position is at the beginning would go over its first."""
    with open(f"/proc/self/fd/{log.fileno()}", encoding="utf-8", errors="replace") as own:
        return own.read()


class Server:
    """`firn server` (or another verb that serves) until stop()."""

    def __init__(self, storage=None, verb="server", options=(), port=None, wait=True, env=None):
        self.storage = storage or os.path.join(scratch(), "data")
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [FIRN, verb, "--storage-path", self.storage, "--http-address", f"127.0.0.1:{self.port}",
             *(SHORT_REPORTS if verb == "up" and SHORT_REPORTS[0] not in options else []), *options],
            stdout=self.log, stderr=self.log, env=env)
        atexit.register(self.kill)
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout=120):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server exited with {self.process.returncode}:\n{self.output()}")
            try:
                if urllib.request.urlopen(self.url + "/-/ready", timeout=2).status == 200:
                    return self
            except (urllib.error.URLError, ConnectionError, OSError):
                time.sleep(0.02)
        raise RuntimeError("the server did not get ready:\n" + self.output())

    def output(self):
        return written(self.log)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self, timeout=20):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "hung"

    def get(self, path, timeout=60, **parameters):
        """(status, body bytes) of a GET with parameters."""
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        try:
            reply = urllib.request.urlopen(self.url + path + query, timeout=timeout)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            status, kind, body = reply.status, reply.headers.get("Content-Type", ""), reply.read()
        wrong = openapi_shapes.problems_of("get", path, parameters, status, kind, body)
        if wrong:
            check(False, f"{path}{query}: an answer of the shape that is told", wrong)
        return status, body

    def json(self, path, **parameters):
        status, body = self.get(path, **parameters)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {body[:300]!r}")
        return json.loads(body)

    def metric(self, name):
        """Sum over the label sets of one metric."""
        total = 0.0
        for line in self.get("/metrics")[1].decode().splitlines():
            if line.startswith(name) and line[len(name):len(name) + 1] in (" ", "{"):
                total += float(line.rsplit(" ", 1)[1])
        return total


def compile_c(name, *flags):
    """Builds tests/system/programs/NAME.c and returns the path of the program."""
    out = os.path.join(scratch(), name)
    subprocess.run(["gcc", "-g", "-O0", "-fno-omit-frame-pointer", *flags, "-o", out,
                    os.path.join(ROOT, "tests", "system", "programs", name + ".c"), "-lm", "-lpthread"], check=True)
    return out


def go_cache(folder):
    """Where Go keeps what it has compiled: for all tests of a run, or for the one with this folder."""
    return os.environ.get("GOCACHE") or os.path.join(folder, "go-cache")


def messages(*names):
    """Python modules of tests/system/proto/NAME.proto, made by protoc (an encoder that is not ours)."""
    if not shutil.which("protoc"):
        skip_all("protoc is missing (make deps-test)")
    try:
        import google.protobuf  # noqa: F401
    except ImportError:
        skip_all("python3-protobuf is missing (make deps-test)")
    folder = scratch()
    proto = os.path.join(ROOT, "tests", "system", "proto")
    subprocess.run(["protoc", f"-I{proto}", f"--python_out={folder}"] + [f"{n}.proto" for n in names],
                   check=True, cwd=proto)
    sys.path.insert(0, folder)
    return [__import__(n + "_pb2") for n in names]
