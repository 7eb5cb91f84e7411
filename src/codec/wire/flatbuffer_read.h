/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flatbuffer_read - a reader of untrusted FlatBuffers (flatbuffers.dev/internals): each offset,
 * vtable and length is checked before it is followed. A missing value, or one outside of the
 * buffer, reads as absent: the default, an empty vector, a table without fields. Pure functions,
 * any thread; results point into the buffer. There is no recursion: the caller's own depth bounds a
 * walk.
 */
#ifndef FIRN_CODEC_WIRE_FLATBUFFER_READ_H
#define FIRN_CODEC_WIRE_FLATBUFFER_READ_H

#include "base/slice.h"

struct flatbuffer_table {
	struct slice buffer;
	size_t at;     /* 0: there is no table */
	size_t vtable; /* where its entries begin */
	unsigned entries;
};

struct flatbuffer_table flatbuffer_root(struct slice buffer);

/* A number of 1, 2, 4 or 8 bytes, not extended. */
uint64_t flatbuffer_read(const struct flatbuffer_table *table, unsigned field, size_t bytes,
			 uint64_t otherwise);
struct flatbuffer_table flatbuffer_child(const struct flatbuffer_table *table, unsigned field);
struct slice flatbuffer_string(const struct flatbuffer_table *table, unsigned field);

/* A vector of structs or numbers of `width` bytes: its bytes, a multiple of the width. */
struct slice flatbuffer_vector(const struct flatbuffer_table *table, unsigned field, size_t width);

/* A vector of tables. */
size_t flatbuffer_tables(const struct flatbuffer_table *table, unsigned field);
struct flatbuffer_table flatbuffer_table_at(const struct flatbuffer_table *table, unsigned field,
					    size_t index);

#endif
