/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flatbuffer - a writer of FlatBuffers (flatbuffers.dev/internals), for the heads of Arrow's
 * messages. Built from the back to the front: what is referred to is written first. Positions
 * count from the end of the buffer. Vtables are not shared.
 */
#ifndef FIRN_CODEC_WIRE_FLATBUFFER_H
#define FIRN_CODEC_WIRE_FLATBUFFER_H

#include "base/strbuf.h"

#define FLATBUFFER_FIELDS_MAX 16

struct flatbuffer {
	uint8_t *bytes; /* the last `len` of `capacity` are used */
	size_t len, capacity;
	/* The table being built. */
	size_t table_begun;
	uint32_t fields[FLATBUFFER_FIELDS_MAX]; /* positions; 0 = absent */
	unsigned fields_count;
};

void flatbuffer_free(struct flatbuffer *buffer);

uint32_t flatbuffer_text(struct flatbuffer *buffer, const char *text);
/* A vector of positions of tables or texts. */
uint32_t flatbuffer_positions(struct flatbuffer *buffer, const uint32_t *positions, size_t count);
/* A vector of structs of 64-bit numbers, `width` to a struct. */
uint32_t flatbuffer_structs(struct flatbuffer *buffer, const int64_t *numbers, size_t count,
			    size_t width);

/* A table: begin, fields in any order, end. Numbers have `bytes` 1, 2, 4 or 8. */
void flatbuffer_begin(struct flatbuffer *buffer);
void flatbuffer_number(struct flatbuffer *buffer, unsigned field, uint64_t value, size_t bytes);
void flatbuffer_refer(struct flatbuffer *buffer, unsigned field, uint32_t position);
uint32_t flatbuffer_end(struct flatbuffer *buffer);

/* Appends the whole, whose root is the table at `root`, to `out`. */
void flatbuffer_finish(struct flatbuffer *buffer, uint32_t root, struct strbuf *out);

#endif
