/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow_stacks - a pprof from stacks that came in Arrow columns: locations are structs with
 * address, mapping_file, mapping_build_id, lines and so on, in Parca's names of both its versions.
 *
 * Strings, mappings, functions and locations are deduplicated by content. A location of a
 * dictionary is converted once. One thread.
 */
#ifndef FIRN_SERVER_SERVE_INTAKE_ARROW_STACKS_H
#define FIRN_SERVER_SERVE_INTAKE_ARROW_STACKS_H

#include "base/idmap.h"
#include "base/strbuf.h"
#include "codec/wire/arrow_read.h"

#define ARROW_STACK_DEPTH_MAX 1024 /* frames that are looked at; firn keeps fewer and says so */

/* Bytes that are known by number, from 0. */
struct arrow_texts {
	struct idmap map;
	struct slice *items;
	size_t count, capacity;
};

struct arrow_stacks {
	struct arena arena;
	struct arrow_texts strings, mappings, functions, locations;
	struct arrow_texts places; /* where locations stand in the columns: (array, row) */
	uint64_t *place_ids;	   /* their ids, likewise */
	size_t place_capacity;
	struct strbuf samples;	  /* fields 2 of Profile */
	struct strbuf text, line; /* scratch */
};

void arrow_stacks_init(struct arrow_stacks *stacks);
void arrow_stacks_free(struct arrow_stacks *stacks);

uint64_t arrow_stacks_string(struct arrow_stacks *stacks, struct slice text);

/* A sample: begin, labels, end. `items` are its locations, leaf first; NULL: nobody knows them. */
size_t arrow_stacks_begin(struct arrow_stacks *stacks, const struct arrow_array *items,
			  int64_t first, int64_t count, int64_t value);
void arrow_stacks_label(struct arrow_stacks *stacks, const char *key, struct slice text);
void arrow_stacks_label_number(struct arrow_stacks *stacks, const char *key, int64_t number);
void arrow_stacks_end(struct arrow_stacks *stacks, size_t begun);

/* The tables, behind what else the Profile has. */
void arrow_stacks_write(struct arrow_stacks *stacks, struct strbuf *out);

#endif
