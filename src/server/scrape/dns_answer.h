/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_answer - a DNS message (RFC 1035) as targets with the labels of Prometheus' discovery,
 * __meta_dns_*.
 */
#ifndef FIRN_SERVER_SCRAPE_DNS_ANSWER_H
#define FIRN_SERVER_SCRAPE_DNS_ANSWER_H

#include "config/discovery_config.h"
#include "server/scrape/found.h"

/*
 * Adds a target for each record of the configured type. `name` is what was asked for. ERR_INVALID
 * says what is wrong; then some may have been added.
 */
int dns_answer_read(struct slice message, const struct discovery_config *config, struct slice name,
		    struct found *into, struct err *err);

/* As <arpa/nameser.h> numbers them. */
unsigned dns_answer_type(enum discovery_record record);

#endif
