# SPDX-License-Identifier: Apache-2.0
"""Servers of others for tests: all their processes run in the foreground of the test, and end with it."""


class Foreground:
    """What `with` starts, by start_all(), and ends, by stop(): also when it cannot be started whole."""

    def __enter__(self):
        try:
            self.start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
