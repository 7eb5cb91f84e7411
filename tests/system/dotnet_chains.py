# SPDX-License-Identifier: Apache-2.0
"""Judges samples of programs/Chains.cs, whose chains of calls are known, for the runtimes that run it."""
import collections
import os
import re

import harness
from harness import check, note

OTHERS = "*"  # methods that are not of the program
SOURCE = os.path.join(harness.ROOT, "tests", "system", "programs", "Chains.cs")

# What is called by what, from the shape's method on.
CHAINS = {
    "recursion": ["Recursion", *["Dive"] * 301, "Middle", "HotLeaf"],
    "virtual": ["Virtual", "Area", "Many", "<Virtual>m__0", "Middle", "HotLeaf"],
    "sorting": ["Sorting", OTHERS, "Compare", "Middle", "HotLeaf"],
    "callbacks": ["Callbacks", OTHERS, "CompareNative", "Middle", "HotLeaf"],
    "protected": ["Caught", "Catching", "Middle", "HotLeaf"],
    "threads": ["Body", "Middle", "HotLeaf"],
    "dynamic": ["Dynamic", "MadeHere", "Middle", "HotLeaf"],
}

# Of the samples that hold the leaf: lacking a method without saying so (none is expected); with all of the chain, in
# order; and the most that may say that something may be missing.
Bounds = collections.namedtuple("Bounds", "silent whole marked")


def named(samples):
    return [([frame.name for frame in stack], count) for stack, count in samples]


def own_methods(stack):
    """Those of the program, without what calls the shapes; OTHERS for each run of others."""
    methods = []
    for name in stack:
        own = re.fullmatch(r"Shapes[.](?:Chains|Round`1|Shape`1)[.](.*)|(?:dynamicClass|System[.]Object)[.](MadeHere)",
                           name)
        own = own and (own[1] or own[2])
        if own and own not in ("All", "For"):
            methods.append(own)
        elif methods and methods[-1] != OTHERS and not own:
            methods.append(OTHERS)
    return methods


def is_chain(methods, chain):
    """All of the chain in order, and nothing of the program but it."""
    if OTHERS not in chain:
        methods = [method for method in methods if method != OTHERS]
    elif methods and methods[-1] == OTHERS:
        methods = methods[:-1]  # the kernel
    return methods == chain


def is_marked(stack):
    return stack[0].startswith(("[truncated", "[guess"))


def judge(title, samples, least, chains, bounds, alike=None):
    """`least`: samples of each chain. `alike`: chains that are counted as another. The program's names."""
    alike = alike or {}
    counts, misfits = collections.Counter(), collections.Counter()
    leaves = dict.fromkeys(chains, 0)
    for stack, count in samples:
        if not any(name.startswith("Shapes.") for name in stack):
            continue
        counts["all"] += count
        if "Shapes.Chains.HotLeaf" not in stack:
            continue
        counts["leaf"] += count
        counts["marked"] += count * is_marked(stack)
        shape = next((shape for shape, chain in chains.items() if is_chain(own_methods(stack), chain)), None)
        counts["in order"] += count * (shape is not None)
        if shape:
            leaves[alike.get(shape, shape)] += count
        elif not is_marked(stack):
            counts["silent"] += count
            misfits[";".join(stack)[-1500:]] += count
    leaf = max(counts["leaf"], 1)
    shares = ", ".join(f"{counts[name] / leaf:.1%} {name}" for name in ("in order", "marked", "silent"))
    said = f"{title}: {counts['leaf']} of {counts['all']} samples hold the leaf, of those {shares}"
    note(said)
    evidence = "\n".join([said, str(leaves)] + [f"{n} {stack}" for stack, n in misfits.most_common(3)])
    found = {shape: n for shape, n in leaves.items() if shape not in alike and shape != "threads"}
    check(min(found.values()) >= least, f"{title}: each chain is found", evidence)
    check(counts["silent"] <= bounds.silent * leaf, f"{title}: what is not marked is whole, and in order", evidence)
    check(counts["in order"] >= bounds.whole * leaf, f"{title}: the whole chain, in order", evidence)
    check(counts["marked"] <= bounds.marked * leaf, f"{title}: marks go away once the code was read", evidence)
    return {name for stack, _ in samples for name in stack if name.startswith(("Shapes.", "StartupHook."))}
