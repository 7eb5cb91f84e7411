/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_map - names of the generated code of one process: sorted address ranges without overlaps.
 *
 * A map never changes once it is built, so one thread may look things up in it while another
 * builds its successor: the map before and everything that was added to a builder since, where
 * the newest wins for every address. Texts are kept once per map. Maps are counted references,
 * which any thread may take and drop; a builder belongs to one thread.
 *
 * Bounds: CODE_MAP_RANGES_MAX, CODE_MAP_TEXT_BYTES_MAX; what is over them is left out and counted.
 */
#ifndef FIRN_AGENT_JIT_CODE_MAP_H
#define FIRN_AGENT_JIT_CODE_MAP_H

#include <stdatomic.h>

#include "base/idmap.h"
#include "base/strbuf.h"

#define CODE_MAP_RANGES_MAX ((size_t)1 << 17)
#define CODE_MAP_TEXT_BYTES_MAX ((size_t)6 << 20)
#define CODE_MAP_ADDED_MAX ((size_t)1 << 15)		/* entries waiting in a builder */
#define CODE_MAP_ADDED_TEXT_BYTES_MAX ((size_t)2 << 20) /* their texts */

/* Where a function is: name, source file and first line; the latter two empty and 0 if unknown. */
struct code_place {
	struct slice name;
	struct slice file;
	uint32_t line;
};

struct code_range {
	uint64_t start;
	uint32_t bytes;
	uint32_t text; /* offset */
};

struct code_map {
	atomic_uint references;
	struct code_range *ranges;
	size_t count;
	struct strbuf texts;
};

struct code_map *code_map_ref(struct code_map *map); /* accepts and returns NULL */
void code_map_unref(struct code_map *map);	     /* accepts NULL */

/* Slices of the result live as long as the map. */
bool code_map_find(const struct code_map *map, uint64_t address, struct code_place *ret);

/* The same, of the address at which the range of a name begins. */
bool code_map_find_start(const struct code_map *map, uint64_t address, uint64_t *ret);

size_t code_map_bytes(const struct code_map *map); /* memory; 0 for NULL */

struct code_added {
	struct code_range range; /* its text is in the builder's texts */
	uint32_t newest;	 /* of all that begin there: kept at the first of them */
};

/* Zero-initialised is empty and valid. */
struct code_map_builder {
	struct code_added *added; /* oldest first */
	size_t count, capacity;
	struct idmap by_start;
	struct strbuf texts;
};

/* False when the builder is full: build a map, clear the builder, and add again. */
bool code_map_builder_add(struct code_map_builder *builder, uint64_t start, uint32_t bytes,
			  const struct code_place *place);

/* Finds the code that begins at `start`: the one added last, else the one in `base` (may be NULL).
 */
bool code_map_builder_find(const struct code_map_builder *builder, const struct code_map *base,
			   uint64_t start, struct code_place *ret);

/* Never NULL; *ret_dropped is the number of ranges for which there was no room. */
struct code_map *code_map_build(const struct code_map_builder *builder, const struct code_map *base,
				size_t *ret_dropped);

void code_map_builder_clear(struct code_map_builder *builder); /* keeps the memory */
void code_map_builder_free(struct code_map_builder *builder);  /* and leaves it empty */

#endif
