# SPDX-License-Identifier: Apache-2.0
"""Programs whose addresses are to be named: languages, compilers, flags, and what is done to their
debug information afterwards. Used by symbolize_test and bench/symbolize_bench."""
import os
import shutil
import subprocess
from dataclasses import dataclass, field

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = (os.path.join(HERE, "symbol_programs"), os.path.join(HERE, "unwind_programs"))


@dataclass
class Program:
    name: str
    source: str  # in SOURCES, or an absolute path for a file of this host
    compiler: str = ""
    flags: list = field(default_factory=list)
    after: str = ""  # shell commands in the folder; {out} is the program
    needs: list = field(default_factory=list)
    quick: bool = False  # for the test, too; all are for the bench
    flat: bool = False  # lines without functions: the place of the innermost frame, the name of the outermost
    peer: str = ""  # the file that llvm-symbolizer is asked about, where that is another: {out}


def shapes(name, compiler, *flags, **more):
    return Program(name, "shapes.cc", compiler, list(flags), **more)


def containers(name, compiler, *flags, **more):
    return Program(name, "containers.cc", compiler, ["-std=c++17", "-pthread", *flags], **more)


MINI = ("nm -D {out} --format=posix --defined-only | cut -d' ' -f1 | sort >{out}.dynamic; "
        "nm {out} --format=posix --defined-only | awk '$2 ~ /[tTDwW]/ {{print $1}}' | sort >{out}.all; "
        "comm -13 {out}.dynamic {out}.all >{out}.keep; "
        "objcopy -S --keep-file-symbols --remove-section .comment --keep-symbols={out}.keep {out} {out}.mini; "
        "cp {out} {out}.whole; strip --strip-all -R .comment {out}; rm -f {out}.mini.xz; xz {out}.mini; "
        "objcopy --add-section .gnu_debugdata={out}.mini.xz {out}")
LINKED = ("cp {out} {out}.whole && objcopy --only-keep-debug {out} {out}.debug && strip {out} && "
          "objcopy --add-gnu-debuglink={out}.debug {out}")
LINE_ONLY = ("cp {out} {out}.whole && "
             "objcopy -R .debug_info -R .debug_abbrev -R .debug_str -R .debug_rnglists -R .debug_aranges {out}")
MULTIFILE = "cp {out} {out}.second && dwz -m {out}.common -M {out}.common {out} {out}.second"

PROGRAMS = [
    shapes("gcc-O2", "g++", "-O2", quick=True),
    shapes("gcc-O0", "g++", "-O0", quick=True),
    shapes("gcc-dwarf2", "g++", "-O2", "-gdwarf-2", "-gstrict-dwarf", quick=True),
    shapes("gcc-dwarf3", "g++", "-O2", "-gdwarf-3", quick=True),
    shapes("gcc-dwarf64", "g++", "-O2", "-gdwarf64", "-gdwarf-5", quick=True),
    shapes("gcc-types", "g++", "-O2", "-fdebug-types-section", quick=True),
    shapes("gcc-sections", "g++", "-O2", "-ffunction-sections", "-Wl,--gc-sections", quick=True),
    shapes("clang-lines", "clang++-14", "-O2", "-gline-tables-only", quick=True),
    shapes("small-zlib", "g++", "-O2", "-gz=zlib-gnu", quick=True),
    shapes("small-debuglink", "g++", "-O2", after=LINKED, peer="{out}.whole", quick=True),
    shapes("small-mini", "g++", "-O2", "-g0", after=MINI, peer="{out}.whole", needs=["xz"], quick=True),
    shapes("small-split", "g++", "-O2", "-gdwarf-4", "-gsplit-dwarf", quick=True),
    shapes("small-dwp", "clang++-14", "-O2", "-gdwarf-5", "-gsplit-dwarf", needs=["llvm-dwp-14"],
           after="llvm-dwp-14 -e {out} -o {out}.dwp && rm *.dwo", quick=True),
    containers("c++-O3", "g++", "-O3"),
    containers("c++-O3-lto", "g++", "-O3", "-flto"),
    containers("c++-dwarf4", "g++", "-O2", "-gdwarf-4"),
    containers("c++-zlib", "g++", "-O2", "-gz=zlib"),
    containers("c++-zlib-gnu", "g++", "-O2", "-gz=zlib-gnu"),
    containers("c++-clang", "clang++-14", "-O3"),
    containers("c++-clang-lto", "clang++-14", "-O3", "-flto=full", "-fuse-ld=lld", needs=["ld.lld"]),
    containers("c++-clang-dwarf4", "clang++-14", "-O2", "-gdwarf-4"),
    containers("c++-static", "g++", "-O2", "-static"),
    containers("c++-static-pie", "g++", "-O2", "-static-pie"),
    containers("c++-no-pie", "g++", "-O2", "-no-pie"),
    containers("split-5", "g++", "-O2", "-gdwarf-5", "-gsplit-dwarf"),
    containers("split-4", "g++", "-O2", "-gdwarf-4", "-gsplit-dwarf"),
    containers("split-clang-5", "clang++-14", "-O2", "-gdwarf-5", "-gsplit-dwarf"),
    containers("split-clang-4", "clang++-14", "-O2", "-gdwarf-4", "-gsplit-dwarf"),
    containers("dwp-4", "g++", "-O2", "-gdwarf-4", "-gsplit-dwarf", needs=["dwp"],
               after="dwp -e {out} -o {out}.dwp && rm *.dwo"),
    containers("dwp-5", "clang++-14", "-O2", "-gdwarf-5", "-gsplit-dwarf", needs=["llvm-dwp-14"],
               after="llvm-dwp-14 -e {out} -o {out}.dwp && rm *.dwo"),
    containers("dwz", "g++", "-O2", "-gdwarf-4", after="dwz {out}", needs=["dwz"]),
    containers("dwz-5", "g++", "-O2", after="dwz {out}", needs=["dwz"]),
    containers("dwz-multifile", "g++", "-O2", "-gdwarf-4", peer="{out}.whole", needs=["dwz"],
               after="cp {out} {out}.whole; " + MULTIFILE, quick=True),
    containers("debuglink", "g++", "-O2", after=LINKED, peer="{out}.whole"),
    containers("mini-debuginfo", "g++", "-O2", "-g0", after=MINI, peer="{out}.whole", needs=["xz"]),
    containers("symbols-only", "g++", "-O2", "-g0"),
    containers("dynamic-only", "g++", "-O2", "-g0", "-shared", "-fPIC", after="strip {out}"),
    Program("c-O2", "library.c", "gcc", ["-O2"]),
    Program("c-line-only", "library.c", "gcc", ["-O2"], after=LINE_ONLY, peer="{out}.whole", flat=True, quick=True),
    Program("c-static", "threads.c", "gcc", ["-O2", "-static", "-pthread"], quick=True),
    Program("musl", "deep.c", "musl-gcc", ["-O2", "-DLEVELS=40", "-static"], needs=["musl-gcc"], quick=True),
    Program("rust-O", "chain.rs", "rustc", ["-O", "-g"], needs=["rustc"], quick=True),
    Program("rust-v0", "chain.rs", "rustc", ["-O", "-g", "-C", "symbol-mangling-version=v0"], needs=["rustc"]),
    Program("rust-debug", "chain.rs", "rustc", ["-g"], needs=["rustc"]),
    Program("rust-lto", "chain.rs", "rustc", ["-O", "-g", "-C", "lto=fat"], needs=["rustc"]),
    Program("go", "go", "go", needs=["go"]),
    Program("go-stripped", "go", "go", ["-ldflags=-s -w"], needs=["go"], peer="{out}.whole", quick=True),
    Program("go-pie-stripped", "go", "go", ["-buildmode=pie", "-ldflags=-s -w"], needs=["go"], peer="{out}.whole"),
    Program("libc", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
    Program("python", "/usr/bin/python3.11-dbg"),
    Program("libstdc++", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"),
    Program("jvm", "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"),
]


def program(name):
    return next(program for program in PROGRAMS if program.name == name)


def missing(program):
    """What the program needs and this host lacks, or None."""
    if os.path.isabs(program.source):
        return None if os.path.exists(program.source) else program.source
    for need in [program.compiler, *program.needs]:
        if not shutil.which(need):
            return need
    return None


def source_of(name):
    return next(path for path in (os.path.join(folder, name) for folder in SOURCES) if os.path.exists(path))


def call(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")


def build_go(folder, program, source, out):
    env = {**os.environ, "GOCACHE": harness.go_cache(folder), "HOME": folder, "GO111MODULE": "off"}
    kept = [flag for flag in program.flags if not flag.startswith("-ldflags")]
    for path, flags in ((out + ".whole", kept), (out, program.flags)):
        call("go", "build", *flags, "-o", path, os.path.join(source, "main.go"), env=env)


def build(folder, program):
    """The path of the program, made in a folder of its own below `folder`."""
    if os.path.isabs(program.source):
        return os.path.realpath(program.source)
    own = os.path.join(folder, program.name)
    out = os.path.join(own, "program")
    if os.path.exists(out):
        return out
    os.mkdir(own)
    source = source_of(program.source)
    if program.compiler == "go":
        build_go(folder, program, source, out)
    elif program.compiler == "rustc":
        call("rustc", *program.flags, "-C", "link-arg=-Wl,--build-id", "-o", out, source,
             env={**os.environ, "TMPDIR": own})
    else:
        # Compiled from its folder, so that .dwo files get names that lead there.
        call(program.compiler, "-g", "-D_GNU_SOURCE", "-Wl,--build-id", *program.flags, "-o", "program", source, "-lm",
             cwd=own)
    if program.after:
        call("sh", "-ec", program.after.format(out="program"), cwd=own)
    return out


def peer_of(path, program):
    """The file that the peer is asked about."""
    return program.peer.format(out=path) if program.peer else path
