# SPDX-License-Identifier: Apache-2.0
"""Answers of trees by brute force: raw samples in, one Python dictionary of stacks out.

Nothing here knows how firn does it: samples are a list, a query is a loop over it. Frames are names
(each its own function) that know where they were; labels are those of the series and, where the series lacks the name,
of the sample.
"""
import math
import re
from fractions import Fraction

NONE = "(none)"


class Frame(str):
    """A function's name; two are equal when their names are. `chain` are the names of what is inlined at its address,
    innermost first."""

    file, binary, build_id, address, line, chain = "", "", "", 0, 0, ()

    def place(self):
        return self.file, self.binary, self.build_id

    def field(self, name, wanted):
        """What a condition of filters looks at: a binary is known by its base name, or by its path."""
        if name == "binary":
            return self.binary if "/" in wanted else self.binary.rpartition("/")[2]
        return {"function": str(self), "system_name": str(self), "file": self.file, "kind": "native",
                "address": str(self.address), "line": str(self.line)}[name]


class Sample:
    """One row as it was sent."""

    def __init__(self, series, start_ns, labels, stack, value, report=None):
        self.series, self.start_ns, self.labels, self.stack, self.value = series, start_ns, labels, stack, value
        self.report = report  # what tells it from others of the same series and start

    def label(self, name):
        return self.series.get(name, "") or self.labels.get(name, "")


def matches(sample, matchers):
    for name, operator, wanted in matchers:
        have = sample.label(name)
        if not fits(have, operator, wanted):
            return False
    return True


def condition(frame, field, operator, wanted):
    """Whether a frame fulfils one condition; ==, ** and ^^ are =, *= and ^= in any case."""
    have = frame.field(field, wanted)
    if operator.lstrip("!") in ("==", "**", "^^"):
        have, wanted = have.lower(), wanted.lower()
        operator = operator.replace("==", "=").replace("**", "*=").replace("^^", "^=")
    base = operator.lstrip("!") if operator != "!=" else "="
    hit = {
        "=": lambda: have == wanted,
        "*=": lambda: wanted in have,
        "^=": lambda: have.startswith(wanted),
        "~": lambda: re.fullmatch(wanted, have, re.S) is not None,
        "=~": lambda: re.fullmatch(wanted, have, re.S) is not None,
    }[base]()
    return not hit if operator.startswith("!") else hit


def meets(stack, conditions):
    """A filter on stacks: what is not negated holds for one frame, what is for each."""
    each = [c for c in conditions if c[1].startswith("!")]
    one = [c for c in conditions if not c[1].startswith("!")]
    return (all(condition(frame, *c) for c in each for frame in stack)
            and (not one or any(all(condition(frame, *c) for c in one) for frame in stack)))


def apply_filters(stack, filters):
    """The stack (root first) as it is shown, or None when it is hidden. All look at the whole stack. A filter is an
    action and its conditions."""
    start, kept = 0, [True] * len(stack)
    for action, conditions in filters:
        holds = [all(condition(frame, *c) for c in conditions) for frame in stack]
        if action in ("show-stack", "hide-stack"):
            if meets(stack, conditions) != (action == "show-stack"):
                return None
        elif action == "show-from":
            if True not in holds:
                return None
            start = max(start, holds.index(True))
        else:
            kept = [k and hit == (action == "show-frame") for k, hit in zip(kept, holds)]
    return [frame for at, frame in enumerate(stack) if kept[at] and at >= start]


def tree(samples, query):
    """{stack as a tuple, root first: value}, and what filters hide."""
    shown, hidden = {}, 0
    for sample in in_range(samples, query):
        if not matches(sample, query["matchers"]):
            continue
        stack = apply_filters(sample.stack, query.get("filters", ()))
        if stack is None:
            hidden += sample.value
            continue
        if query.get("group_by"):
            stack = [",".join(sample.label(name) or NONE for name in query["group_by"])] + stack
        key = tuple(stack)
        shown[key] = shown.get(key, 0) + sample.value
    return {k: v for k, v in shown.items() if v}, hidden


def rounded(value):
    """Half away from zero."""
    return int(abs(value) + Fraction(1, 2)) * (1 if value >= 0 else -1)


def in_range(samples, query):
    """Also within some of the chosen cells, where there are any."""
    cells = query.get("cells") or [(query["from_ns"], query["to_ns"])]
    return [s for s in samples if query["from_ns"] <= s.start_ns < query["to_ns"]
            and any(begin <= s.start_ns < end for begin, end in cells)]


def deal(value, parts):
    """Whole parts [(exact, what orders equal remainders)] that add up to the whole value: each its floor, and those
    with the largest remainders one more."""
    wholes = [math.floor(exact) for exact, _ in parts]
    order = sorted((i for i, (exact, _) in enumerate(parts) if exact.denominator != 1),
                   key=lambda i: (wholes[i] - parts[i][0], parts[i][1]))
    for i in order[: value - sum(wholes)]:
        wholes[i] += 1
    return wholes


def deal_stacks(value, exact):
    """{stack: exact mean} as whole numbers that add up to the value, at each function too, from the root down. Equal
    remainders: a stack's own first, then functions in the order of their names' bytes."""
    own, below, result = exact.get((), None), {}, {}
    for stack, mean in exact.items():
        if stack:
            below.setdefault(stack[0], {})[stack[1:]] = mean
    parts = [] if own is None else [(own, b"")]
    parts += [(Fraction(sum(stacks.values())), b"\1" + name.encode()) for name, stacks in below.items()]
    wholes = deal(value, parts)
    if own is not None:
        result[()] = wholes.pop(0)
    for (name, stacks), whole in zip(below.items(), wholes):
        for stack, each in deal_stacks(whole, stacks).items():
            result[(name, *stack)] = each
    return result


def exact_means(samples, query):
    """Of gauges: of each series the mean of its reports, also of those without a row that matches; summed over series:
    {group and stack as one tuple: exact mean}."""
    reports, sums, exact = {}, {}, {}
    for sample in in_range(samples, query):
        series = tuple(sorted(sample.series.items()))
        reports.setdefault(series, set()).add(sample.report)
        if matches(sample, query["matchers"]):
            names = query.get("group_by", ())
            group = [",".join(sample.label(name) or NONE for name in names)] if names else []
            key = (series, tuple(group + list(sample.stack)))
            sums[key] = sums.get(key, 0) + sample.value
    for (series, stack), value in sums.items():
        exact[stack] = exact.get(stack, 0) + Fraction(value, len(reports[series]))
    return {stack: mean for stack, mean in exact.items() if mean}


def means(samples, query):
    """Of gauges, in whole numbers: the mean of what is shown is rounded once and dealt to the stacks; what filters hide
    is the rest of the mean of all."""
    exact, skip = exact_means(samples, query), len(query.get("group_by", ())) > 0
    kept, shown = {}, {}
    for stack in exact:
        cut = apply_filters(list(stack[skip:]), query.get("filters", ()))
        if cut is not None:
            kept[stack] = stack[:skip] + tuple(cut)
    total = rounded(sum(exact[stack] for stack in kept))
    for stack, value in deal_stacks(total, {stack: exact[stack] for stack in kept}).items():
        shown[kept[stack]] = shown.get(kept[stack], 0) + value
    return {k: v for k, v in shown.items() if v}, rounded(sum(exact.values())) - total


def invert(shown):
    """Each stack read from its leaf."""
    out = {}
    for stack, value in shown.items():
        key = tuple(reversed(stack))
        out[key] = out.get(key, 0) + value
    return out


def table(shown):
    """{name: (flat, cum)}, recursion counted once."""
    rows = {}
    for stack, value in shown.items():
        for name in set(stack):
            flat, cum = rows.get(name, (0, 0))
            rows[name] = (flat + (value if stack and stack[-1] == name else 0), cum + value)
    return rows


def stacks(samples, query):
    """[(stack, value)] as it is shown, each with the places of its own."""
    found = [(apply_filters(sample.stack, query.get("filters", ())), sample.value)
             for sample in in_range(samples, query) if matches(sample, query["matchers"])]
    return [(stack, value) for stack, value in found if stack is not None and value]


def lines(shown, function, file):
    """{place: [own, all, {line: [own, all]}]} of a function's lines, those in a file, or both, of [(stack, value)]. A
    file is meant by the end of its path, too."""
    found = {}
    for stack, value in shown:
        seen = set()
        for depth, frame in enumerate(stack, 1):
            if not frame.file or (function and frame != function) or (
                    file and frame.file != file and not frame.file.endswith("/" + file)):
                continue
            place = found.setdefault(frame.place(), [0, 0, {}])
            line = place[2].setdefault(frame.line, [0, 0])
            for entry, key in ((place, frame.place()), (line, (frame.place(), frame.line))):
                entry[1] += value * (key not in seen)
                entry[0] += value * (depth == len(stack))
                seen.add(key)
    return found


def addresses(shown, function):
    """{build id: [own, all, {address: [own, all]}]} of the code whose functions, inlined ones too, are that one."""
    found = {}
    for stack, value in shown:
        seen = set()
        for depth, frame in enumerate(stack, 1):
            if function not in frame.chain or not frame.build_id:
                continue
            part = found.setdefault(frame.build_id, [0, 0, {}])
            spot = part[2].setdefault(frame.address, [0, 0])
            for entry, key in ((part, frame.build_id), (spot, frame.address)):
                entry[1] += value * (key not in seen)
                entry[0] += value * (depth == len(stack))
                seen.add(key)
    return found


def call_graph(shown):
    """({function: (flat, cum)}, {(caller, callee): value}); each counts once on a path."""
    edges = {}
    for stack, value in shown.items():
        for edge in set(zip(stack, stack[1:])):
            edges[edge] = edges.get(edge, 0) + value
    return table(shown), edges


WHOLE_STEP_NS = 3600 * 10**9  # in multiples of it, reports count where they start


def shares(start_ns, duration_ns, value, step_ns):
    """{start of step: share of what was spent evenly}: differences of the floors of the running sum."""
    result, before, at = {}, 0, start_ns // step_ns * step_ns
    while at < start_ns + max(1, duration_ns):
        end = at + step_ns
        until = value if end >= start_ns + duration_ns else value * (end - start_ns) // duration_ns
        result[at], before, at = until - before, until, end
    return result


def series(samples, query, step_ns, duration_ns):
    """{label values: {start of step: value}}, of reports that all last as long. Steps without a value are left out."""
    reports, lines = {}, {}
    for sample in samples:
        if query["from_ns"] <= sample.start_ns < query["to_ns"] and matches(sample, query["matchers"]):
            key = tuple(sample.label(name) for name in query.get("group_by", ()))
            report = (key, sample.start_ns, tuple(sorted(sample.series.items())), sample.report)
            reports[report] = reports.get(report, 0) + sample.value
    for (key, start_ns, *_), value in reports.items():
        line = lines.setdefault(key, {})
        length = duration_ns if step_ns % WHOLE_STEP_NS else 0
        for at, share in shares(start_ns, length, value, step_ns).items():
            if share:
                line[at] = line.get(at, 0) + share
    return lines


def fits(have, operator, wanted):
    hit = have == wanted if operator in ("=", "!=") else re.fullmatch(wanted, have, re.S) is not None
    return hit == (operator in ("=", "=~"))


def events(samples, query):
    """{(label values, series, start, report): value}. Of a series whose own labels say on which line it is, each report
    counts, also when none of its rows match; where its rows say it, a report counts on the lines of those that do."""
    found, by_series = {}, {}
    for sample in in_range(samples, query):
        by_series.setdefault(tuple(sorted(sample.series.items())), []).append(sample)
    for series, mine in by_series.items():
        own, carried = dict(series), {name for sample in mine for name in sample.labels}
        said = [m for m in query["matchers"] if own.get(m[0]) or m[0] not in carried]
        if not all(fits(own.get(name, ""), operator, wanted) for name, operator, wanted in said):
            continue
        names = query.get("group_by", ())
        from_rows = any(not own.get(name) and name in carried for name in names)
        for sample in mine:
            is_in = matches(sample, query["matchers"])
            if is_in or not from_rows:
                key = (tuple(sample.label(n) if from_rows else own.get(n, "") for n in names),
                       series, sample.start_ns, sample.report)
                found[key] = found.get(key, 0) + sample.value * is_in
    return found


def gauge_series(samples, query, step_ns):
    """{label values: {start of step: value}} of gauges: per step and series the mean of its reports."""
    sums, counts, lines = {}, {}, {}
    for (line, series, start_ns, _), value in events(samples, query).items():
        key = (line, start_ns // step_ns * step_ns, series)
        sums[key] = sums.get(key, 0) + value
        counts[key] = counts.get(key, 0) + 1
    for (line, at, series), value in sums.items():
        into = lines.setdefault(line, {})
        into[at] = into.get(at, 0) + Fraction(value, counts[line, at, series])
    return {line: {at: rounded(v) for at, v in points.items()} for line, points in lines.items()}


def mean_series(samples, query, step_ns):
    """{label values: {start of step: mean of the reports that start in it}}"""
    sums, counts, lines = {}, {}, {}
    for (line, _, start_ns, _), value in events(samples, query).items():
        key = (line, start_ns // step_ns * step_ns)
        sums[key] = sums.get(key, 0) + value
        counts[key] = counts.get(key, 0) + 1
    for (line, at), value in sums.items():
        lines.setdefault(line, {})[at] = value / counts[line, at]
    return lines


def of_rows(samples, query):
    """As events, but a report counts where some of its rows match."""
    found = {}
    for sample in in_range(samples, query):
        if matches(sample, query["matchers"]):
            key = ((), tuple(sorted(sample.series.items())), sample.start_ns, sample.report)
            found[key] = found.get(key, 0) + sample.value
    return found


def heatmap(samples, query, cell_ns, is_gauge, asked_of):
    """{start of the cell: [value, reports]} of reports that count where they start; `asked_of`: events, or of_rows."""
    asked, cells = {**query, "group_by": ()}, {}
    for (_, _, start_ns, _), value in asked_of(samples, asked).items():
        cell = cells.setdefault(start_ns // cell_ns * cell_ns, [0, 0])
        cell[0] += value
        cell[1] += 1
    if is_gauge:
        for at, value in gauge_series(samples, asked, cell_ns).get((), {}).items():
            cells[at][0] = value
    return cells


def profiles(samples, query, span_label=None):
    """[(label values, start, mean, how many)] of the reports of each series, or of what each span has of them; those
    of one series (and span) in one second are so many of their mean."""
    names = query.get("group_by", ())
    asked = {**query, "group_by": (*names, span_label) if span_label else ()}
    found = {}
    for (line, series, start_ns, _), value in events(samples, asked).items():
        if span_label and not line[-1]:
            continue
        labels = line[:-1] if span_label else tuple(dict(series).get(name, "") for name in names)
        group = found.setdefault((labels, series, line, start_ns // 10**9), [start_ns, 0, 0])
        group[1] += value
        group[2] += 1
    return [(labels, start_ns, value / count, count) for (labels, *_), (start_ns, value, count) in found.items()]


SLOTS = 20


def slots(profiles, step_ns):
    """{label values: {start of the step: counts by size}}, in equal steps from the smallest to the largest of all."""
    values, lines = [value for _, _, value, _ in profiles], {}
    width = (max(values) - min(values)) / SLOTS if values else 0
    for labels, start_ns, value, count in profiles:
        line = lines.setdefault(labels, {}).setdefault(start_ns // step_ns * step_ns, [0] * SLOTS)
        line[min(SLOTS - 1, int((value - min(values)) / width)) if width > 0 else 0] += count
    return lines
