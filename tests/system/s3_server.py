# SPDX-License-Identifier: Apache-2.0
"""S3 servers that are not ours, for tests: Ceph's radosgw with one monitor and one OSD in memory,
or, where that is not installed, nothing."""

import hashlib
import hmac
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from foreground import Foreground

ACCESS_KEY, SECRET_KEY = "firntestaccess", "firntestsecret0123456789"
NEEDED = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "ceph-authtool", "monmaptool")
KEYRING = (("mon.", ("mon", "allow *")),
           ("client.admin", ("mon", "allow *", "osd", "allow *", "mds", "allow *", "mgr", "allow *")),
           ("osd.0", ("mon", "allow profile osd", "osd", "allow *", "mgr", "allow profile osd")),
           ("client.rgw", ("mon", "allow rw", "osd", "allow rwx")))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def signed(method, host, path):
    """Headers of a request without a body, signed by AWS Signature Version 4."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    digest = hashlib.sha256(b"").hexdigest()
    names = "host;x-amz-content-sha256;x-amz-date"
    asked = f"{method}\n{path}\n\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{now}\n\n{names}\n{digest}"
    scope = f"{now[:8]}/us-east-1/s3/aws4_request"
    key = b"AWS4" + SECRET_KEY.encode()
    for word in scope.split("/"):
        key = hmac.digest(key, word.encode(), "sha256")
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    return {"x-amz-date": now, "x-amz-content-sha256": digest, "authorization":
            f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={names}, "
            f"Signature={hmac.new(key, text.encode(), 'sha256').hexdigest()}"}


def missing():
    """What is not installed of what a server needs, or None."""
    lacking = [name for name in NEEDED if not shutil.which(name)]
    return ", ".join(lacking) if lacking else None


class S3Server(Foreground):
    """A bucket store at self.url; `with` starts and ends it."""

    def __init__(self, folder, memory="1G"):
        self.folder, self.memory = str(folder), memory
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.processes = []
        self.environment = {**os.environ, "CEPH_CONF": f"{self.folder}/ceph.conf"}
        self.environment.pop("CEPH_LIB", None)

    def run(self, *command, **more):
        return subprocess.run(command, env=self.environment, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=180, **more)

    def spawn(self, *command):
        log = open(f"{self.folder}/{command[0]}.log", "ab")  # the process's from now on
        with log:
            self.processes.append(subprocess.Popen(command, env=self.environment, stdout=log,
                                                   stderr=log, stdin=subprocess.DEVNULL))
        return self.processes[-1]

    def configure(self):
        os.makedirs(f"{self.folder}/osd", exist_ok=True)
        self.fsid = "6e7b2f3c-8d1d-4c38-9c0e-3c6f0b1d2a11"
        self.mon = f"127.0.0.1:{free_port()}"
        own = self.folder
        with open(f"{own}/ceph.conf", "w", encoding="utf-8") as file:
            file.write(f"""[global]
fsid = {self.fsid}
mon host = [v2:{self.mon}]
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {own}/keyring
run dir = {own}
admin socket =
log file = {own}/$name.log
mon data = {own}/mon
osd data = {own}/osd
osd objectstore = memstore
memstore device bytes = {self.memory}
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
mon pg warn min per osd = 0
ms bind ipv4 = true
public addr = 127.0.0.1
cluster addr = 127.0.0.1
rgw frontends = beast endpoint=127.0.0.1:{self.port}
rgw data = {own}
""")
        for name, rights in KEYRING:
            flags = [word for at in range(0, len(rights), 2) for word in ("--cap", *rights[at:at + 2])]
            create = [] if os.path.exists(f"{own}/keyring") else ["--create-keyring"]
            self.run("ceph-authtool", f"{own}/keyring", *create, "--gen-key", "-n", name, *flags)

    def start_all(self):
        own = self.folder
        self.configure()
        self.run("monmaptool", "--create", "--fsid", self.fsid, "--addv", "a", f"[v2:{self.mon}]",
                 f"{own}/monmap")
        self.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", f"{own}/monmap", "--keyring",
                 f"{own}/keyring")
        self.spawn("ceph-mon", "-f", "-i", "a")
        osd = "1b3b7c0e-7f0a-4b6d-9b30-0b9f5d1a7c22"
        self.run("ceph", "--connect-timeout", "120", "osd", "new", osd)
        self.run("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", osd, "--keyring", f"{own}/keyring")
        self.spawn("ceph-osd", "-f", "-i", "0")
        self.run("radosgw-admin", "-n", "client.rgw", "user", "create", "--uid", "firn",
                 "--display-name", "firn", "--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY)
        self.gateway = self.spawn("radosgw", "-f", "-n", "client.rgw")
        self.wait()

    def wait(self):
        until = time.monotonic() + 180
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(self.url, timeout=5):
                    return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.2)
        raise TimeoutError("radosgw does not answer")

    def stop_gateway(self):
        self.gateway.kill()
        self.gateway.wait()

    def start_gateway(self):
        self.gateway = self.spawn("radosgw", "-f", "-n", "client.rgw")
        self.wait()

    def make_bucket(self, name):
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT", data=b"",
                                         headers=signed("PUT", f"127.0.0.1:{self.port}", f"/{name}"))
        with urllib.request.urlopen(request, timeout=60):
            pass

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
