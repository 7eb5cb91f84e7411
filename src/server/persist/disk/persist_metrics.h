/* SPDX-License-Identifier: Apache-2.0 */
/* persist_metrics - the metrics of the store: firn_store_* in /metrics. */
#ifndef FIRN_SERVER_PERSIST_DISK_PERSIST_METRICS_H
#define FIRN_SERVER_PERSIST_DISK_PERSIST_METRICS_H

#include "base/metrics.h"

/* object, name, labels, help */
#define STORE_COUNTERS(X)                                                                          \
	X(store_appends, "firn_store_appends_total", "", "Batches made durable.")                  \
	X(store_append_errors, "firn_store_append_errors_total", "",                               \
	  "Batches that were not acknowledged: no space, over a limit, read-only.")                \
	X(store_reports, "firn_store_reports_total", "{outcome=\"stored\"}",                       \
	  "Reports received, by what became of them.")                                             \
	X(store_reports_duplicate, "firn_store_reports_total", "{outcome=\"duplicate\"}", "")      \
	X(store_reports_late, "firn_store_reports_total", "{outcome=\"late\"}", "")                \
	X(store_reports_future, "firn_store_reports_total", "{outcome=\"future\"}", "")            \
	X(store_rows, "firn_store_rows_total", "", "Rows stored.")                                 \
	X(store_baseline_first, "firn_store_baseline_reports_total", "{outcome=\"first\"}",        \
	  "Reports with cumulative values that gave no delta.")                                    \
	X(store_baseline_late, "firn_store_baseline_reports_total", "{outcome=\"late\"}", "")      \
	X(store_forgotten_series, "firn_store_forgotten_total", "{what=\"baseline\"}",             \
	  "State given up because of its memory bound.")                                           \
	X(store_forgotten_reports, "firn_store_forgotten_total", "{what=\"dedupe\"}", "")          \
	X(store_wal_bytes_written, "firn_store_wal_written_bytes_total", "",                       \
	  "Bytes of batches written to the log.")                                                  \
	X(store_wal_groups, "firn_store_wal_groups_total", "",                                     \
	  "Writes to the log, each synced once for all batches in it.")                            \
	X(store_recovered, "firn_store_wal_recovered_records_total", "",                           \
	  "Batches read back from the log at start.")                                              \
	X(store_wal_damages, "firn_store_wal_damages_total", "",                                   \
	  "Places in the log where acknowledged bytes were damaged.")                              \
	X(store_wal_lost, "firn_store_wal_lost_records_total", "",                                 \
	  "Acknowledged batches that damage to the log took.")                                     \
	X(store_seals, "firn_store_seals_total", "", "Memtables that became parts.")               \
	X(store_seal_errors, "firn_store_seal_errors_total", "",                                   \
	  "Attempts to write a part that failed; they are repeated.")                              \
	X(store_parts_dropped, "firn_store_parts_dropped_total", "",                               \
	  "Parts dropped by retention.")                                                           \
	X(store_parts_damaged, "firn_store_parts_damaged_total", "",                               \
	  "Parts found damaged and set aside.")                                                    \
	X(store_compactions, "firn_store_compactions_total", "",                                   \
	  "Compactions: several parts that became one.")                                           \
	X(store_compact_errors, "firn_store_compact_errors_total", "",                             \
	  "Compactions that failed; they are repeated.")                                           \
	X(store_compact_read_bytes, "firn_store_compact_read_bytes_total", "",                     \
	  "Bytes of parts that compaction replaced.")                                              \
	X(store_compact_written_bytes, "firn_store_compact_written_bytes_total", "",               \
	  "Bytes of parts that compaction wrote.")                                                 \
	X(store_compact_rows, "firn_store_compact_rows_total", "",                                 \
	  "Rows of raw reports that compaction wrote.")                                            \
	X(store_deleted_reports, "firn_store_deleted_reports_total", "",                           \
	  "Reports that were deleted by selector and are gone from the disk.")                     \
	X(store_scrubbed_bytes, "firn_store_scrubbed_bytes_total", "",                             \
	  "Bytes of parts read in the background to see whether they are whole.")                  \
	X(store_bucket_uploads, "firn_store_bucket_uploads_total", "",                             \
	  "Parts put into the bucket.")                                                            \
	X(store_bucket_uploaded_bytes, "firn_store_bucket_uploaded_bytes_total", "",               \
	  "Bytes of parts put into the bucket.")                                                   \
	X(store_bucket_errors, "firn_store_bucket_errors_total", "",                               \
	  "Attempts to bring the bucket up to date that failed; they are repeated.")               \
	X(store_bucket_removed, "firn_store_bucket_removed_total", "",                             \
	  "Objects removed from the bucket that nothing names any more.")                          \
	X(store_object_reads, "firn_store_object_reads_total", "",                                 \
	  "Requests for bytes of parts in a bucket that queries read (--object-read).")            \
	X(store_object_read_bytes, "firn_store_object_read_bytes_total", "",                       \
	  "Bytes of parts fetched from a bucket.")                                                 \
	X(store_object_read_errors, "firn_store_object_read_errors_total", "",                     \
	  "Requests for bytes of parts that failed; answers say what they lack.")                  \
	X(store_object_cache_hits, "firn_store_object_cache_hits_total", "",                       \
	  "Reads of parts in a bucket that the local cache answered.")                             \
	X(store_follow_refreshes, "firn_store_follow_refreshes_total", "",                         \
	  "Looks at a bucket for a newer manifest.")                                               \
	X(store_follow_errors, "firn_store_follow_errors_total", "",                               \
	  "Looks at a bucket that failed; they are repeated.")                                     \
	X(store_cache_loads, "firn_store_cache_loads_total", "", "Parts read and decoded.")        \
	X(store_cache_evictions, "firn_store_cache_evictions_total", "",                           \
	  "Decoded parts given up for others.")

#define STORE_GAUGES(X)                                                                            \
	X(store_parts, "firn_store_parts", "", "Parts in use.")                                    \
	X(store_parts_quarantined, "firn_store_parts_quarantined", "",                             \
	  "Damaged parts that answers lack.")                                                      \
	X(store_poisoned, "firn_store_poisoned", "",                                               \
	  "1 after a failed write or sync: no appends until a restart.")                           \
	X(store_memtable_bytes, "firn_store_memtable_bytes", "", "Memory of the memtables.")       \
	X(store_wal_bytes, "firn_store_wal_bytes", "", "Bytes of log that are not in a part yet.") \
	X(store_part_bytes, "firn_store_part_bytes", "", "Bytes of parts on disk.")                \
	X(store_cache_bytes, "firn_store_cache_bytes", "", "Memory of decoded parts.")             \
	X(store_compact_running, "firn_store_compact_running", "",                                 \
	  "1 while parts are being compacted.")                                                    \
	X(store_compact_held_back, "firn_store_compact_held_back_parts", "",                       \
	  "Parts whose compaction failed; it is tried again later, the others go on.")             \
	X(store_tombstones, "firn_store_tombstones", "",                                           \
	  "Deletions by selector whose bytes are on the disk still.")                              \
	X(store_scrub_age_seconds, "firn_store_scrub_age_seconds", "",                             \
	  "Time since the part was checked that waits longest.")                                   \
	X(store_disk_free_bytes, "firn_store_disk_free_bytes", "",                                 \
	  "Bytes free on the disk of the store.")                                                  \
	X(store_disk_full, "firn_store_disk_full", "",                                             \
	  "1 while less is free than the reserve: profiles are refused.")                          \
	X(store_bucket_behind_seconds, "firn_store_bucket_behind_seconds", "",                     \
	  "Age of the oldest acknowledged report that is not in the bucket; 0: all are.")          \
	X(store_bucket_fenced, "firn_store_bucket_fenced", "",                                     \
	  "1 when another process writes this store's bucket: nothing is taken any more.")         \
	X(store_follow_behind_seconds, "firn_store_follow_behind_seconds", "",                     \
	  "Age of the time up to which a server with --object-read shows everything.")             \
	X(store_follow_looked_seconds, "firn_store_follow_looked_seconds", "",                     \
	  "Time since all buckets of --object-read were last looked at with success.")             \
	X(store_object_cache_bytes, "firn_store_object_cache_bytes", "",                           \
	  "Bytes of parts in a bucket that are kept on the local disk.")                           \
	X(store_in_flight_bytes, "firn_store_in_flight_bytes", "", "Batches that wait for the log.")

#define STORE_DECLARE(object, name, labels, help) extern struct metric object;
STORE_COUNTERS(STORE_DECLARE)
STORE_GAUGES(STORE_DECLARE)
#undef STORE_DECLARE

extern struct metric store_compact_seconds;
extern struct metric store_sync_seconds; /* in nanoseconds; groups are its count */

void store_metrics_register(void);

#endif
