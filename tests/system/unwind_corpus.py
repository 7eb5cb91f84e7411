# SPDX-License-Identifier: Apache-2.0
"""The programs of unwind_programs/: how each is built, and which chains of calls it may show.

Each program is built at -O2 without frame pointers and stripped; a copy from before that, its
twin, has the names. A chain is words, outermost first:

  name     this function of the program, called by the one before it
  a|b      one of them
  name+    once or more
  ..       any number of functions that no chain of the program names: libraries, run times

A stack fits a chain when it is the beginning of it, with any number of functions that no chain
names on top (a call of the C library); it is complete when all words are there.
"""
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field

import harness

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unwind_programs")
C_FLAGS = ["-O2", "-fomit-frame-pointer", "-D_GNU_SOURCE", "-Wl,--build-id"]
MS = "1200"  # CPU time of a program
LATE_MS = "1500"  # of one whose first samples may come before its table
# The program begins when somebody writes to the FIFO $GATE: who sees that its tables are there.
WAIT_AT_GATE = 'read -r word < "$GATE"; exec "$@"'


@dataclass
class Program:
    name: str
    chains: list
    compiler: str = "gcc"  # or a key of BUILDERS
    source: str = ""  # default: NAME.c
    flags: list = field(default_factory=list)
    needs: list = field(default_factory=list)  # names of programs and libraries that must be there
    run: list = field(default_factory=list)  # with {dir}; default: the program with MS
    env: dict = field(default_factory=dict)
    seldom: bool = False  # its time is spent outside the last functions of its chains
    guesses: bool = False  # its stacks go through generated code, which may not keep the frame pointer
    late: bool = False  # its file exists only from its start on: the first samples come before its table
    root: str = ""  # "musl": the C library has no unwind information
    loads: list = field(default_factory=list)  # names of libraries in the folder that it opens itself


def deep(levels):
    return ["main " + " ".join(f"level_{i}" for i in range(levels)) + " bottom spin", "main over"]


def threads():
    return [f".. routine_{i} outer_{i} inner_{i} spin" for i in range(4)] + \
           [f".. routine_{i} over" for i in range(4)] + ["main .."]


def signals():
    same, own = "on_same_stack same_stack_work", "on_own_stack own_stack_work"
    handlers = [same, own, f"{same} .. {own}", f"{own} .. {same}",
                f"on_same_stack .. {own}", f"on_own_stack .. {same}"]
    return [f"{interrupted} .. {handler}" for interrupted in ("main descend+", "main", "main over")
            for handler in handlers]


SHELL_SETUP = {
    "deleted": "cp {dir}/deep_40 {dir}/deleted_exe && {dir}/deleted_exe $0 & "
               "sleep 0.2; rm {dir}/deleted_exe; wait",
    "overlay": "mkdir -p {dir}/low {dir}/up {dir}/work {dir}/merged && cp {dir}/deep_40 {dir}/low/ && "
               "mount -t overlay overlay -o lowerdir={dir}/low,upperdir={dir}/up,workdir={dir}/work "
               "{dir}/merged && mount -t proc proc /proc && exec {dir}/merged/deep_40 $0",
}
MEMFD = "import os, sys; fd = os.memfd_create('deep'); " \
        "os.write(fd, open(sys.argv[1], 'rb').read()); " \
        "os.execv(f'/proc/self/fd/{{fd}}', ['deep', sys.argv[2]])"
NEAR = "main call_near .. near_one|near_two|near_three"
FRAMES = """
    main large use
    main large large_inner spin|use
    main variable use
    main variable variable_inner spin|use
    main realigned use
    main realigned realigned_variable use
    main realigned realigned_variable realigned_inner spin|use
    main pushes_arguments many_arguments spin
    main jumps_back ends_in_call does_not_return spin
    main split use
    main split unlikely_work spin
    main over
"""
CALLBACKS = """
    main sort .. compare
    main sort_slowly .. compare_slowly compare
    main search .. compare_in_search spin
    main search .. compare_in_search compare
    main tree .. compare
    main tree .. visit
    main over
"""
LIBRARY = """
    main string_work ..
    main format_work ..
    main math_work ..
    main heap_work ..
    main over
"""
CHILDREN = """
    main by_vfork vforked spin_ten spin
    main by_fork forked spin_ten spin
    main by_exec
    main executed spin_ten spin
"""
EXCEPTIONS = """
    main catches passes_on cleans_up throws ..
    main catches passes_on cleans_up .. destructor_work
    main over
"""
CALLS = """
    main call_virtual square::print square::area spin
    main call_virtual square::area spin
    main call_function .. in_lambda spin
    main sort_numbers .. less
    main fill_map ..
    main over
    .. in_thread spin
"""
GO = """
    runtime.goexit .. main.outer main.inner main.spin
    runtime.goexit .. main.recovers main.panics .. main.deferred main.spin
    runtime.goexit .. main.grows+ main.spin
    runtime.goexit .. main.grows+ runtime.morestack runtime.newstack ..
    runtime.goexit .. main.outgrows runtime.morestack runtime.newstack ..
    runtime.goexit .. main.outgrows main.big runtime.morestack runtime.newstack ..
    runtime.goexit .. main.allocates ..
    runtime.goexit .. main.callsKernel ..
    runtime.goexit .. main.over
"""
CGO = """
    .. main.callsC .. c_outer c_inner
    .. main.callsC .. c_outer .. main.spin
    .. main.over
"""
RUST = """
    main .. outer inner spin
    main .. sorts .. compare
    main .. catches .. panics .. spin
    .. in_thread outer inner spin
"""
MUSL = {"compiler": "musl", "needs": ["musl-gcc"], "root": "musl"}
PLT_CHAINS = [NEAR, "main over"]


def chains(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


PROGRAMS = [
    Program("deep_40", deep(40), source="deep.c", flags=["-DLEVELS=40"]),
    Program("deep_300", deep(300), source="deep.c", flags=["-DLEVELS=300"]),
    Program("deep_clang", deep(40), "clang-14", "deep.c", ["-DLEVELS=40"], ["clang-14"]),
    Program("deep_static", deep(40), source="deep.c", flags=["-DLEVELS=40", "-static"]),
    Program("deep_static_pie", deep(40), source="deep.c", flags=["-DLEVELS=40", "-static-pie"]),
    Program("recursion", ["main even|odd|three+", "main over"]),
    Program("recursion_no_pie", ["main even|odd|three+", "main over"], source="recursion.c",
            flags=["-O3", "-no-pie"]),
    Program("frames", chains(FRAMES)),
    Program("frames_avx", chains(FRAMES), source="frames.c",
            flags=["-mstackrealign", "-mavx2", "-O3"]),
    Program("callbacks", chains(CALLBACKS)),
    Program("library", chains(LIBRARY)),
    Program("threads", threads()),
    Program("coroutines", [".. first_routine step yield ..", ".. second_routine step spin",
                           ".. second_routine step yield ..", "main over"]),
    Program("signals", signals()),
    Program("children", chains(CHILDREN)),
    Program("plugins", ["main use_plugin plug_outer a_inner leaf_a",
                        "main use_plugin plug_outer b_inner leaf_b", "main over"],
            loads=["libplug_a.so", "libplug_b.so"]),
    Program("moved", ["main use_moved plug_outer a_inner leaf_a", "main over"], loads=["libplug_a.so"]),
    Program("syscalls", ["main read_zeros ..", "main random_bytes ..", "main page_faults touch",
                         "main small_calls ..", "main over"]),
    Program("plt", PLT_CHAINS, flags=["-Wl,-z,lazy", "-fcf-protection=none", "-fno-plt", "-fplt"]),
    Program("plt_ibt", PLT_CHAINS, source="plt.c",
            flags=["-Wl,-z,lazy", "-fcf-protection=full", "-Wl,-z,ibtplt"]),
    Program("plt_resolve", PLT_CHAINS, source="plt.c", flags=["-Wl,-z,lazy"],
            env={"LD_BIND_NOT": "1"}, seldom=True),
    Program("jit", ["main run_generated [anon] back_again spin", "main over"], guesses=True),
    Program("exceptions", chains(EXCEPTIONS), "g++", "exceptions.cc"),
    Program("calls", chains(CALLS), "g++", "calls.cc"),
    Program("go", chains(GO), "go", "go", needs=["go"]),
    Program("cgo", chains(CGO), "go", "cgo", needs=["go"]),
    Program("rust", chains(RUST), "rustc", "chain.rs", needs=["rustc"]),
    Program("musl", deep(40), source="deep.c", flags=["-DLEVELS=40"], **MUSL),
    Program("musl_static", deep(40), source="deep.c", flags=["-DLEVELS=40", "-static"], **MUSL),
    Program("musl_threads", threads(), source="threads.c", **MUSL),
    # The program of deep_40 as it is found in containers and launchers.
    Program("deleted", deep(40), "none", "deep_40", late=True,
            run=["sh", "-c", SHELL_SETUP["deleted"], LATE_MS]),
    Program("memfd", deep(40), "none", "deep_40", late=True,
            run=["/usr/bin/python3", "-c", MEMFD, "{dir}/deep_40", LATE_MS]),
    Program("overlay", deep(40), "none", "deep_40", late=True, needs=["unshare"],
            run=["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-c",
                 SHELL_SETUP["overlay"], LATE_MS]),
]


def call(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")


def strip(folder, name):
    """Keeps the twin as NAME.twin, and strips NAME of all but what it needs to run and unwind."""
    exe = os.path.join(folder, name)
    shutil.copy(exe, exe + ".twin")
    call("strip", "--strip-all", exe)


def build_libraries(folder):
    """What some programs load or are linked with."""
    for which, locals_bytes in (("a", 600), ("b", 1200)):
        name = f"libplug_{which}.so"
        call("gcc", *C_FLAGS, "-fPIC", "-shared", f"-DPLUG_INNER={which}_inner", f"-DLOCALS={locals_bytes}",
             "-o", os.path.join(folder, name), os.path.join(SOURCES, "plug.c"))
        strip(folder, name)
    call("gcc", *C_FLAGS, "-fPIC", "-shared", "-o", os.path.join(folder, "libnear.so"),
         os.path.join(SOURCES, "near.c"))
    strip(folder, "libnear.so")


def build_go(folder, program):
    env = {**os.environ, "GOCACHE": harness.go_cache(folder), "HOME": folder, "GOFLAGS": "-mod=mod",
           "GO111MODULE": "off"}
    out = os.path.join(folder, program.name)
    build_id = f"-B 0x{program.name.encode().hex():0<40}"
    source = os.path.join(SOURCES, program.source, "main.go")
    for path, flags in ((out + ".twin", build_id), (out, build_id + " -s -w")):
        call("go", "build", "-ldflags", flags, "-o", path, source, env=env)


def build(folder, program):
    """Makes NAME and NAME.twin in the folder."""
    out = os.path.join(folder, program.name)
    source = os.path.join(SOURCES, program.source or program.name + ".c")
    if program.compiler == "none":
        return
    if program.compiler == "go":
        build_go(folder, program)
        return
    if program.compiler == "rustc":
        call("rustc", "-O", "-C", "force-frame-pointers=no", "-C", "link-arg=-Wl,--build-id",
             *program.flags, "-o", out, source, env={**os.environ, "TMPDIR": folder})
    else:
        compiler = {"musl": "musl-gcc"}.get(program.compiler, program.compiler)
        libraries = {"plt.c": [f"-L{folder}", "-lnear", f"-Wl,-rpath,{folder}"],
                     "library.c": ["-lm"], "threads.c": ["-pthread"], "calls.cc": ["-pthread"]}
        call(compiler, *C_FLAGS, *program.flags, "-o", out, source,
             *libraries.get(os.path.basename(source), []))
    strip(folder, program.name)


def missing(program):
    """What the program needs and this host lacks, or None."""
    for need in program.needs:
        if not shutil.which(need):
            return need
    return None


def executable(folder, program):
    return os.path.join(folder, program.source if program.compiler == "none" else program.name)


def files_of(folder, program):
    """The program and the libraries that it maps, as /proc names them."""
    exe = executable(folder, program)
    needed = [exe, *(os.path.join(folder, name) for name in program.loads)]
    told = subprocess.run(["ldd", exe], capture_output=True, text=True, check=False).stdout
    needed += [word for word in told.split() if word.startswith("/")]
    headers = subprocess.run(["readelf", "-Wl", exe], capture_output=True, text=True, check=False).stdout
    needed += re.findall(r"program interpreter: ([^]]+)", headers)
    return {os.path.realpath(path) for path in needed if os.path.exists(path)}


def command(folder, program, at_gate=False):
    exe = executable(folder, program)
    words = [word.format(dir=folder) if "{" in word else word for word in program.run] or [exe, MS]
    return ["sh", "-c", WAIT_AT_GATE, exe, *words] if at_gate else words
