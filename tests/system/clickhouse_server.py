#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""ClickHouse of today for tests: its engine as a library (npm's @chdb/lib-linux-x64-gnu) behind its HTTP interface.

    clickhouse_server.py FOLDER [PORT]      prints the port and serves until it is killed

A statement comes in the body, or in ?query= with rows in the body, as clients of ClickHouse send it. Settings of
the URL are set before each statement. Rows go through a file: the library stops reading inline data at an empty
line, which binary rows may hold. The library takes one statement at a time.
"""
import ctypes
import glob
import http.server
import os
import re
import sys
import tempfile
import threading
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Of the connection or the transport, not of a statement.
NOT_SETTINGS = {"query", "database", "default_format", "readonly", "wait_end_of_query", "user", "password", "query_id",
                "cancel_http_readonly_queries_on_client_close"}


def library():
    """The library's path, or None where it is not installed."""
    places = [os.environ.get("FIRN_CHDB", ""), os.path.join(ROOT, "tests/e2e/node_modules")]
    found = [path for place in places if place for path in glob.glob(os.path.join(place, "@chdb/*/libchdb.so"))]
    return found[0] if found else None


class Engine:
    def __init__(self, folder):
        self.silence = os.pipe()  # the library takes the first insert's rows from a standard input that is at its end
        os.dup2(self.silence[0], 0)
        self.lib = ctypes.CDLL(library())
        for name in ("chdb_connect", "chdb_query", "chdb_result_buffer"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.chdb_result_error.restype = ctypes.c_char_p
        self.lib.chdb_result_length.restype = ctypes.c_size_t
        arguments = [b"clickhouse", f"--path={folder}".encode(), b"--max_threads=2"]
        handle = self.lib.chdb_connect(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
        if not handle:
            sys.exit("clickhouse_server: the library does not open its folder")
        self.connection = ctypes.c_void_p.from_address(handle)
        self.lock = threading.Lock()
        self.begun = None

    def begin(self, asked):
        """Database and settings, unless they are those of the statement before."""
        settings = ", ".join(f"{name} = {value}" for name, value in asked.items() if name not in NOT_SETTINGS)
        begun = (asked.get("database", "default"), settings)
        if begun == self.begun:
            return b"", None
        self.begun = None
        rows, error = self.run(f"USE `{begun[0]}`")
        if settings and not error:
            rows, error = self.run("SET " + settings)
        if not error:
            self.begun = begun
        return rows, error

    def run(self, sql, form="TSV"):
        result = ctypes.c_void_p(self.lib.chdb_query(self.connection, sql.encode(), form.encode()))
        error = self.lib.chdb_result_error(result)
        length = 0 if error else self.lib.chdb_result_length(result)
        rows = ctypes.string_at(self.lib.chdb_result_buffer(result), length) if length else b""
        text = error.decode(errors="replace") if error else None
        self.lib.chdb_destroy_query_result(result)
        return rows, text


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together: else each answer waits for an acknowledgement of its head
    engine = None
    folder = None

    def log_message(self, *arguments):
        pass

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_GET(self):
        self.answer(200, b"Ok.\n")

    def do_POST(self):
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        sql = asked.get("query")
        file = None
        if sql is None:
            sql = body.decode()
        else:
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                file.write(body)
            sql = re.sub(r"\s+FORMAT\s+(\w+)\s*$", f" FROM INFILE '{file.name}' FORMAT \\1", sql)
        try:
            with self.engine.lock:
                rows, error = self.engine.begin(asked)
                if not error:
                    rows, error = self.engine.run(sql, asked.get("default_format", "TSV"))
        finally:
            if file:
                os.unlink(file.name)
        if error:
            code = re.search(r"Code: (\d+)", error)
            headers = [("X-ClickHouse-Exception-Code", code.group(1))] if code else []
            self.answer(500, error.encode(), headers)
        else:
            self.answer(200, rows)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # who asked is gone: no matter
            super().handle_error(request, client_address)


def main():
    folder = sys.argv[1]
    Handler.folder = os.path.join(folder, "rows")
    os.makedirs(Handler.folder, exist_ok=True)
    Handler.engine = Engine(os.path.join(folder, "data"))
    server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
