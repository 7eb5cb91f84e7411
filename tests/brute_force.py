# SPDX-License-Identifier: Apache-2.0
"""Answers of trees by brute force: raw samples in, one Python dictionary of stacks out.

Nothing here knows how firn does it: samples are a list, a query is a loop over it. Frames are names
(each its own function); labels are those of the series and, where the series lacks the name, of the sample.
"""
import math
import re
from fractions import Fraction

NONE = "(none)"


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


def condition(frame, operator, wanted):
    """Whether the name of a frame fulfils one condition; ==, ** and ^^ are =, *= and ^= in any case."""
    if operator.lstrip("!") in ("==", "**", "^^"):
        frame, wanted = frame.lower(), wanted.lower()
        operator = operator.replace("==", "=").replace("**", "*=").replace("^^", "^=")
    base = operator.lstrip("!") if operator != "!=" else "="
    hit = {
        "=": lambda: frame == wanted,
        "*=": lambda: wanted in frame,
        "^=": lambda: frame.startswith(wanted),
        "~": lambda: re.fullmatch(wanted, frame, re.S) is not None,
        "=~": lambda: re.fullmatch(wanted, frame, re.S) is not None,
    }[base]()
    return not hit if operator.startswith("!") else hit


def apply_filters(stack, filters):
    """The stack (root first) as it is shown, or None when it is hidden. All look at the whole stack."""
    start, kept = 0, [True] * len(stack)
    for action, operator, wanted in filters:
        holds = [condition(frame, operator, wanted) for frame in stack]
        if action in ("show-stack", "hide-stack"):
            met = all(holds) if operator.startswith("!") else any(holds)
            if met != (action == "show-stack"):
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
    for sample in samples:
        if not query["from_ns"] <= sample.start_ns < query["to_ns"] or not matches(
            sample, query["matchers"]
        ):
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
    return [s for s in samples if query["from_ns"] <= s.start_ns < query["to_ns"]]


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
