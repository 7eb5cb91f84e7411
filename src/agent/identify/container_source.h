/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_source - one socket of a container runtime, which is asked about one container at a
 * time.
 *
 *   docker:PATH   the Engine API over HTTP/1.1 (Docker, Podman)
 *   cri:PATH      the container runtime interface, gRPC runtime.v1 (containerd, CRI-O)
 *
 * Blocks, CONTAINER_SOURCE_DEADLINE_NS at most for a container. Answers are bounded, and read by
 * engine_answer and cri_answer. A missing path is looked for in the root of process 1, because an
 * agent in a container may see the host's processes.
 *
 * One thread, but for container_source_cancel.
 */
#ifndef FIRN_AGENT_IDENTIFY_CONTAINER_SOURCE_H
#define FIRN_AGENT_IDENTIFY_CONTAINER_SOURCE_H

#include "agent/identify/cgroup.h"
#include "agent/identify/meta_labels.h"
#include "base/clock.h"

#define CONTAINER_SOURCE_DEADLINE_NS (2 * CLOCK_NS_PER_S)
#define CONTAINER_SOURCE_ANSWER_BYTES_MAX ((size_t)4 << 20)

struct container_source;

/* Where the runtimes have their sockets; NULL ends it. */
extern const char *const container_source_defaults[];

/* "docker:/run/docker.sock", or a path alone, whose name says which it is. ERR_INVALID. */
int container_source_new(const char *text, struct container_source **ret, struct err *err);
void container_source_free(struct container_source *source); /* accepts NULL */

const char *container_source_path(const struct container_source *source);

/* True if it may know containers of this runtime. */
bool container_source_knows(const struct container_source *source, enum cgroup_runtime runtime);

/*
 * 1: *ret has what it knows; 0: it knows no such container; ERR_NOT_FOUND: there is no such socket;
 * ERR_UNSUPPORTED: it serves something else; ERR_UNAVAILABLE, ERR_DEADLINE, ERR_INVALID, ERR_LIMIT.
 */
int container_source_ask(struct container_source *source, struct slice id, struct meta_labels *ret,
			 struct err *err);

/* A call under way ends soon, and no other begins. Any thread. */
void container_source_cancel(struct container_source *source);

#endif
