/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consul_answer - converts answers of Consul's HTTP API (catalog/services and health/service/NAME,
 * JSON) to targets with the labels of Prometheus' discovery, __meta_consul_*.
 */
#ifndef FIRN_SERVER_SCRAPE_CONSUL_ANSWER_H
#define FIRN_SERVER_SCRAPE_CONSUL_ANSWER_H

#include "base/strbuf.h"
#include "config/discovery_config.h"
#include "server/scrape/found.h"

/*
 * Names of the wanted services, one by one, to `take`; a service is wanted when the configuration
 * names it (or none) and it has all tags. What `take` returns ends it. ERR_INVALID says what is
 * wrong.
 */
int consul_answer_services(struct slice answer, const struct discovery_config *config,
			   int (*take)(void *context, struct slice name, struct err *err),
			   void *context, struct err *err);

/* The instances of one service, added to `into`. */
int consul_answer_instances(struct slice answer, const struct discovery_config *config,
			    struct slice service, struct slice datacenter, struct found *into,
			    struct err *err);

/* agent/self: which data centre this is. */
int consul_answer_datacenter(struct slice answer, struct strbuf *ret, struct err *err);

#endif
