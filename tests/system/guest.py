# SPDX-License-Identifier: Apache-2.0
"""Another kernel to test under: Debian's, booted by QEMU without KVM and without root.

The guest's whole system is an initramfs of busybox, the files given, and a script that runs the commands
one after the other. It talks over the serial console and powers itself off.
"""
import os
import re
import shutil
import stat
import subprocess

import harness

CACHE = os.path.join(harness.ROOT, "build", "kernels")
DOWNLOAD_TIMEOUT_S = 90
BUSYBOX = "/bin/busybox"
OLDER_RELEASES = {"5.10": "bullseye"}  # of Debian, whose kernel it is

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin TERM=dumb
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tracefs tracefs /sys/kernel/tracing
mount -t securityfs securityfs /sys/kernel/security
ifconfig lo 127.0.0.1 up
hostname guest
"""


def newest(packages, series):
    """The package of the highest ABI number among linux-image-6.1.0-N-cloud-amd64."""
    pattern = re.compile(rf"linux-image-{re.escape(series)}\.\d+-(\d+)-cloud-amd64")
    numbered = [(int(match[1]), match[0]) for match in map(pattern.fullmatch, packages) if match]
    return max(numbered)[1] if numbered else None


def older_sources(folder, release):
    """Writes sources of an older release of Debian, from where this machine has its own. Returns the file's path."""
    sites = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME) $(RELEASE)",
                            "Created-By: Packages"], capture_output=True, text=True).stdout
    path = os.path.join(folder, "sources.list")
    with open(path, "w") as out:
        for site, codename, suite in {tuple(line.split()) for line in sites.splitlines() if line.count(" ") == 2}:
            own = suite.removesuffix("-security")
            if suite in (own, own + "-security") and codename.split("-")[0] == own and "debian" in site:
                out.write(f"deb {site} {suite.replace(own, release)} main\n")
    return path


def apt(folder, *args, own_lists=False):
    """Runs an apt tool in a folder, with package lists of its own when told; returns the completed process.

    With a file sources.list in the folder, nothing else is asked."""
    tool, *rest = args
    options = ["-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=15", "-o", "APT::Sandbox::User=",
               "-o", f"Dir::Cache={folder}/cache"]
    if own_lists:
        options += ["-o", f"Dir::State::Lists={folder}/lists"]
    if os.path.exists(os.path.join(folder, "sources.list")):
        options += ["-o", f"Dir::Etc::SourceList={folder}/sources.list", "-o", "Dir::Etc::SourceParts=-"]
    return subprocess.run([tool, *options, *rest], cwd=folder, capture_output=True, text=True,
                          timeout=DOWNLOAD_TIMEOUT_S, env={**os.environ, "LC_ALL": "C"})


def download(folder, series, own_lists):
    """Fetches the kernel's package into the folder. Returns its path, or None and why there is none."""
    trouble = ""
    if own_lists:
        trouble = apt(folder, "apt-get", "update", own_lists=True).stderr  # may be of another source than Debian
    names = apt(folder, "apt-cache", "pkgnames", f"linux-image-{series}.", own_lists=own_lists).stdout.split()
    package = newest(names, series)
    if not package:
        return None, f"apt knows no package linux-image-{series}.* {trouble}"
    got = apt(folder, "apt-get", "download", package, own_lists=own_lists)
    found = [name for name in os.listdir(folder) if name.endswith(".deb")]
    if got.returncode or not found:
        return None, f"apt-get download {package}: {got.stderr}"
    return os.path.join(folder, found[0]), None


def unpack(package, image):
    """Takes the kernel out of a .deb; the other files are modules."""
    os.makedirs(os.path.dirname(image), exist_ok=True)
    tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    with open(image + ".new", "wb") as out:
        subprocess.run(["tar", "-xO", "--wildcards", "./boot/vmlinuz-*"], stdin=tar.stdout, stdout=out, check=True)
    tar.stdout.close()
    if tar.wait():
        raise RuntimeError(f"dpkg-deb cannot read {package}")
    os.rename(image + ".new", image)


def kernel(series):
    """The path of Debian's newest kernel of a series ("6.1"), fetched once; skips the test when it cannot be had.

    Debian's smallest build of it ("cloud") differs in drivers only. First the package lists of this machine
    are asked; lists that are missing or out of date do not matter: then fresh ones are fetched for this alone.
    """
    image = os.path.join(CACHE, f"vmlinuz-{series}")
    if os.path.exists(image):
        return image
    if not shutil.which("apt-get"):
        harness.skip_all("no apt-get to fetch Debian's kernel with")
    folder = harness.scratch()
    for own in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(folder, own))
    package = why = None
    if series in OLDER_RELEASES:
        older_sources(folder, OLDER_RELEASES[series])
    for own_lists in (False, True) if series not in OLDER_RELEASES else (True,):
        try:
            package, why = download(folder, series, own_lists)
        except subprocess.TimeoutExpired as error:
            why = str(error)
        if package:
            break
        why = " ".join(why.split())[:300]
        harness.note(f"with {'fresh package lists' if own_lists else 'the package lists at hand'}: {why}")
    if not package:
        harness.skip_all(f"Debian's kernel {series} cannot be fetched: {why}")
    if not os.access(os.path.join(harness.ROOT, "build"), os.W_OK):
        image = os.path.join(folder, os.path.basename(image))
    unpack(package, image)
    return image


def cpio_member(name, mode, data):
    """One file of an initramfs (format "newc")."""
    name = name.encode() + b"\0"
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def initramfs(path, files, script):
    """Writes one with busybox, {path in the guest: file or bytes}, and /init."""
    contents = {"bin/busybox": BUSYBOX, **files, "init": script.encode()}
    folders = {"dev", "proc", "sys", "tmp"}
    for name in contents:
        parts = name.split("/")[:-1]
        folders |= {"/".join(parts[:i + 1]) for i in range(len(parts))}
    with open(path, "wb") as out:
        for folder in sorted(folders):
            out.write(cpio_member(folder, stat.S_IFDIR | 0o755, b""))
        for name, source in contents.items():
            if not isinstance(source, bytes):
                with open(source, "rb") as f:
                    source = f.read()
            out.write(cpio_member(name, stat.S_IFREG | 0o755, source))
        out.write(cpio_member("TRAILER!!!", 0, b""))


class Run:
    """What the guest did: results by command name, and all of the console."""

    def __init__(self, console):
        self.console = console.replace("\r", "")
        self.results = {}
        for match in re.finditer(r"^@@begin (\S+)\n(.*?)^@@end \1 (\d+)$", self.console, re.M | re.S):
            self.results[match[1]] = (int(match[3]), match[2])

    def __getitem__(self, name):
        """(exit code, output) of a command; exit code None when the guest did not get there."""
        return self.results.get(name, (None, self.console[-3000:]))


def boot(image, files, commands, cpus=2, memory="512M", timeout=150):
    """Boots the kernel with files {path in the guest: file or bytes} and runs shell commands {name: text}."""
    for tool in ("qemu-system-x86_64", BUSYBOX):
        if not shutil.which(tool):
            harness.skip_all(f"{tool} is missing (make deps-test)")
    script = INIT
    for name, command in commands.items():
        script += f"echo; echo '@@begin {name}'\n( {command} ) 2>&1\ncode=$?; echo; echo \"@@end {name} $code\"\n"
    script += "poweroff -f\n"
    ram = os.path.join(harness.scratch(), "initramfs")
    initramfs(ram, files, script)
    qemu = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(cpus), "-m", memory,
            "-nic", "none", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
            "-kernel", image, "-initrd", ram, "-append", "console=ttyS0 loglevel=1 panic=-1 no_timer_check"]
    try:
        done = subprocess.run(qemu, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        return Run((done.stdout + done.stderr).decode(errors="replace"))
    except subprocess.TimeoutExpired as error:
        return Run(((error.stdout or b"") + b"\nthe guest did not end in time\n").decode(errors="replace"))
