/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column - the growable arrays that decoders fill. Zero-initialised is empty and valid; free(data)
 * ends it. `count = 0` empties it and keeps the memory for the next request.
 */
#ifndef FIRN_CODEC_WIRE_COLUMN_H
#define FIRN_CODEC_WIRE_COLUMN_H

#include <stdbool.h>
#include <stddef.h>

struct budget; /* base/budget.h */

#define COLUMN(type)                                                                               \
	struct {                                                                                   \
		type *data;                                                                        \
		size_t count, capacity;                                                            \
	}

/* What column_grow needs to know. */
struct column_growth {
	size_t count, more, element_bytes, elements_max;
	struct budget *budget; /* pays, before memory is asked for; NULL: nobody */
};

/* Resizes for `more` elements. NULL: they are not paid for. */
void *column_grow(void *data, size_t *capacity, const struct column_growth *growth);

/*
 * True if the column has, or now got, room for `wanted` elements (not 0) below `most`. A column
 * with a budget is freed by COLUMN_FREE.
 */
#define COLUMN_ROOM_PAID(column, payer, wanted, most)                                              \
	({                                                                                         \
		const struct column_growth growth_ = { (column)->count, wanted,                    \
						       sizeof(*(column)->data), most, payer };     \
		void *data_ = NULL;                                                                \
		if (growth_.count + growth_.more <= growth_.elements_max) {                        \
			data_ = (column)->data;                                                    \
			if ((column)->capacity - growth_.count < growth_.more)                     \
				data_ = column_grow(data_, &(column)->capacity, &growth_);         \
			if (data_)                                                                 \
				(column)->data = data_;                                            \
		}                                                                                  \
		data_ != NULL;                                                                     \
	})
#define COLUMN_ROOM(column, wanted, most) COLUMN_ROOM_PAID(column, NULL, wanted, most)

/* Empties the column and gives its memory back. */
#define COLUMN_FREE(column, payer)                                                                 \
	do {                                                                                       \
		budget_give(payer, (column)->capacity * sizeof(*(column)->data));                  \
		free((column)->data);                                                              \
		(column)->data = NULL;                                                             \
		(column)->count = (column)->capacity = 0;                                          \
	} while (0)

#endif
