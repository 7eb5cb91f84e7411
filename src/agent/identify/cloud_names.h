/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloud_names - asks the cloud's metadata service which instance this host is: AWS (IMDSv2 only),
 * GCE, Azure. Off by default.
 *
 * A thread asks, with a second for each request, and ends when it has an answer, because an
 * instance does not change while it runs. Until then it asks again after 10 s, then 20, ... 10
 * minutes. cloud_names_find only takes a lock and never waits. Proxies and redirections are not
 * followed.
 */
#ifndef FIRN_AGENT_IDENTIFY_CLOUD_NAMES_H
#define FIRN_AGENT_IDENTIFY_CLOUD_NAMES_H

#include "agent/identify/cloud_answer.h"

struct cloud_names;

struct cloud_names_options {
	const char *provider; /* "aws", "gce", "azure", "auto" (the first that answers); "off" or
				 NULL */
	const char *address;  /* http://HOST[:PORT] of the service; NULL = the link-local one */
};

/* *ret is NULL when nothing is asked. ERR_INVALID names the option. */
int cloud_names_new(const struct cloud_names_options *options, struct cloud_names **ret,
		    struct err *err);
void cloud_names_free(struct cloud_names *names); /* accepts NULL */

/* Adds what is known; `names` may be NULL. Any thread. */
void cloud_names_find(struct cloud_names *names, struct meta_labels *ret);

/* Waits for the first round of requests, at most timeout_ns. */
void cloud_names_settle(struct cloud_names *names, int64_t timeout_ns);

#endif
