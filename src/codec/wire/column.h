/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column - the growable arrays that decoders fill. Zero-initialised is empty and valid; free(data)
 * ends it. `count = 0` empties it and keeps the memory for the next request.
 */
#ifndef FIRN_CODEC_WIRE_COLUMN_H
#define FIRN_CODEC_WIRE_COLUMN_H

#include <stdbool.h>
#include <stddef.h>

#define COLUMN(type)                                                                               \
	struct {                                                                                   \
		type *data;                                                                        \
		size_t count, capacity;                                                            \
	}

/*
 * Resizes for `more` elements beyond `count`; NULL when count has reached elements_max. A single
 * call may reserve past elements_max: whoever adds several at once checks the count afterwards.
 */
void *column_grow(void *data, size_t count, size_t *capacity, size_t more, size_t element_bytes,
		  size_t elements_max);

/* Whether the column has, or now got, room for `more` elements (not 0). */
#define COLUMN_ROOM(column, more, elements_max)                                                    \
	({                                                                                         \
		void *data_ = (column)->data;                                                      \
		if ((column)->capacity - (column)->count < (more)) {                               \
			data_ = column_grow(data_, (column)->count, &(column)->capacity, more,     \
					    sizeof(*(column)->data), elements_max);                \
			if (data_)                                                                 \
				(column)->data = data_;                                            \
		}                                                                                  \
		data_ != NULL;                                                                     \
	})

#endif
