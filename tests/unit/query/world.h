/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world - small sets of tables for the tests of queries, written as text.
 *
 * Stacks are "main;run;work", root first; a frame may say more: "name@/path/of/binary:0xADDR".
 * Labels are "comm=nginx,pod=p1"; a value of digits after "#" is a number: "bytes=#64".
 */
#ifndef TESTS_UNIT_QUERY_WORLD_H
#define TESTS_UNIT_QUERY_WORLD_H

#include "server/query/query.h"

#define WORLD_VIEWS_MAX 8
#define WORLD_ON_CPU "on_cpu:samples:count:cpu:nanoseconds:delta"

struct world {
	struct tables tables[WORLD_VIEWS_MAX];
	struct tables_view views[WORLD_VIEWS_MAX];
	struct segment segments[WORLD_VIEWS_MAX];
	size_t views_count;
};

void world_init(struct world *world, size_t views_count);
void world_free(struct world *world);

/* The source over the tables as they are now. */
struct query_source world_source(struct world *world);

uint32_t world_labels(struct tables *tables, const char *labels);
uint32_t world_stack(struct tables *tables, const char *stack);

/* A series of one column; the type as in profile_type.h. */
uint32_t world_series(struct tables *tables, const char *type, int64_t period, const char *labels);

/* Begins a report; rows follow. */
void world_report(struct tables *tables, uint32_t series, int64_t start_ns, int64_t duration_ns);
void world_row(struct tables *tables, const char *stack, const char *labels, int64_t value);

/* Asks, and fails the test when that fails. `selector` is text. */
struct tree *world_tree(struct world *world, const char *selector, int64_t from_ns, int64_t to_ns);
struct tree *world_tree_by(struct world *world, const char *selector, int64_t from_ns,
			   int64_t to_ns, const char *group_by);

/* As world_tree with all that can be asked; `params->selector` is set here. Returns query_tree's.
 */
int world_ask(struct world *world, const char *selector, struct query_params *params,
	      struct tree **ret, struct err *err);

/* The folded stacks, lines sorted; free() it. */
char *world_folded(const struct tree *tree);

#endif
