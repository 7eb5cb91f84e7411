# SPDX-License-Identifier: Apache-2.0
"""What /proc says of processes that may end at any moment."""
import glob


def status(pid):
    """The lines of its status, {name: value}; an OSError when it has ended."""
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as text:
        return dict(line.rstrip("\n").split(":\t", 1) for line in text if ":\t" in line)


def children_of(pid):
    """The processes that its threads have started; none when it has ended."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="utf-8") as text:
                found += map(int, text.read().split())
        except OSError:
            pass
    return found


def family(pid):
    """The process and its descendants."""
    return [pid, *(member for child in children_of(pid) for member in family(child))]
