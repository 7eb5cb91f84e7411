/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/disk/persist_metrics.h"

#define COUNTER(object, name, labels, help) METRIC_COUNTER(object, name, labels, help);
#define GAUGE(object, name, labels, help) METRIC_GAUGE(object, name, labels, help);
STORE_COUNTERS(COUNTER)
STORE_GAUGES(GAUGE)

struct metric store_sync_seconds = { METRIC_TYPE_COUNTER,
				     "firn_store_wal_sync_seconds_total",
				     "",
				     "Time spent writing and syncing the log.",
				     1e-9,
				     0 };

struct metric store_compact_seconds = {
	METRIC_TYPE_COUNTER,
	"firn_store_compact_seconds_total",
	"",
	"Time spent in compactions, waiting for their turn included.",
	1e-9,
	0
};

#define ADDRESS(object, name, labels, help) &object,

void store_metrics_register(void)
{
	static struct metric *const all[] = { STORE_COUNTERS(ADDRESS) STORE_GAUGES(ADDRESS) &
						      store_compact_seconds,
					      &store_sync_seconds };

	metrics_register(all, sizeof(all) / sizeof(all[0]));
}
