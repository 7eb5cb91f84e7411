/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery - where targets come from: each configured one has a thread that looks, waits and
 * publishes all that it has found, again and again, until it is stopped. What it found last stays
 * when it cannot look: a discovery that fails takes no target away.
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
#define DISCOVERY_MEMORY_BYTES_MAX ((int64_t)192 << 20) /* what reading one may take */

struct discovery {
	const struct discovery_config *config;
	void (*changed)(void *context); /* something else was found; any thread */
	void *context;
	_Atomic bool stops;
	pthread_t thread;
	bool has_thread;
	struct lock lock; /* guards the rest */
	struct lock_condition wakes;
	struct found *found;
	uint64_t version; /* of found; 0: nothing yet */
	bool has_failed;
	struct err err; /* why it failed last */
};

/* Begins with what `before` (may be NULL), which looked in the same place, has found. */
struct discovery *discovery_start(const struct discovery_config *config, struct discovery *before,
				  void (*changed)(void *context), void *context);

/* True if both look in the same place. */
bool discovery_is_same(const struct discovery_config *a, const struct discovery_config *b);

void discovery_ask_to_stop(struct discovery *discovery); /* does not wait */
void discovery_stop(struct discovery *discovery);	 /* waits, and frees */

/* Adds a copy of all that is known to `into`; returns its version. */
uint64_t discovery_copy(struct discovery *discovery, struct found *into);
uint64_t discovery_version(struct discovery *discovery);
/* False: the last look was right. */
bool discovery_failure(struct discovery *discovery, struct err *ret);

/* For the modules, on the discovery's thread. */

void discovery_publish(struct discovery *discovery, struct found *found); /* takes it over */
void discovery_fail(struct discovery *discovery, const struct err *err);
bool discovery_sleep(struct discovery *discovery, int64_t ns); /* false: it is to stop */

/*
 * http_access_get of a whole body, which ends when the discovery does, by the configured access
 * where the request has none.
 */
int discovery_get_body(struct discovery *discovery, const struct http_request *request,
		       struct strbuf *ret, struct err *err);

/* Bodies of them run until discovery->stops. */
void discover_file(struct discovery *discovery);
void discover_http(struct discovery *discovery);
void discover_consul(struct discovery *discovery);
void discover_dns(struct discovery *discovery);
void discover_docker(struct discovery *discovery);
void discover_kubernetes(struct discovery *discovery);

#endif
