/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups - distinct tuples of group-by values, with dense ids in the order of their appearance.
 *
 * Values are borrowed: they must live as long as the groups. `from_rows` marks the names whose
 * value comes from each row instead of the series (a template). `from_rows` and `series` (for
 * groups of one series each) are part of the identity.
 */
#ifndef FIRN_SERVER_QUERY_SELECT_GROUPS_H
#define FIRN_SERVER_QUERY_SELECT_GROUPS_H

#include "server/query/work.h"

struct groups_tuple {
	struct slice values[QUERY_GROUP_BY_MAX];
	uint32_t from_rows; /* bit i: name i */
	uint32_t series;    /* 0: of all */
};

struct groups {
	struct arena *arena;
	struct groups_tuple *list;
	size_t count, capacity;
	size_t names_count;
	struct idmap map;
};

void groups_init(struct groups *groups, struct work *work, size_t names_count);
void groups_clear(struct groups *groups); /* as after groups_init */

/* Finds or adds; IDMAP_NONE when over budget. */
uint32_t groups_intern(struct groups *groups, const struct groups_tuple *tuple);

#endif
