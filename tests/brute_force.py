# SPDX-License-Identifier: Apache-2.0
"""Answers of trees by brute force: raw samples in, one Python dictionary of stacks out.

Nothing here knows how firn does it: samples are a list, a query is a loop over it. Frames are names
(each its own function); labels are those of the series and, where the series lacks the name, of the sample.
"""
import re

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
        hit = have == wanted if operator in ("=", "!=") else re.fullmatch(wanted, have, re.S) is not None
        if hit != (operator in ("=", "=~")):
            return False
    return True


def condition(frame, operator, wanted):
    """Whether the name of a frame fulfils one condition."""
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
