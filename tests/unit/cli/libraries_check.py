# SPDX-License-Identifier: Apache-2.0
"""src/cli/libraries.txt names every package that firn is linked with, and no other. Usage: LIST BUILD-ROOT

What is linked is read from the build's own files: archives on the link line, found as the linker finds them; sources
that are compiled from a package; and what npm has put into the bundle.
"""
import json
import os
import re
import shutil
import subprocess
import sys

# On every link line without being named there.
COMPILER = {"libc6-dev", "libgcc-12-dev", "libstdc++-12-dev"}
OF_GLIBC = {"libdl", "librt", "libpthread", "libm"}


def in_its_package(path):
    """Some find libraries in /lib, which is a link to where packages have them."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def owners(paths):
    """The packages of archives, or of the links to shared libraries: they came from there too."""
    told = subprocess.run(["dpkg", "-S", *map(in_its_package, paths)], capture_output=True, text=True, check=True)
    return {line.split(":")[0] for line in told.stdout.splitlines()}


def library_path(word):
    """Of an argument of the linker; None when it is no library."""
    if re.match(r"/.*\.(a|so)$", word):
        return os.path.normpath(word)
    if word.startswith("-l"):
        for ending in ("a", "so"):
            told = subprocess.run(["gcc", f"-print-file-name=lib{word[2:]}.{ending}"], capture_output=True, text=True)
            if os.path.isabs(told.stdout.strip()):
                return os.path.normpath(told.stdout.strip())
    return None


def linked(build_file):
    text = open(build_file, encoding="utf-8").read()
    arguments = re.search(r"^build src/cli/firn: .*?^ LINK_ARGS = (.*?)$", text, re.S | re.M)[1].split()
    paths = {library_path(word) for word in arguments} - {None}
    found = COMPILER | owners({path for path in paths if os.path.basename(path).split(".")[0] not in OF_GLIBC})
    if "/usr/share/llhttp/" in text:
        found.add("node-llhttp")
    return found


def bundled(lock):
    """What the page depends on at run time, by the lock file: dependencies and theirs."""
    packages = json.load(open(lock, encoding="utf-8"))["packages"]
    waiting, found = list(packages[""]["dependencies"]), set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += packages["node_modules/" + name].get("dependencies", {})
    return found


def main():
    path, build_root = sys.argv[1:]
    rows = [line.split(None, 2) for line in open(path, encoding="utf-8") if line.strip() and line[0] != "#"]
    if not shutil.which("dpkg"):
        print("no dpkg on this host: nothing tells whose a library is")
        sys.exit(77)
    lock = os.path.join(os.path.dirname(path), "..", "ui", "package-lock.json")
    wrong = {package for package, _, _ in rows if package != "npm"} ^ linked(os.path.join(build_root, "build.ninja"))
    wrong |= {name for package, name, _ in rows if package == "npm"} ^ bundled(lock)
    for name in sorted(wrong):
        print(f"{name}: in the list or in the program, not in both")
    sys.exit(1 if wrong else 0)


main()
