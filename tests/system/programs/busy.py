# SPDX-License-Identifier: Apache-2.0
"""Computes until it is killed."""


def heavy_loop(n):
    return sum(i % 7 for i in range(n))


def serve_request(n):
    return heavy_loop(n) + heavy_loop(n // 2)


while True:
    serve_request(10000)
