# SPDX-License-Identifier: Apache-2.0
"""The store's peers, as libraries in this process: DuckDB and ClickHouse (chdb), from npm packages.

    store_peers.py duckdb|clickhouse CSV_DIR WORK_DIR THREADS [load | NAME...]
        prints JSON; "load": no queries; names: those alone, and rows without arrays

Each gets the rows of bench/peer_csv.h in the best schema that it can have: stacks, series and services are
dense numbers, sorted by (service, series, time, stack) or one row per report with arrays, whichever answers
faster; the dictionary of stacks is a table of nodes (stack, parent, frame), frames and labels have their own.
Times are the best of several runs in one process: no start of a process, no network, no names. "merge" and "one" ask
for a sum per stack; "table" and "one_table" for the ten frames with the largest own values, by number: nearer to what
`firn query --limit 10` answers, which has names, callers' values and reasons besides.
"""
import ctypes
import glob
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = os.environ.get("FIRN_BENCH_MODULES", os.path.join(HERE, "node_modules"))
ROUNDS = 7


def library(pattern):
    found = glob.glob(os.path.join(MODULES, pattern))
    if not found:
        sys.exit(f"store_peers: {pattern} is not installed; run npm ci in bench/")
    return ctypes.CDLL(found[0])


class DuckDB:
    """SQL in, rows of integers out."""

    class Result(ctypes.Structure):
        _fields_ = [("fields", ctypes.c_uint64 * 8)]

    def __init__(self, folder, threads):
        self.lib = library("@duckdb/node-bindings-linux-x64/libduckdb.so")
        self.file = os.path.join(folder, "peer.duckdb")
        self.lib.duckdb_value_int64.restype = ctypes.c_int64
        self.lib.duckdb_result_error.restype = ctypes.c_char_p
        for name in ("duckdb_row_count", "duckdb_column_count"):
            getattr(self.lib, name).restype = ctypes.c_uint64
        database, self.connection = ctypes.c_void_p(), ctypes.c_void_p()
        if self.lib.duckdb_open(self.file.encode(), ctypes.byref(database)):
            sys.exit("store_peers: cannot open DuckDB")
        self.lib.duckdb_connect(database, ctypes.byref(self.connection))
        self.run(f"set threads to {threads}")

    def run(self, sql):
        result = self.Result()
        if self.lib.duckdb_query(self.connection, sql.encode(), ctypes.byref(result)):
            sys.exit(f"store_peers: {sql}: {self.lib.duckdb_result_error(ctypes.byref(result)).decode()}")
        rows = self.lib.duckdb_row_count(ctypes.byref(result))
        columns = self.lib.duckdb_column_count(ctypes.byref(result))
        out = [[self.lib.duckdb_value_int64(ctypes.byref(result), ctypes.c_uint64(c), ctypes.c_uint64(r))
                for c in range(columns)] for r in range(min(rows, 10))]
        self.lib.duckdb_destroy_result(ctypes.byref(result))
        return out

    def load(self, csv, arrays):
        self.run(f"""create temp table staged as select * from read_csv('{csv}/rows.csv', header=false, columns={{
            report: 'uinteger', at_ms: 'bigint', series: 'uinteger', service: 'uinteger', stack: 'uinteger',
            value: 'bigint'}})""")
        self.run("""create table samples as select service, series, make_timestamp_ms(at_ms) as start, stack, value
            from staged order by service, series, start, stack""")
        self.run("checkpoint")
        self.rows_cpu_s = time.process_time()
        rows = self.bytes()
        if arrays:
            self.run("""create table reports as select service, series, make_timestamp_ms(any_value(at_ms)) as start,
                list(stack order by stack) as stacks, list(value order by stack) as "values",
                sum(value)::bigint as total
                from staged group by report, service, series order by service, series, start""")
            self.run("checkpoint")
        arrays = self.bytes() - rows
        self.run(f"""create table nodes as select * from read_csv('{csv}/nodes.csv', header=false, columns={{
            stack: 'uinteger', parent: 'uinteger', frame: 'uinteger'}})""")
        self.run("checkpoint")
        nodes = self.bytes() - rows - arrays
        self.run(f"""create table labels as select * from read_csv('{csv}/series.csv', header=false, columns={{
            series: 'uinteger', service: 'uinteger', name: 'varchar', "value": 'varchar'}}) order by name, "value" """)
        self.run("checkpoint")
        return {"rows": rows, "arrays": arrays, "nodes": nodes}

    def bytes(self):
        return self.run("select used_blocks * block_size from pragma_database_size()")[0][0]

    queries = {
        "merge": ["select count(*), sum(v) from (select stack, sum(value) v from samples group by stack)",
                  """select count(*), sum(v) from (select stack, sum(v) v from (select unnest(stacks) stack,
                  unnest("values") v from reports) group by stack)"""],
        "one": ["""select count(*), sum(v) from (select stack, sum(value) v from samples where service = 3
                group by stack)"""],
        "table": ["""select count(*), sum(v) from (select frame, sum(v) v from (select stack, sum(value) v from samples
                  group by stack) join nodes using (stack) group by frame order by 2 desc limit 10)"""],
        "one_table": ["""select count(*), sum(v) from (select frame, sum(v) v from (select stack, sum(value) v
                      from samples where service = 3 group by stack) join nodes using (stack) group by frame
                      order by 2 desc limit 10)"""],
        "series": ["""select count(*), sum(v) from (select series, time_bucket(interval 5 minutes, start) t,
                   sum(total) v from reports group by series, t)"""],
        "values": ["""select count(*), 0 from (select distinct "value" from labels where name = 'pod')"""],
    }


class ClickHouse:
    """SQL in, rows of integers out."""

    def __init__(self, folder, threads):
        self.lib = library("@chdb/lib-linux-x64-gnu/libchdb.so")
        for name in ("chdb_connect", "chdb_query", "chdb_result_buffer"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.chdb_result_error.restype = ctypes.c_char_p
        self.lib.chdb_result_length.restype = ctypes.c_size_t
        arguments = [b"clickhouse", f"--path={folder}/clickhouse".encode(), f"--max_threads={threads}".encode()]
        self.connection = self.lib.chdb_connect(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
        if not self.connection:
            sys.exit("store_peers: cannot open ClickHouse")
        self.connection = ctypes.c_void_p.from_address(self.connection)

    def run(self, sql):
        result = ctypes.c_void_p(self.lib.chdb_query(self.connection, sql.encode(), b"TSV"))
        error = self.lib.chdb_result_error(result)
        if error:
            sys.exit(f"store_peers: {sql}: {error.decode()}")
        length = self.lib.chdb_result_length(result)
        text = ctypes.string_at(self.lib.chdb_result_buffer(result), length).decode() if length else ""
        self.lib.chdb_destroy_query_result(result)
        return [[int(cell) for cell in line.split("\t")] for line in text.splitlines()[:10]]

    def load(self, csv, arrays):
        self.run("create database if not exists peer")
        file = f"""file('{csv}/rows.csv', 'CSV', 'report UInt32, at_ms Int64, series UInt32, service UInt32,
            stack UInt32, value Int64')"""
        self.run("""create table peer.samples (service UInt32 codec(ZSTD(1)), series UInt32 codec(ZSTD(1)),
            start DateTime64(3) codec(Delta(8), ZSTD(1)), stack UInt32 codec(Delta(4), ZSTD(1)),
            value Int64 codec(T64, ZSTD(1))) engine = MergeTree order by (service, series, start, stack)""")
        self.run(f"""insert into peer.samples select service, series, fromUnixTimestamp64Milli(at_ms), stack, value
            from {file}""")
        self.rows_cpu_s = time.process_time()
        self.run("""create table peer.reports (service UInt32 codec(ZSTD(1)), series UInt32 codec(ZSTD(1)),
            start DateTime64(3) codec(Delta(8), ZSTD(1)), stacks Array(UInt32) codec(ZSTD(1)),
            "values" Array(Int64) codec(T64, ZSTD(1)), total Int64 codec(T64, ZSTD(1)))
            engine = MergeTree order by (service, series, start)""")
        if arrays:
            self.run("""insert into peer.reports select service, series, start,
                arraySort(groupArray(stack)), arraySort((v, s) -> s, groupArray(value), groupArray(stack)), sum(value)
                from peer.samples group by service, series, start""")
        self.run("""create table peer.nodes (stack UInt32 codec(Delta(4), ZSTD(1)),
            parent UInt32 codec(Delta(4), ZSTD(1)), frame UInt32 codec(ZSTD(1))) engine = MergeTree order by stack""")
        self.run(f"""insert into peer.nodes select * from file('{csv}/nodes.csv', 'CSV',
            'stack UInt32, parent UInt32, frame UInt32')""")
        self.run("""create table peer.labels (series UInt32, service UInt32, name LowCardinality(String), value String)
            engine = MergeTree order by (name, value)""")
        self.run(f"""insert into peer.labels select * from file('{csv}/series.csv', 'CSV',
            'series UInt32, service UInt32, name String, value String')""")
        for table in ("samples", "reports", "nodes", "labels"):
            self.run(f"optimize table peer.{table} final")
        return {name: self.bytes(table) for name, table in (("rows", "samples"), ("arrays", "reports"),
                                                            ("nodes", "nodes"))}

    def bytes(self, table):
        return self.run(f"""select sum(data_compressed_bytes) from system.parts
            where database = 'peer' and table = '{table}' and active""")[0][0]

    queries = {
        "merge": ["select count(), sum(v) from (select stack, sum(value) v from peer.samples group by stack)",
                  """select count(), sum(v) from (select stack, sum(v) v from peer.reports
                  array join stacks as stack, "values" as v group by stack)"""],
        "one": ["""select count(), sum(v) from (select stack, sum(value) v from peer.samples where service = 3
                group by stack)""",
                """select count(), sum(v) from (select stack, sum(v) v from peer.reports
                array join stacks as stack, "values" as v where service = 3 group by stack)"""],
        "table": ["""select count(), sum(v) from (select frame, sum(v) v from (select stack, sum(value) v
                  from peer.samples group by stack) s join peer.nodes n on n.stack = s.stack group by frame
                  order by 2 desc limit 10)"""],
        "one_table": ["""select count(), sum(v) from (select frame, sum(v) v from (select stack, sum(value) v
                      from peer.samples where service = 3 group by stack) s join peer.nodes n on n.stack = s.stack
                      group by frame order by 2 desc limit 10)"""],
        "series": ["""select count(), sum(v) from (select series, toStartOfInterval(start, interval 5 minute) t,
                   sum(total) v from peer.reports group by series, t)"""],
        "values": ["select count(), 0 from (select distinct value from peer.labels where name = 'pod')"],
    }


def best(database, queries):
    seconds, answer = float("inf"), None
    for sql in queries:
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            answer = database.run(sql)[0]
            seconds = min(seconds, time.perf_counter() - begin)
    return {"s": seconds, "answer": answer}


def main():
    kind, csv, folder, threads = sys.argv[1:5]
    asked = [] if sys.argv[5:] == ["load"] else sys.argv[5:] or list(DuckDB.queries)
    database = {"duckdb": DuckDB, "clickhouse": ClickHouse}[kind](folder, threads)
    begin = time.process_time()
    of_rows = sys.argv[5:] not in ([], ["load"])
    out = {"bytes": database.load(csv, not of_rows)}
    out["rows_cpu_s"] = database.rows_cpu_s - begin  # of all threads, for the table of rows
    for name in asked:
        out[name] = best(database, database.queries[name][:1] if of_rows else database.queries[name])
    print(json.dumps(out), flush=True)
    os._exit(0)  # their threads need not be waited for


if __name__ == "__main__":
    main()
