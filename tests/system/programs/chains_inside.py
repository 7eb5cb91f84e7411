# SPDX-License-Identifier: Apache-2.0
"""What programs/chains.py runs in an interpreter of its own. The end is in seconds of CPU time."""
import time
import zlib


def inside_leaf():
    total = 0
    for i in range(40000):
        total += i * i
    return total


def inside(end):
    while time.process_time() < end:
        inside_leaf()


def inside_unlocked(end):
    while time.process_time() < end:
        zlib.compress(bytes(range(256)) * 4096, 9)
