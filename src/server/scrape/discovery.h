/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery - finds targets: each configured discovery has a thread that periodically looks and
 * publishes all targets that it found, until it is stopped. After a failure the last targets stay.
 *
 * The configuration must live until discovery_stop has returned.
 */
#ifndef FIRN_SERVER_SCRAPE_DISCOVERY_H
#define FIRN_SERVER_SCRAPE_DISCOVERY_H

#include <stdatomic.h>

#include "base/lock.h"
#include "base/strbuf.h"
#include "config/discovery_config.h"
#include "remote/access/http_access.h"
#include "server/scrape/found.h"

#define DISCOVERY_BODY_BYTES_MAX ((uint64_t)32 << 20)

struct discovery {
	const struct discovery_config *config;
	struct found_filter filter;
	void (*changed)(void *context); /* something else was found; any thread */
	void *context;
	_Atomic bool stops;
	pthread_t thread;
	bool has_thread;
	struct lock lock; /* guards the rest */
	struct lock_condition wakes;
	struct found *found;
	uint64_t version;   /* of found; 0: nothing yet */
	struct err failure; /* why it failed last; an empty message: it did not */
	struct err refusal; /* likewise why what it found was refused */
};

/*
 * Begins with the targets of `before` (may be NULL), which looked in the same place. The filter is
 * called on the discovery's thread until discovery_stop has returned.
 */
struct discovery *discovery_start(const struct discovery_config *config,
				  const struct found_filter *filter, struct discovery *before,
				  void (*changed)(void *context), void *context);

/* True if both look in the same place. */
bool discovery_is_same(const struct discovery_config *a, const struct discovery_config *b);

void discovery_ask_to_stop(struct discovery *discovery); /* does not wait */
void discovery_stop(struct discovery *discovery);	 /* waits, and frees */

/* All that is known, shared, and its version. */
struct found *discovery_found(struct discovery *discovery, uint64_t *ret_version);
uint64_t discovery_version(struct discovery *discovery);
/* False: the last look was right. */
bool discovery_failure(struct discovery *discovery, struct err *ret);

/* Notes that there is no memory for its targets; NULL: there is (again). */
void discovery_refuse(struct discovery *discovery, const struct err *err);

/* For the modules, on the discovery's thread. */

struct found *discovery_new_found(struct discovery *discovery);
/*
 * Takes ownership; false: there is not enough memory, or it is to stop, so that not all was found,
 * and the previous targets stay.
 */
bool discovery_publish(struct discovery *discovery, struct found *found);
void discovery_fail(struct discovery *discovery, const struct err *err);
bool discovery_sleep(struct discovery *discovery, int64_t ns); /* false: it is to stop */

/*
 * http_access_get of a whole body, which ends when the discovery does, by the configured access
 * where the request has none. discovery_memory pays for it until discovery_forget_body, which is
 * called in any case; what `ret` held before is forgotten first.
 */
int discovery_get_body(struct discovery *discovery, const struct http_request *request,
		       struct strbuf *ret, struct err *err);
void discovery_forget_body(struct strbuf *body);

/* Bodies of them run until discovery->stops. */
void discover_file(struct discovery *discovery);
void discover_http(struct discovery *discovery);
void discover_consul(struct discovery *discovery);
void discover_dns(struct discovery *discovery);
void discover_docker(struct discovery *discovery);
void discover_kubernetes(struct discovery *discovery);

#endif
