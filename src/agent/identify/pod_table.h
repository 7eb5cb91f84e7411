/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_table - the pods of this node and their owners, from Kubernetes' API. Plain data of one
 * thread at a time.
 *
 * A list marks its pods; pod_table_end_list marks the others as gone. These stay until
 * pod_table_sweep.
 */
#ifndef FIRN_AGENT_IDENTIFY_POD_TABLE_H
#define FIRN_AGENT_IDENTIFY_POD_TABLE_H

#include <jansson.h>

#include "agent/identify/cgroup.h"
#include "agent/identify/meta_labels.h"

struct pod_table {
	struct pod *pods;
	size_t count, capacity;
	size_t bytes; /* of all their text */
	unsigned generation;
	uint64_t left_out;	  /* for want of room, ever */
	struct pod_owner *owners; /* that had to be asked for */
	size_t owners_count, owners_capacity;
};

void pod_table_free(struct pod_table *table);

/* Every object is told with the node's name: others' pods are not taken. */
void pod_table_begin_list(struct pod_table *table);
void pod_table_take(struct pod_table *table, const json_t *pod, bool is_there, struct slice node,
		    int64_t now_ns);
void pod_table_end_list(struct pod_table *table, bool is_whole, int64_t now_ns);
void pod_table_sweep(struct pod_table *table, int64_t before_ns); /* that have gone before then */
size_t pod_table_there(const struct pod_table *table);		  /* that have not gone */

/* Adds what is known of the container, and of its pod. */
void pod_table_find(const struct pod_table *table, const struct cgroup *cgroup,
		    struct meta_labels *ret);
/* True if nothing more is to be expected: its container, its pod and who owns that are known. */
bool pod_table_knows_all(const struct pod_table *table, struct slice pod_uid, struct slice id);

/*
 * The next owner to ask for at `now_ns`: true, and appends the path of its URL. Then pass the
 * server's answer: its metadata; NULL if it cannot be had (the names are used then); or that it is
 * to be asked for again later.
 */
bool pod_table_next_owner(const struct pod_table *table, int64_t now_ns, struct strbuf *ret_path);
void pod_table_answer_owner(struct pod_table *table, struct slice path, const json_t *metadata);
void pod_table_postpone_owner(struct pod_table *table, struct slice path, int64_t until_ns);

#endif
