# SPDX-License-Identifier: Apache-2.0
"""Programs with a known chain of calls, for python_test: `chains.py SHAPE SECONDS [GATE]`.

Each spends its time in its innermost function, on the lines that are marked; the seconds are of CPU time.
Runs on CPython from 3.6 on.
"""
import asyncio
import ctypes
import os
import re
import sys
import threading
import time
import zlib


def is_over():
    return time.process_time() > END


def hot_leaf():
    total = 0
    for i in range(40000):  # HOT
        total += i * i  # HOT
    return total


def by_key(value):
    hot_leaf()
    return value


def callbacks():
    """C code in between: sorting, and a regular expression's replacement."""
    while not is_over():
        re.sub("b", lambda match: str(sorted([3, 1, 2], key=by_key)), "abc")


def dive(depth):
    if depth:
        return dive(depth - 1)
    for _ in range(10):  # to go so deep costs some hosts as much as one call
        hot_leaf()
    return depth


def recursion():
    while not is_over():
        dive(300)


def inner_generator():
    while not is_over():
        yield hot_leaf()


def outer_generator():
    yield from inner_generator()


def generators():
    for _ in outer_generator():
        pass


async def inner_coroutine():
    return hot_leaf()


async def outer_coroutine():
    while not is_over():
        await inner_coroutine()
        await asyncio.sleep(0)


def coroutines():
    asyncio.new_event_loop().run_until_complete(outer_coroutine())


def in_thread():
    while not is_over():
        hot_leaf()


def threads():
    started = [threading.Thread(target=in_thread) for _ in range(2)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def compare(first, second):
    hot_leaf()
    return first[0] - second[0]


def foreign():
    """qsort of the C library calls back."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    called = kind(compare)
    library = ctypes.CDLL(None)
    while not is_over():
        library.qsort((ctypes.c_int * 3)(3, 1, 2), 3, ctypes.sizeof(ctypes.c_int), called)


def compress():
    zlib.compress(bytes(range(256)) * 4096, 9)  # HOT


def unlocked_by_key(value):
    compress()
    return value


def unlocked():
    """Code in C that gives up the interpreter's lock."""
    while not is_over():
        sorted([1, 2], key=unlocked_by_key)


made = []


def run_inside(function):
    """Runs a function of chains_inside in an interpreter of its own, by what each version has."""
    code = "import sys; sys.path.insert(0, {!r}); import chains_inside; chains_inside.{}({!r})".format(
        os.path.dirname(os.path.abspath(__file__)), function, END)
    if sys.version_info >= (3, 13):
        import _interpreters as interpreters
    elif sys.version_info >= (3, 8):
        import _xxsubinterpreters as interpreters
    else:
        import _testcapi
        return lambda: _testcapi.run_in_subinterp(code)
    made.append(interpreters.create())  # kept: it must not end in another thread
    return lambda: interpreters.run_string(made[-1], code)


def interpreter():
    run_inside("inside")()


def interpreter_thread():
    """One thread makes the interpreter, another one runs it."""
    thread = threading.Thread(target=run_inside("inside"))
    thread.start()
    thread.join()


def interpreter_unlocked():
    run_inside("inside_unlocked")()


def in_greenlet():
    while not is_over():
        hot_leaf()


def greenlets():
    import greenlet
    greenlet.greenlet(in_greenlet).switch()


class Größe:
    def 测量(self):
        while not is_over():
            hot_leaf()


def names():
    Größe().测量()


if len(sys.argv) > 3:
    with open(sys.argv[3]) as gate:
        gate.read()
END = time.process_time() + float(sys.argv[2])
globals()[sys.argv[1]]()
