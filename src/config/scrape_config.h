/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape_config - the file of --config-file: the targets that the server scrapes, in the format of
 * Parca's configuration, with Prometheus' `global` (docs/scraping.md).
 *
 * Plain data: only the file itself is opened. All text lives in the arena; the config owns the
 * relabelling rules.
 */
#ifndef FIRN_CONFIG_SCRAPE_CONFIG_H
#define FIRN_CONFIG_SCRAPE_CONFIG_H

#include "config/discovery_config.h"
#include "config/relabel.h"

#define SCRAPE_CONFIG_INTERVAL_NS (10 * CLOCK_NS_PER_S)
#define SCRAPE_CONFIG_MARGIN_NS (3 * CLOCK_NS_PER_S) /* timeout minus a delta profile's duration   \
						      */
#define SCRAPE_CONFIG_BODY_BYTES ((uint64_t)64 << 20)

struct scrape_sample_type {
	struct slice type, unit;
};

struct scrape_profile {
	struct slice name, path; /* the path with the job's prefix */
	bool enabled, delta;
	int64_t seconds;		 /* duration of a delta profile; after reading at least 1 */
	struct scrape_sample_type *kept; /* the sample types to store; none: all */
	size_t kept_count;
};

struct scrape_param {
	struct slice name;
	struct field_texts values;
};

struct scrape_job {
	struct slice name;
	size_t line;
	int64_t interval_ns, timeout_ns;
	struct slice scheme;
	struct scrape_param *params;
	size_t params_count;
	struct scrape_profile *profiles;
	size_t profiles_count;
	struct slice path_prefix;
	struct discovery_configs discoveries;
	struct relabel *relabel;
	struct http_access_config access;
	uint64_t body_bytes_max;
	bool keeps_addresses; /* normalized_addresses: no default port is added */
};

struct scrape_config {
	struct arena arena;
	char *path;
	int64_t interval_ns, timeout_ns; /* `global`; timeout 0: not given */
	struct field_pairs external_labels;
	uint64_t body_bytes_max;
	bool has_object_storage; /* the file has this key, which firn ignores */
	struct scrape_job *jobs;
	size_t jobs_count;
};

/* Errors are ERR_INVALID "FILE:LINE: ...", or the file cannot be read. */
int scrape_config_load(const char *path, struct scrape_config **ret, struct err *err);
/* The same of a text; `path` is for messages and relative paths. */
int scrape_config_parse(struct slice text, const char *path, struct scrape_config **ret,
			struct err *err);
void scrape_config_free(struct scrape_config *config); /* accepts NULL */

/* True if the file looks like a scrape configuration, and not like that of --web-config-file. */
bool scrape_config_is_meant(const char *path);

#endif
