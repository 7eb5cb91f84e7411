# SPDX-License-Identifier: Apache-2.0
"""A cluster of ClickHouse for tests: Debian's clickhouse-server 18.16, shards of two replicas each, with one ZooKeeper.

All on loopback. Single servers are killed and started again.
"""
import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from foreground import Foreground

NAME = "firn"
REPLICAS = 2
ZOOKEEPER_JAR = "/usr/share/java/zookeeper.jar"
WAIT_S = 120
SERVER = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<listen_host>127.0.0.1</listen_host><interserver_http_host>127.0.0.1</interserver_http_host>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{interserver}</interserver_http_port>
<path>{folder}/data/</path><tmp_path>{folder}/data/tmp/</tmp_path><timezone>UTC</timezone>
<mark_cache_size>67108864</mark_cache_size><max_concurrent_queries>200</max_concurrent_queries>
<users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database>
<remote_servers><{name}>{shards}</{name}></remote_servers>
<zookeeper><node><host>127.0.0.1</host><port>{zookeeper}</port></node>
<session_timeout_ms>4000</session_timeout_ms></zookeeper>
<macros><shard>{shard}</shard><replica>{replica}</replica></macros>
<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
</yandex>
"""
# An insert is on both replicas before it is acknowledged, so any of them has what was.
USERS = """<yandex><profiles><default>
<insert_quorum>2</insert_quorum><insert_quorum_timeout>15000</insert_quorum_timeout>
<connect_timeout_with_failover_ms>1000</connect_timeout_with_failover_ms><max_threads>1</max_threads>
<background_pool_size>4</background_pool_size><background_schedule_pool_size>4</background_schedule_pool_size>
<fsync_metadata>0</fsync_metadata>
</default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></default></users><quotas><default></default></quotas></yandex>
"""
ZOOKEEPER = """tickTime=500
dataDir={folder}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
4lw.commands.whitelist=srvr
"""


def missing():
    """What is not installed of what a cluster needs, or None."""
    lacking = [name for name in ("clickhouse-server", "java") if not shutil.which(name)]
    lacking += [] if os.path.exists(ZOOKEEPER_JAR) else [ZOOKEEPER_JAR]
    return ", ".join(lacking) if lacking else None


def scratch():
    """A folder in memory, where that is: servers make thousands of small files, which costs some disks most of all."""
    folder = tempfile.mkdtemp(prefix="firn-test-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def free_ports(count):
    """All different: each is held until the last is found."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Cluster(Foreground):
    """Addresses of all servers in self.url, in turns from each shard."""

    def __init__(self, folder, shards=2):
        self.folder, self.shards = str(folder), shards
        self.count = shards * REPLICAS
        ports = free_ports(3 * self.count + 1)
        self.zookeeper_port = ports.pop()
        self.http, self.tcp, self.interserver = (ports[n::3] for n in range(3))
        self.url = ",".join(self.url_of(n) for n in range(self.count))
        self.servers, self.zookeeper = [None] * self.count, None

    def start_all(self):
        self.configure()
        self.start_zookeeper()
        for number in range(self.count):
            self.start(number, wait=False)
        self.wait()

    def url_of(self, number):
        return f"http://127.0.0.1:{self.http[number]}"

    def shard_of(self, number):
        return number % self.shards

    def configure(self):
        shards = ""
        for shard in range(self.shards):
            replicas = "".join(f"<replica><host>127.0.0.1</host><port>{self.tcp[n]}</port></replica>"
                               for n in range(self.count) if self.shard_of(n) == shard)
            shards += f"<shard><internal_replication>true</internal_replication>{replicas}</shard>"
        for number in range(self.count):
            folder = self.folder_of(number)
            os.makedirs(f"{folder}/data/tmp")
            with open(f"{folder}/config.xml", "w", encoding="utf-8") as file:
                file.write(SERVER.format(folder=folder, name=NAME, shards=shards, http=self.http[number],
                                         tcp=self.tcp[number], interserver=self.interserver[number],
                                         zookeeper=self.zookeeper_port, shard=self.shard_of(number) + 1,
                                         replica=number // self.shards + 1))
            with open(f"{folder}/users.xml", "w", encoding="utf-8") as file:
                file.write(USERS)
        os.makedirs(f"{self.folder}/zookeeper")
        with open(f"{self.folder}/zookeeper.cfg", "w", encoding="utf-8") as file:
            file.write(ZOOKEEPER.format(folder=f"{self.folder}/zookeeper", port=self.zookeeper_port))

    def folder_of(self, number):
        return f"{self.folder}/server{number}"

    def spawn(self, folder, *command):
        with open(f"{folder}/output", "ab") as log:  # the process's from now on
            return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def start_zookeeper(self):
        self.zookeeper = self.spawn(f"{self.folder}/zookeeper", "java", "-Xmx128m", "-XX:+UseSerialGC",
                                    "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no", "-cp", ZOOKEEPER_JAR,
                                    "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                                    f"{self.folder}/zookeeper.cfg")
        self.wait_for("ZooKeeper", self.zookeeper, self.zookeeper_answers)

    def kill_zookeeper(self):
        self.zookeeper.kill()
        self.zookeeper.wait()

    def zookeeper_answers(self):
        """Sessions, that is: a ClickHouse 18.16 which is refused one when it starts crashes."""
        with socket.create_connection(("127.0.0.1", self.zookeeper_port), timeout=5) as link:
            link.sendall(b"srvr")
            return link.recv(64).startswith(b"Zookeeper version")

    def start(self, number, wait=True):
        folder = self.folder_of(number)
        self.servers[number] = self.spawn(folder, "clickhouse-server", f"--config-file={folder}/config.xml")
        if wait:
            self.wait_for_server(number)

    def kill(self, number):
        self.servers[number].kill()
        self.servers[number].wait()

    def wait_for(self, what, process, condition):
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            if process.poll() is not None:
                raise RuntimeError(f"{what} ended with {process.returncode}: {self.folder}")
            try:
                if condition():
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise TimeoutError(f"{what} does not answer: {self.folder}")

    def wait_for_server(self, number):
        self.wait_for(f"server {number}", self.servers[number], lambda: self.ask("SELECT 1", number) == "1")

    def wait(self):
        for number in range(self.count):
            self.wait_for_server(number)

    def ask(self, sql, number=0):
        """The answer as TSV; an OSError if it is an exception."""
        try:
            with urllib.request.urlopen(self.url_of(number), data=sql.encode(), timeout=60) as answer:
                return answer.read().decode().strip()
        except urllib.error.HTTPError as error:
            raise OSError(error.read().decode()) from error

    def stop(self):
        for process in [*self.servers, self.zookeeper]:
            if process:
                process.kill()
                process.wait()
