/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant_limits - the map "tenant_limits" of the web configuration: how much one tenant may use.
 *
 *   tenant_limits:
 *     "*":  { ingest_rows_per_second: 50000, concurrent_queries: 4 }
 *     acme: { active_series: 20000, query_range: 31d, retention: 15d }
 *
 * "*" has the limits of tenants without an entry, and of keys that an entry does not have. Plain
 * data; all text lives in the caller's arena.
 */
#ifndef FIRN_CONFIG_TENANT_LIMITS_H
#define FIRN_CONFIG_TENANT_LIMITS_H

#include "base/arena.h"
#include "config/document.h"

#define TENANT_LIMITS_TENANTS_MAX 10000u
#define TENANT_LIMITS_NAME_BYTES_MAX 150u
#define TENANT_LIMITS_NONE UINT64_MAX /* no limit */

struct tenant_limits {
	uint64_t ingest_rows_per_s, ingest_bytes_per_s; /* bytes: of requests, decompressed */
	uint64_t active_series, labels_per_series, concurrent_queries;
	uint64_t query_range_ns;
	uint64_t retention_ns; /* TENANT_LIMITS_NONE: as the store has it */
};

struct tenant_limits_row {
	struct slice tenant;
	struct tenant_limits limits;
};

struct tenant_limits_list {
	struct tenant_limits fallback;	/* for tenants that are not in the rows */
	struct tenant_limits_row *rows; /* by name */
	size_t count;
	bool is_given; /* the file has the map */
};

void tenant_limits_init(struct tenant_limits_list *list);

/* Reads the map. ERR_INVALID: "FILE:LINE: ...". */
int tenant_limits_take(struct document *document, const struct yaml_node_s *map,
		       struct arena *arena, struct tenant_limits_list *ret, struct err *err);

const struct tenant_limits *tenant_limits_find(const struct tenant_limits_list *list,
					       struct slice tenant);

/* True for a valid tenant name, as in Pyroscope, Mimir and Loki; "" is the tenant without a name.
 */
bool tenant_limits_is_name(struct slice name);

#endif
