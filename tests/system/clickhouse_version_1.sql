-- SPDX-License-Identifier: Apache-2.0
-- Tables and rows as version 1 has them: six profiles, stored by a firn of that version.
CREATE TABLE IF NOT EXISTS firn_schema (
  version UInt32, at DateTime, by String
) ENGINE = ReplacingMergeTree ORDER BY version;
CREATE TABLE IF NOT EXISTS firn_report (
  tenant LowCardinality(String), type LowCardinality(String), service LowCardinality(String),
  start DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)), series UInt64 CODEC(ZSTD(1)),
  batch UInt64 CODEC(NONE), rank UInt8, keep UInt16 CODEC(ZSTD(1)),
  duration Int64 CODEC(T64, ZSTD(1)), dict UInt64 CODEC(ZSTD(1)),
  totals Array(Int64) CODEC(T64, ZSTD(1)), stacks Array(UInt32) CODEC(Delta(4), ZSTD(1)),
  vals Array(Int64) CODEC(T64, ZSTD(1)), lsets Array(UInt32) CODEC(ZSTD(1)),
  moment_rows Array(UInt32) CODEC(Delta(4), ZSTD(1)),
  moment_ticks Array(UInt32) CODEC(T64, ZSTD(1)),
  moment_links Array(FixedString(24)) CODEC(ZSTD(1))
) ENGINE = ReplacingMergeTree(rank) PARTITION BY (toDate(start), keep)
  ORDER BY (tenant, type, service, start, series, batch)
  TTL toDateTime(start) + toIntervalDay(keep)
  SETTINGS index_granularity = 512, ttl_only_drop_parts = 1, fsync_after_insert = 1;
CREATE TABLE IF NOT EXISTS firn_series (
  tenant LowCardinality(String), type LowCardinality(String), service LowCardinality(String),
  day Date, keep UInt16, series UInt64, labelled UInt8,
  names Array(LowCardinality(String)) CODEC(ZSTD(1)), vals Array(String) CODEC(ZSTD(1)),
  sample_types Array(LowCardinality(String)), sample_units Array(LowCardinality(String)),
  kinds Array(UInt8), period_type LowCardinality(String),
  period_unit LowCardinality(String), period Int64
) ENGINE = ReplacingMergeTree PARTITION BY (day, keep)
  ORDER BY (tenant, type, service, day, series, labelled)
  TTL toDateTime(day) + toIntervalDay(keep + 1)
  SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1;
CREATE TABLE IF NOT EXISTS firn_stack (
  tenant LowCardinality(String), service LowCardinality(String), day Date, keep UInt16,
  dict UInt64, flush UInt32, nodes Array(UInt32) CODEC(Delta(4), ZSTD(1)),
  parents Array(UInt32) CODEC(Delta(4), ZSTD(1)), frames Array(UInt32) CODEC(T64, ZSTD(1))
) ENGINE = ReplacingMergeTree PARTITION BY (day, keep)
  ORDER BY (tenant, service, day, dict, flush)
  TTL toDateTime(day) + toIntervalDay(keep + 1)
  SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1;
CREATE TABLE IF NOT EXISTS firn_frame (
  tenant LowCardinality(String), service LowCardinality(String), day Date, keep UInt16,
  dict UInt64, frame UInt32 CODEC(Delta, ZSTD(1)), kind UInt8, flags UInt8,
  address UInt64 CODEC(ZSTD(1)), mapping LowCardinality(String),
  build_id LowCardinality(String), function String CODEC(ZSTD(3)),
  system_name String CODEC(ZSTD(3)), file LowCardinality(String),
  line UInt32 CODEC(T64, ZSTD(1)), col UInt32 CODEC(T64, ZSTD(1)),
  start_line UInt32 CODEC(T64, ZSTD(1))
) ENGINE = ReplacingMergeTree PARTITION BY (day, keep)
  ORDER BY (tenant, service, day, dict, frame)
  TTL toDateTime(day) + toIntervalDay(keep + 1)
  SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1;
CREATE TABLE IF NOT EXISTS firn_label_set (
  tenant LowCardinality(String), service LowCardinality(String), day Date, keep UInt16,
  dict UInt64, lset UInt32, names Array(LowCardinality(String)), texts Array(String),
  units Array(LowCardinality(String)), numbers Array(Int64), numeric Array(UInt8)
) ENGINE = ReplacingMergeTree PARTITION BY (day, keep)
  ORDER BY (tenant, service, day, dict, lset)
  TTL toDateTime(day) + toIntervalDay(keep + 1)
  SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1;
CREATE TABLE IF NOT EXISTS firn_delete (
  number UInt64, tenant String, one_tenant UInt8, selector String, from_ns Int64,
  to_ns Int64, by String, created_ns Int64, done_ns Int64
) ENGINE = ReplacingMergeTree(done_ns) ORDER BY number
  SETTINGS fsync_after_insert = 1;
INSERT INTO firn_schema (`version`, `at`, `by`) VALUES (1, '2026-11-29 06:34:34', 'firn 0.1.0');
INSERT INTO firn_series (`tenant`, `type`, `service`, `day`, `keep`, `series`, `labelled`, `names`, `vals`, `sample_types`, `sample_units`, `kinds`, `period_type`, `period_unit`, `period`) VALUES ('', 'process_cpu', '', '2023-11-15', 20000, 6611366434983273243, 1, ['job','pod'], ['b','p1'], ['samples'], ['count'], [0], 'cpu', 'nanoseconds', 1000), ('', 'process_cpu', '', '2023-11-15', 20000, 4046623447767331633, 0, ['job','pod'], ['a','p1'], ['samples'], ['count'], [0], 'cpu', 'nanoseconds', 1000);
INSERT INTO firn_frame (`tenant`, `service`, `day`, `keep`, `dict`, `frame`, `kind`, `flags`, `address`, `mapping`, `build_id`, `function`, `system_name`, `file`, `line`, `col`, `start_line`) VALUES ('', '', '2023-11-15', 20000, 10931562848728235539, 9, 0, 0, 0, '', '', 'f3', '', 'f3.c', 2, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 10, 0, 0, 0, '', '', 'f4', '', 'f4.c', 4, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 11, 0, 0, 0, '', '', 'f1', '', 'f1.c', 5, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 12, 0, 0, 0, '', '', 'f2', '', 'f2.c', 2, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 13, 0, 0, 0, '', '', 'f4', '', 'f4.c', 3, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 14, 0, 0, 0, '', '', 'f0', '', 'f0.c', 4, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 15, 0, 0, 0, '', '', 'f3', '', 'f3.c', 6, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 0, 0, 0, 0, '', '', 'main', '', 'main.c', 1, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 1, 0, 0, 0, '', '', 'f4', '', 'f4.c', 2, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 2, 0, 0, 0, '', '', 'f2', '', 'f2.c', 3, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 3, 0, 0, 0, '', '', 'f3', '', 'f3.c', 4, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 4, 0, 0, 0, '', '', 'f0', '', 'f0.c', 5, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 5, 0, 0, 0, '', '', 'f1', '', 'f1.c', 6, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 6, 0, 0, 0, '', '', 'f0', '', 'f0.c', 3, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 7, 0, 0, 0, '', '', 'f2', '', 'f2.c', 4, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 8, 0, 0, 0, '', '', 'f3', '', 'f3.c', 5, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 16, 0, 0, 0, '', '', 'f1', '', 'f1.c', 2, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 17, 0, 0, 0, '', '', 'f4', '', 'f4.c', 5, 0, 0), ('', '', '2023-11-15', 20000, 10931562848728235539, 18, 0, 0, 0, '', '', 'f2', '', 'f2.c', 6, 0, 0);
INSERT INTO firn_stack (`tenant`, `service`, `day`, `keep`, `dict`, `flush`, `nodes`, `parents`, `frames`) VALUES ('', '', '2023-11-15', 20000, 10931562848728235539, 0, [1,2,3,4,5,6,7,8,9,10,11,12], [0,1,1,1,4,5,6,3,8,2,10,1], [0,1,2,3,1,4,1,1,5,1,3,5]), ('', '', '2023-11-15', 20000, 10931562848728235539, 1, [13,14,15,16,17,18,19,20], [1,13,14,15,1,17,18,1], [6,7,6,7,8,8,1,7]), ('', '', '2023-11-15', 20000, 10931562848728235539, 2, [21,22,23,24,25,26,27,28], [1,21,21,23,24,1,26,27], [9,2,10,2,10,10,11,2]), ('', '', '2023-11-15', 20000, 10931562848728235539, 3, [29,30], [13,29], [6,1]), ('', '', '2023-11-15', 20000, 10931562848728235539, 4, [31,32,33,34,35,36,37,38], [1,31,32,33,1,35,36,37], [12,13,12,13,14,11,15,12]), ('', '', '2023-11-15', 20000, 10931562848728235539, 5, [39,40,41,42,43,44,45,46,47,48,49,50,51,52], [1,39,39,4,42,43,1,45,46,47,45,49,50,13], [16,6,3,17,17,6,18,3,16,18,17,18,6,3]);
INSERT INTO firn_label_set (`tenant`, `service`, `day`, `keep`, `dict`, `lset`, `names`, `texts`, `units`, `numbers`, `numeric`) VALUES ('', '', '2023-11-15', 20000, 10931562848728235539, 2, ['span'], ['s1'], [''], [0], [0]), ('', '', '2023-11-15', 20000, 10931562848728235539, 3, ['span'], ['s2'], [''], [0], [0]);
INSERT INTO firn_report (`tenant`, `type`, `service`, `start`, `series`, `batch`, `rank`, `keep`, `duration`, `dict`, `totals`, `stacks`, `vals`, `lsets`, `moment_rows`, `moment_ticks`, `moment_links`) VALUES ('', 'process_cpu', '', '2023-11-15 00:00:00.000000000', 4046623447767331633, 7975320407931450942, 1, 20000, 10000000000, 10931562848728235539, [2765], [2,3,7,9,11,12], [558,938,14,197,407,651], [], [], [], []), ('', 'process_cpu', '', '2023-11-15 00:01:00.000000000', 6611366434983273243, 12068661314482115291, 1, 20000, 10000000000, 10931562848728235539, [3968], [2,1,1,16,19,20], [760,796,777,610,988,37], [2,3,0,2,2,0], [], [], []), ('', 'process_cpu', '', '2023-11-15 00:02:00.000000000', 4046623447767331633, 1604736287435717006, 1, 20000, 10000000000, 10931562848728235539, [3547], [21,22,25,28,1,27], [223,432,600,699,877,716], [], [], [], []), ('', 'process_cpu', '', '2023-11-15 00:03:00.000000000', 6611366434983273243, 5677431493731940292, 1, 20000, 10000000000, 10931562848728235539, [3030], [10,2,1,15,13,30], [107,292,494,919,438,780], [3,2,0,2,2,3], [], [], []), ('', 'process_cpu', '', '2023-11-15 00:04:00.000000000', 4046623447767331633, 15301950165620519392, 1, 20000, 10000000000, 10931562848728235539, [2267], [1,34,38], [1399,242,626], [], [], [], []), ('', 'process_cpu', '', '2023-11-15 00:05:00.000000000', 6611366434983273243, 3453043345933671509, 1, 20000, 10000000000, 10931562848728235539, [3254], [40,41,44,48,51,52], [322,472,997,265,594,604], [2,2,3,2,2,3], [], [], []);
