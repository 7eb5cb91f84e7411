/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_senders - who has sent profiles of which service, and how new the newest is.
 *
 * An entry is a tenant, a service (model/service.h) and a user agent. At most SERVICE_SENDERS_MAX;
 * beyond it, the most recent half stays. Entries that are not UTF-8, or whose tenant's name is too
 * long, are not listed. Thread-safe.
 *
 * A file keeps them over restarts: a thread rewrites it a minute after a change, and when the
 * server ends. It is a JSON list of the members of struct service_sender; a damaged file is logged,
 * and replaced.
 */
#ifndef FIRN_SERVER_SERVE_API_SERVICE_SENDERS_H
#define FIRN_SERVER_SERVE_API_SERVICE_SENDERS_H

#include "model/tables.h"
#include "server/serve/tenant.h"

#define SERVICE_SENDERS_MAX 20000
#define SERVICE_SENDERS_TEXT_BYTES 128 /* of each text but the tenant; longer ones are cut */

#define SERVICE_SENDERS_FILE "senders.json" /* in a storage folder */

struct service_senders;

/* `path`: of the file, its folder is there; NULL = none. */
struct service_senders *service_senders_new(const char *path);
void service_senders_free(struct service_senders *senders); /* accepts NULL */

/* One batch that was stored. */
void service_senders_note(struct service_senders *senders, struct slice tenant, struct slice sender,
			  const struct tables_view *view);

struct service_sender {
	char tenant[TENANT_BYTES_MAX + 1];
	char service[SERVICE_SENDERS_TEXT_BYTES], sender[SERVICE_SENDERS_TEXT_BYTES];
	bool is_named;	    /* struct service */
	int64_t last_at_ns; /* wall clock, when something came */
	int64_t newest_ns;  /* start of the newest report */
};

/* Copies of the tenant's, by service, then the most recent first; the caller frees the array. */
struct service_sender *service_senders_list(struct service_senders *senders, struct slice tenant,
					    size_t *ret_count);

/* A service's name as it stands in the list. */
struct slice service_senders_name(struct slice service);

/*
 * Adds the senders of a file. ERR_INVALID and ERR_LIMIT say what is wrong with it; some of its
 * senders may have been added then.
 */
int service_senders_read(struct service_senders *senders, struct slice text, struct err *err);
void service_senders_write(struct service_senders *senders, struct strbuf *out);

/* 0 = there is no such file, or one that `service_senders_new` would take. */
int service_senders_check(const char *path, struct err *err);

/* Whether several services that somebody named have reports that start from `since_ns` on. */
bool service_senders_several(struct service_senders *senders, struct slice tenant,
			     int64_t since_ns);

#endif
