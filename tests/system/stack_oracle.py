# SPDX-License-Identifier: Apache-2.0
"""Judges the stacks of a pprof file that firn wrote, by means that are not firn's: names come from
unstripped twins through nm, the starts of threads from readelf's rows, chains from unwind_corpus."""
import bisect
import collections
import gzip
import os
import re
import subprocess

import harness

START_BYTES = 64  # of the entry function, where nothing else tells its length
GONE = "the outermost file is gone"
NOT_LOADED = "[truncated: unwind table not loaded yet]"
LATE_MAX = 0.05  # share of samples that may come before a table that could not be there earlier
# While an exception goes on its way, libgcc writes over the registers that its own frames have saved, before it
# leaves them (uw_install_context_1): for that moment nothing says where its caller's frame is.
INSTALLING = ("libgcc_s.so.1", "[truncated: bad return address]")
# After a fork, who first writes to its stack makes the kernel copy that page, which is nobody's until all CPUs know.
COPYING = ("do_wp_page", "[truncated: unreadable stack]")
IN_BETWEEN_MAX = 0.05  # share of samples at these moments
GUESS = "[guess: frame pointer]"  # stands outside of a stack that was walked through generated code
CLONE_BYTES = 12  # from the system call of clone3 to the new thread's part, which glibc leaves without rows
# Where stacks of Go's run time begin.
GO_ROOTS = re.compile(r"runtime\.(goexit|mstart|mstart0|mstart1|mcall|morestack|rt0_go|systemstack)(\.abi0)?$|_rt0_")
# glibc's __start_context: mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je; call
START_CONTEXT = bytes.fromhex("4889dc488b3c244885ff7408e8")
CLONE_SUFFIX = re.compile(r"( \[clone.*|\.(cold|part|constprop|isra|abi0|llvm).*)$")


def tool(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, errors="replace").stdout


def short_name(name):
    """square::area(unsigned long) -> square::area; inner.cold -> inner"""
    name = CLONE_SUFFIX.sub("", name)
    if not name.startswith("main."):  # Go's own names may hold brackets
        name = name.split("(", 1)[0]
    return name


class Twin:
    """Names of one program, by the addresses that its file says."""

    def __init__(self, path):
        found = {}
        for line in tool("nm", "-C", "--defined-only", path).splitlines():
            address, kind, name = line.split(None, 2)
            if kind in "tTwWiu":
                found.setdefault(int(address, 16), short_name(name))
        self.starts = sorted(found)
        self.names = [found[start] for start in self.starts]
        self.code = code_sections(path)

    def name(self, address):
        for section, start, end in self.code:
            if start <= address < end:
                if section.startswith(".plt"):
                    return f"[{section}]"
                break
        else:
            return None
        at = bisect.bisect_right(self.starts, address) - 1
        return self.names[at] if at >= 0 else None


def code_sections(path):
    found = []
    for line in tool("readelf", "-SW", path).splitlines():
        match = re.match(r" *\[ *\d+\] (\S+) +\S+ +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) \S+ +(\w*)", line)
        if match and "X" in match[5]:
            start = int(match[2], 16)
            found.append((match[1], start, start + int(match[4], 16)))
    return found


def build_id(path):
    match = re.search(r"Build ID: (\w+)", tool("readelf", "-n", path))
    return match[1] if match else None


class Starts:
    """Where threads start in one file: rows whose return address is undefined, and the entry."""

    def __init__(self, path):
        self.ranges = []
        self.read_rows(path)
        entry = re.search(r"Entry point address: +0x([0-9a-f]+)", tool("readelf", "-h", path))
        if entry and int(entry[1], 16):
            self.ranges.append((int(entry[1], 16), int(entry[1], 16) + START_BYTES))
        with open(path, "rb") as f:
            at = f.read().find(START_CONTEXT)
        for start, end, offset in load_segments(path):
            if at >= 0 and offset <= at < offset + end - start:
                self.ranges.append((start + at - offset, start + at - offset + len(START_CONTEXT) + 13))

    def read_rows(self, path):
        """Such functions; and what comes just before, where a new thread begins in clone and clone3."""
        function = None
        for line in tool("readelf", "--debug-dump=frames-interp", path).splitlines():
            fde = re.search(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
            row = re.match(r"[0-9a-f]{16} \S+ .*?(\S+) *$", line)
            if fde or " CIE " in line:
                function = (int(fde[1], 16), int(fde[2], 16)) if fde else None
            elif function and row and row[1] == "u":
                self.ranges.append((function[0] - CLONE_BYTES, function[1]))
                function = None

    def has(self, address):
        # A return address moved back by one may lie before the function that never called.
        return any(start <= address < end or start <= address + 1 < end for start, end in self.ranges)


def load_segments(path):
    for line in tool("readelf", "-lW", path).splitlines():
        match = re.match(r" +LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ (\S*) ?(E?)", line)
        if match:
            start = int(match[2], 16)
            yield start, start + int(match[3], 16), int(match[1], 16)


class Files:
    """What is known of the files that stacks are in, by build id or path."""

    def __init__(self):
        self.twins = {}
        self.starts = {}

    def add_twin(self, path):
        self.twins[build_id(path)] = Twin(path + ".twin")

    def twin(self, frame):
        return self.twins.get(frame.build_id)

    def starts_of(self, frame):
        key = frame.build_id or frame.path
        if key not in self.starts:
            path = frame.path if os.path.isfile(frame.path) else None
            self.starts[key] = Starts(path) if path else None
        return self.starts[key]

    def learn_starts(self, path):
        """For a file that is not at its path when the stacks are judged."""
        self.starts.setdefault(build_id(path), Starts(path))


Frame = collections.namedtuple("Frame", "path build_id address names")


def read_profile(path, labels=False):
    """[(samples, [frame, ...])], the innermost frame first; with {label: text} as a third if asked."""
    (profile_pb2,) = harness.messages("profile")
    profile = profile_pb2.Profile()
    with gzip.open(path) as f:
        profile.ParseFromString(f.read())
    text = profile.string_table
    functions = {f.id: text[f.name] for f in profile.function}
    mappings = {m.id: (text[m.filename], text[m.build_id]) for m in profile.mapping}
    frames = {}
    for location in profile.location:
        mapping = mappings.get(location.mapping_id, ("", ""))
        names = [functions.get(line.function_id, "") for line in location.line]
        frames[location.id] = Frame(*mapping, location.address, names)
    if labels:
        return [(s.value[0], [frames[i] for i in s.location_id], {text[x.key]: text[x.str] for x in s.label})
                for s in profile.sample]
    return [(s.value[0], [frames[i] for i in s.location_id]) for s in profile.sample]


def read_perf(path):
    """The same of a perf.data file, for which perf unwinds now; it prints offsets in files."""
    known = {}
    stacks = collections.Counter()
    frames = []
    for line in tool("perf", "script", "-i", path, "--no-inline", "-F", "pid,ip,dso").splitlines() + [""]:
        match = re.match(r"\s+([0-9a-f]+) \((.*?)( \(deleted\))?\)$", line)
        if match:
            path = match[2]
            if path not in known:
                known[path] = (build_id(path), list(load_segments(path))) if os.path.isfile(path) else (None, [])
            frames.append(perf_frame(path, *known[path], int(match[1], 16)))
        elif frames:
            stacks[tuple(frames)] += 1
            frames = []
    return [(n, list(stack)) for stack, n in stacks.items()]


def perf_frame(path, known_id, segments, at):
    if path.startswith("[kernel") or at >> 47:
        return Frame("[kernel]", "", at, ("",))
    if not known_id and path != "[vdso]":
        path = "[anon]"
    for start, end, offset in segments:
        if offset <= at < offset + end - start:
            at += start - offset
            break
    return Frame(path, known_id or "", at, ("",))


def is_kernel(frame):
    return frame.path.startswith("[") and frame.path not in ("[vdso]", "[anon]", "[vsyscall]")


def is_marker(frame):
    return not frame.path and any(name.startswith("[") for name in frame.names)


class Chains:
    """A small automaton for the chains of a program (their grammar: unwind_corpus)."""

    def __init__(self, chains):
        self.chains = []
        self.named = set()
        for chain in chains:
            words = chain.split()
            if words[0] == "main":
                words.insert(0, "..")
            words = [w if w == ".." else (frozenset(w.rstrip("+").split("|")), w.endswith("+")) for w in words]
            self.chains.append(words)
            self.named |= set().union(*(w[0] for w in words if w != ".."))
        # Functions with which chains end: where the processor was in one, the whole chain is there;
        # or in whatever it called, where ".." follows.
        self.last = set().union(*(w[-1][0] for w in self.chains if w[-1] != ".."))
        self.last_of_its_own = set().union(*(w[-2][0] for w in self.chains if w[-1] == ".."))

    def is_at_end(self, names):
        """Whether the instruction pointer alone says that a chain is complete; names outermost first."""
        named = [name for name in names if name in self.named]
        return names[-1] in self.last or bool(named) and named[-1] in self.last_of_its_own

    def fits(self, names):
        """"complete", "begun" or None, of names outermost first."""
        best = None
        for words in self.chains:
            verdict = self.fits_one(words, names)
            if verdict == "complete":
                return verdict
            best = best or verdict
        return best

    def fits_one(self, words, names):
        states = {0}
        named = [i for i, name in enumerate(names) if name in self.named]
        last = named[-1] if named else -1
        for name in names[:last + 1]:
            states = self.after(words, states, name)
            if not states:
                return None
        left = {i for state in states for i in self.skip(words, state)}
        return "complete" if len(words) in left else "begun"

    @staticmethod
    def skip(words, state):
        """The states that are reached from this one without a further name."""
        yield state
        while state < len(words) and words[state] == "..":
            state += 1
            yield state

    def after(self, words, states, name):
        reached = set()
        for state in {i for s in states for i in self.skip(words, s)}:
            word = words[state] if state < len(words) else None
            if word == "..":
                if name not in self.named:
                    reached.add(state)
            elif word and name in word[0]:
                reached.add(state + 1)
            # Once more of what was just there.
            before = words[state - 1] if 0 < state <= len(words) else None
            if before and before != ".." and before[1] and name in before[0]:
                reached.add(state)
        return reached


class Verdict:
    """Counts of one program's samples."""

    def __init__(self):
        self.samples = self.whole = self.fit = self.no_user_half = 0
        self.late = 0  # left out: before the table of a file that was not there before the program's start
        self.in_between = 0  # left out: see INSTALLING and COPYING
        self.at_end = self.complete = 0  # of samples at the end of a chain: all; those with the whole chain
        self.cut = collections.Counter()
        self.misfits = collections.Counter()

    def share(self, part):
        return part / self.samples if self.samples else 0.0

    def share_complete(self):
        """Of the samples at the end of a chain."""
        return self.complete / self.at_end if self.at_end else 1.0

    def line(self, name):
        reasons = ", ".join(f"{n} {reason}" for reason, n in self.cut.most_common(3))
        return (f"{name:<18}{self.samples:>7} samples {self.share(self.whole):>8.2%} whole "
                f"{self.share(self.fit):>8.2%} in order, {self.complete} of {self.at_end} complete"
                f"{'; cut: ' + reasons if reasons else ''}")


def frame_name(files, frame):
    """As chains name it, or None for a function that none can name."""
    if frame.path == "[anon]" or "[anon]" in frame.names:
        return "[anon]"
    twin = files.twin(frame)
    return twin.name(frame.address) if twin else None


def shown(files, frame):
    if is_marker(frame):
        return frame.names[0]
    return frame_name(files, frame) or f"{os.path.basename(frame.path)}+{frame.address:#x}"


def why_not_whole(files, program, user):
    """None when the outermost frame is the start of a thread; what had to be guessed must say so."""
    if program.guesses and len(user) > 1 and user[-1].names[0] == GUESS:
        user = user[:-1]
    if is_marker(user[-1]):
        return user[-1].names[0]
    outermost = user[-1]
    name = frame_name(files, outermost)
    if name and GO_ROOTS.match(name):
        return None
    starts = files.starts_of(outermost)
    if not starts and os.path.isabs(outermost.path):
        return GONE
    if starts and starts.has(outermost.address):
        return None
    return f"ends in {shown(files, outermost)} without saying so"


def is_installing(user, why):
    library, cut = INSTALLING
    return why == cut and len(user) > 2 and all(os.path.basename(frame.path) == library for frame in user[:2])


def is_copying(frames, why):
    function, cut = COPYING
    return why == cut and any(function in frame.names for frame in frames if is_kernel(frame))


def musl_is_whole(files, chains, user):
    """musl has no unwind information: its caller of main, or of a start routine, is the end."""
    frames = [f for f in user if not is_marker(f)]
    named = [i for i, f in enumerate(frames) if frame_name(files, f) in chains.named]
    return not named or named[-1] < len(frames) - 1


def judge(files, program, stacks):
    chains = Chains(program.chains)
    verdict = Verdict()
    for samples, frames in stacks:
        user = [f for f in frames if not is_kernel(f)]
        if not user:
            verdict.no_user_half += samples
            continue
        why = why_not_whole(files, program, user)
        if program.late and why == NOT_LOADED:
            verdict.late += samples
            continue
        if is_installing(user, why) or is_copying(frames, why):
            verdict.in_between += samples
            continue
        verdict.samples += samples
        if why and program.root == "musl" and musl_is_whole(files, chains, user):
            why = None
        if why:
            verdict.cut[why] += samples
        else:
            verdict.whole += samples
        names = [frame_name(files, f) for f in reversed(user)]
        fit = chains.fits(names)
        verdict.fit += samples if fit else 0
        if chains.is_at_end(names):
            verdict.at_end += samples
            verdict.complete += samples if fit == "complete" else 0
        if not fit:
            verdict.misfits[";".join(shown(files, f) for f in reversed(user))] += samples
    return verdict
