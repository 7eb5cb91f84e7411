# SPDX-License-Identifier: Apache-2.0
"""Unwind rows of a file by readelf (binutils), and how they compare with `firn unwind-table`.

readelf prints each row of .eh_frame and .debug_frame as it interprets them; expressions it prints only
as "exp", so those are taken from its other dump, of the instructions.
"""
import bisect
import os
import re
import struct
import subprocess

import harness

PADDING = 15  # a gap of up to so many bytes belongs to the function before it
MACHINES = {62: ("rbp", "rsp"), 183: ("x29", "sp")}

_HEAD = re.compile(r"(?P<at>[0-9a-f]{8,}) [0-9a-f]+ (?:(?P<fde>[0-9a-f]+) FDE cie=(?P<cie>[0-9a-f]+) "
                   r"pc=(?P<start>[0-9a-f]+)\.\.(?P<end>[0-9a-f]+)|[0-9a-f]+ CIE (?:.*ra=(?P<ra>\d+))?)")
_TO = re.compile(r"  (?:DW_CFA_(?:advance_loc\w*|set_loc).*?) to ([0-9a-f]+)$|  DW_CFA_set_loc: ([0-9a-f]+)")
_EXPRESSION = re.compile(r"  DW_CFA_(def_cfa_expression|expression|val_expression)(?:: r(\d+) \(\w+\))? \((.*)\)$")
_REGISTER = re.compile(r"r\d+ \((\w+)\)")


def machine_of(path):
    """e_machine of a 64-bit little-endian program or library, else None."""
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return None
    if len(head) < 20 or head[:6] != b"\x7fELF\x02\x01" or head[16] not in (2, 3):
        return None
    return int.from_bytes(head[18:20], "little")


def _dump(what, path):
    # Lines of a file in an odd state may hold anything.
    process = subprocess.Popen(["readelf", f"--debug-dump={what}", path], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, errors="replace")
    with process:
        yield from (line.rstrip("\n") for line in process.stdout)


class Function:
    __slots__ = ("start", "end", "rows", "key")

    def __init__(self, start, end, key):
        self.start, self.end, self.key = start, end, key
        self.rows = []  # (address, cfa, ra, fp, sp)


class _Reader:
    """Takes the lines of `readelf --debug-dump=frames-interp` for one section after the other."""

    def __init__(self, fp, sp, return_column):
        self.names = ("CFA", "ra", fp, sp)
        self.return_column = return_column
        self.sections, self.functions, self.cies = {}, [], {}
        self.function = self.cie = self.places = None
        self.fields_count = 0

    def take_head(self, head):
        self.places = self.function = self.cie = None
        if not head["fde"]:
            # An entry with another return address is of no use for unwinding, and firn leaves it out.
            if head["ra"] == str(self.return_column):
                self.cie = int(head["at"], 16)
            return
        cie = int(head["cie"], 16)
        if cie in self.cies:
            self.function = Function(int(head["start"], 16), int(head["end"], 16), int(head["at"], 16))
            self.function.rows = [(self.function.start, *self.cies[cie])]
            self.functions.append(self.function)

    def take_fields(self, fields):
        if fields[0] == "LOC":
            self.places = [fields.index(name) if name in fields else None for name in self.names]
            self.fields_count = len(fields)
            if self.function:
                self.function.rows = []
            return
        if not self.places or len(fields) != self.fields_count or fields[1] == "ZERO":  # "ZERO terminator"
            return
        row = tuple(fields[place] if place is not None else "u" for place in self.places)
        if self.function:
            self.function.rows.append((int(fields[0], 16), *row))
        elif self.cie is not None:
            self.cies[self.cie] = row

    def take(self, line):
        if line.startswith("Contents of the "):
            self.functions = self.sections.setdefault(line.split()[3], [])
            self.cies, self.places = {}, None
        elif line:
            head = _HEAD.match(line)
            if head:
                self.take_head(head)
            else:
                self.take_fields(_REGISTER.sub(r"\1", line).split())


def read_functions(path, fp, sp):
    """By section, the functions with their rows."""
    reader = _Reader(fp, sp, 30 if sp == "sp" else 16)
    for line in _dump("frames-interp", path):
        reader.take(line)
    return reader.sections


def tidy(functions):
    """Sorted; the longest of those at one address; each ends where the next begins."""
    kept = []
    for function in sorted(functions, key=lambda f: (f.start, -(f.end - f.start), f.key)):
        if function.end <= function.start or not function.start:
            continue
        if kept and kept[-1].start == function.start:
            continue
        if kept and kept[-1].end > function.start:
            kept[-1].end = function.start
        kept.append(function)
    return kept


def evaluate(text, with_cfa):
    """What an expression as readelf prints it comes to, in the words of `firn unwind-table`; None: nothing."""
    stack = ["c+0"] if with_cfa else []
    text = text.strip()
    plt = re.fullmatch(r"DW_OP_breg7 \(rsp\): 8; DW_OP_breg16 \(rip\): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit(\d+); "
                       r"DW_OP_ge; DW_OP_lit3; DW_OP_shl; DW_OP_plus", text)
    if plt:
        return f"rsp+8+8*(pc%16>={plt[1]})"
    indexed = re.fullmatch(r"DW_OP_breg\d+ \((\w+)\): (-?\d+); DW_OP_breg\d+ \((\w+)\): (-?\d+); "
                           r"DW_OP_lit8; DW_OP_mul; DW_OP_plus; DW_OP_deref; DW_OP_plus_uconst: (\d+)", text)
    if indexed:
        base, offset, index, scaled, more = indexed.groups()
        return f"*({base}+8*{index}{int(offset) + 8 * int(scaled):+d}){int(more):+d}"
    for op in text.split("; "):
        number = re.search(r": (-?\d+)$", op)
        register = re.match(r"DW_OP_breg\d+ \((\w+)\): (-?\d+)$", op)
        if register:
            stack.append(f"{register[1]}{int(register[2]):+d}")
        elif op == "DW_OP_drop":
            stack.pop()
        elif op == "DW_OP_deref":
            if stack[-1].startswith("*"):
                return None
            stack.append(f"*({stack.pop()})")
        elif op.startswith("DW_OP_plus_uconst") and number:
            stack.append(_plus(stack.pop(), int(number[1])))
        else:
            return None
    return stack[-1] if stack else None


def _plus(text, number):
    if text.endswith(")"):
        return f"{text}{number:+d}"
    base, offset = re.fullmatch(r"(.*?)([+-]\d+)", text).groups()
    return f"{base}{int(offset) + number:+d}"


def read_expressions(path):
    """(function's offset in the section, register or "CFA") -> [(address, text)] by address."""
    found, key, address = {}, None, None
    for line in _dump("frames", path):
        head = _HEAD.match(line)
        if head:
            key = int(head["at"], 16) if head["fde"] else None
            address = int(head["start"], 16) if head["fde"] else None
            continue
        to = _TO.match(line)
        if to:
            address = int(to[1] or to[2], 16)
            continue
        expression = _EXPRESSION.match(line)
        if expression and key is not None:
            which = "CFA" if expression[1] == "def_cfa_expression" else int(expression[2])
            found.setdefault((key, which), []).append((address, expression[1], expression[3]))
    return found


class Expressions:
    """The expressions of a file, read when the first is asked for."""

    def __init__(self, path):
        self.path, self.found = path, None

    def text(self, key, which, address):
        """In firn's words; None where that cannot be said."""
        if self.found is None:
            self.found = read_expressions(self.path)
        rows = self.found.get((key, which), [])
        i = bisect.bisect_right([row[0] for row in rows], address) - 1
        if i < 0:
            return None
        value = evaluate(rows[i][2], which != "CFA")
        if value is None or which == "CFA":
            return value if value is None or not value.endswith(")") or value.endswith("))") or "pc%16" in value \
                else value + "+0"
        if rows[i][1] == "expression":  # the address of the value
            return value if value.startswith("c") else None if value.startswith("*") else f"*({value})"
        return value.replace("c", "v", 1) if value.startswith("c") else value


def read_table(path):
    """(rows [(address, words)], statistics) of `firn unwind-table --stats`; None: it refuses the file."""
    done = harness.run("unwind-table", "--stats", path, timeout=300)
    if done.returncode == 2:
        return None, done.stderr
    rows = []
    for line in done.stdout.splitlines():
        address, rest = line.split(" ", 1)
        rows.append((int(address, 16), rest))
    return rows, done.stderr


class Comparison:
    def __init__(self, path):
        self.path = path
        self.rows = self.unsupported = self.disagreements = self.table_rows = self.table_bytes = 0
        self.seconds = 0.0
        self.examples = []

    def disagree(self, address, want, got):
        self.disagreements += 1
        if len(self.examples) < 5:
            self.examples.append(f"{self.path} {address:x}: readelf {want} firn {got}")


def _value_agrees(want, got, which, address, function, expressions):
    """A value of readelf against one of firn: c-16, v+8, rdi, exp, vexp, u, s."""
    if want in ("u", "s"):
        return got in ("same", "u")
    if want in ("exp", "vexp"):
        return got == expressions.text(function.key, which, address)
    if want[0] in "cv" and len(want) > 1 and want[1] in "+-":
        return got == want
    return got == want + "+0"


def _agrees(row, words, function, expressions, numbers):
    address, cfa, ra, fp, sp = row
    if ra == "u" and (words == "end" or not numbers["is_arm64"]):  # there also: in the link register
        return words == "end"
    fields = dict(word.split("=", 1) for word in words.split() if "=" in word)
    if set(fields) != {"CFA", "RA", "FP"}:
        return False
    if sp not in ("u", "s"):  # the stack pointer takes the CFA's part
        if sp in ("exp", "vexp"):
            return _value_agrees(sp, fields["CFA"], numbers["sp"], address, function, expressions) or \
                fields["CFA"] == expressions.text(function.key, "CFA", address)
        return fields["CFA"] == sp + "+0" or sp.startswith(("c", "v"))
    want_cfa = expressions.text(function.key, "CFA", address) if cfa == "exp" else cfa
    if fields["CFA"] != want_cfa:
        return False
    return _value_agrees(ra, fields["RA"], numbers["ra"], address, function, expressions) and \
        _value_agrees(fp, fields["FP"], numbers["fp"], address, function, expressions)


def compare(path):
    """A Comparison, or None when firn refuses the file or has no business with it."""
    machine = machine_of(path)
    if machine not in MACHINES:
        return None
    fp, sp = MACHINES[machine]
    arm64 = machine == 183
    numbers = {"ra": 30 if arm64 else 16, "fp": 29 if arm64 else 6, "sp": 31 if arm64 else 7, "is_arm64": arm64}
    table, stats = read_table(path)
    if table is None:
        return None
    result = Comparison(path)
    result.table_rows = len(table)
    if not table:  # then nothing is known anywhere
        if not _has_code(path):  # a file of debug information alone
            return None
        table = [(0, "none")]
    result.seconds = float(re.search(r"cpu seconds: ([\d.]+)", stats)[1])
    result.table_bytes = int(re.search(r"bytes: (\d+)", stats)[1])
    sections = read_functions(path, fp, sp)
    functions = tidy(next((sections[name] for name in (".eh_frame", ".debug_frame") if sections.get(name)), []))
    # What Go says of its functions itself goes before what other sections say.
    has_go = "gopclntab=0" not in stats
    _check_functions(functions, table, has_go, Expressions(path), numbers, result)
    if not has_go:
        _check_gaps(functions, table, _entry(path), result)
    return result


def _check_functions(functions, table, has_go, expressions, numbers, result):
    addresses = [row[0] for row in table]
    entry = _entry(result.path)
    for function in functions:
        rows = [row for row in function.rows if row[0] < function.end]
        for row, after in zip(rows, [*rows[1:], (function.end,)]):
            if after[0] == row[0]:
                continue
            at = bisect.bisect_right(addresses, row[0]) - 1
            words = table[at][1] if at >= 0 else "none"
            result.rows += 1
            # Starts of programs, threads and coroutines, which firn knows by their code.
            if has_go or (words == "end" and (function.start <= entry < function.end or
                                              _is_start(result.path, function))):
                continue
            if "unsupported" in words:
                result.unsupported += 1
            elif not _agrees(row, words, function, expressions, numbers):
                result.disagree(row[0], row[1:], words)
            if at + 1 < len(table) and table[at + 1][0] < after[0] and \
                    not function.start <= entry < function.end:
                result.disagree(table[at + 1][0], ("no change here", *row), table[at + 1][1])


def _is_start(path, function):
    """glibc's __start_context."""
    if function.end - function.start != 26:
        return False
    with open(path, "rb") as file:
        return b"\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08\xe8" in file.read()


def _check_gaps(functions, table, entry, result):
    """Behind a function its last rule holds up to PADDING bytes, then nothing is known."""
    addresses = [row[0] for row in table]
    for function, after in zip(functions, functions[1:]):
        if after.start - function.end <= PADDING:
            continue
        words = table[bisect.bisect_right(addresses, function.end) - 1][1]
        stub = "pc%16" in words or words in ("CFA=rsp+8 RA=c-8 FP=same", "CFA=rsp+16 RA=c-8 FP=same",
                                             "CFA=sp+0 RA=same FP=same")
        if words != "none" and not stub and not function.end <= entry < after.start:
            result.disagree(function.end, "nothing", words)


def _entry(path):
    with open(path, "rb") as file:
        return int.from_bytes(file.read(32)[24:32], "little")


def _has_code(path):
    """Whether an executable segment has bytes in the file."""
    with open(path, "rb") as file:
        data = file.read(1 << 16)
    at, count = int.from_bytes(data[32:40], "little"), int.from_bytes(data[56:58], "little")
    for header in (data[at + 56 * i:at + 56 * (i + 1)] for i in range(count)):
        kind, flags, _, _, _, size = struct.unpack_from("<IIQQQQ", header.ljust(56, b"\0"))
        if kind == 1 and flags & 1 and size:
            return True
    return False


def elf_files(*folders):
    """Paths of programs and libraries, each file once, sorted."""
    seen, paths = set(), []
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(root, name)
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                stat = os.stat(path)
                if (stat.st_dev, stat.st_ino) in seen or machine_of(path) not in MACHINES:
                    continue
                seen.add((stat.st_dev, stat.st_ino))
                paths.append(path)
    return sorted(paths)


def _words_of_value(value, which, address, function, expressions):
    if value in ("u", "s"):
        return "same"
    if value in ("exp", "vexp"):
        return expressions.text(function.key, which, address) or "unsupported"
    return value if re.match(r"[cv][+-]", value) else value + "+0"


def words_of_file(path):
    """The lines that `firn unwind-table` should print, for files where readelf's "u" means unchanged."""
    fp, sp = MACHINES[machine_of(path)]
    arm64 = sp == "sp"
    functions = tidy(next(found for found in read_functions(path, fp, sp).values() if found))
    expressions, lines, last, end = Expressions(path), [], "none", None
    for function in functions:
        if end is not None and function.start - end > PADDING:
            lines.append((end, "none"))
        for address, cfa, ra, fp_value, sp_value in function.rows:
            if cfa == "exp":
                cfa = expressions.text(function.key, "CFA", address)
            if sp_value not in ("u", "s", "exp"):
                cfa = sp_value + "+0"
            words = f"CFA={cfa} RA={_words_of_value(ra, 30 if arm64 else 16, address, function, expressions)} " \
                f"FP={_words_of_value(fp_value, 29 if arm64 else 6, address, function, expressions)}"
            if ra == "u" and not arm64:
                words = "end"
            lines.append((address, "unsupported" if cfa is None else words))
        end = function.end
    lines.append((end, "none"))
    merged = []
    for i, (address, words) in enumerate(lines):
        if words != last and not (i + 1 < len(lines) and lines[i + 1][0] == address):
            merged.append(f"{address:016x} {words}")
            last = words
    return merged
