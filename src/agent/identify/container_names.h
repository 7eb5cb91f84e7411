/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_names - cached metadata of the containers of this host, and the threads that fetch it.
 *
 * Each socket has a thread, started when a container that it may know is first wanted. All these
 * sockets are asked when a container is first seen; the first answer is used, and refreshed every
 * five minutes while the container is seen. Answers are kept for ten minutes after the container
 * was last seen, so that its last samples have names.
 *
 * A socket that hangs, closes or gives malformed answers is skipped for a while (1 s, doubling to
 * 60 s). A missing socket is looked for every ten seconds.
 *
 * container_names_want and _find only take a lock and never wait for a socket; they are for one
 * thread. Limits: CONTAINER_NAMES_MAX containers, 32 KiB of text each (meta_labels.h).
 */
#ifndef FIRN_AGENT_IDENTIFY_CONTAINER_NAMES_H
#define FIRN_AGENT_IDENTIFY_CONTAINER_NAMES_H

#include "agent/identify/container_source.h"

#define CONTAINER_NAMES_MAX 4096
#define CONTAINER_NAMES_SOURCES_MAX 16
#define CONTAINER_ID_BYTES_MAX 128

struct container_names;

/* `sources`: see container_source_new; NULL = the defaults. Starts no thread yet. */
int container_names_new(const char *const *sources, size_t count, struct container_names **ret,
			struct err *err);
void container_names_free(struct container_names *names); /* ends the threads; accepts NULL */

/* This container is seen now. */
void container_names_want(struct container_names *names, struct slice id,
			  enum cgroup_runtime runtime, int64_t now_ns);

/*
 * Adds what is known of it, and true; false when nothing is.
 */
bool container_names_find(struct container_names *names, struct slice id, struct meta_labels *ret);

/* True if an answer about a new container may come soon: at most as long as a request may take. */
bool container_names_is_pending(struct container_names *names, int64_t now_ns);

/* Waits for those, no longer than told. */
void container_names_settle(struct container_names *names, int64_t timeout_ns);

/* Forgets those that were not seen for long. */
void container_names_sweep(struct container_names *names, int64_t now_ns);

void container_names_metrics_register(void); /* once per process */

#endif
