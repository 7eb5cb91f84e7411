/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_int - what otlp.c (dialects since 1.8) and otlp_old.c (1.5 and 1.7) share: a decoder and
 * its steps. Each step reads one message and adds it to its column. Not for others.
 */
#ifndef FIRN_CODEC_PROFILE_OTLP_INT_H
#define FIRN_CODEC_PROFILE_OTLP_INT_H

#include "codec/profile/otlp.h"
#include "codec/wire/pb.h"

struct otlp_layout; /* otlp.c */

struct otlp_decoder {
	struct otlp *request;
	const struct otlp_layout *layout;
	size_t elements_max;		  /* of each column, */
	size_t samples_max, profiles_max; /* but for these */
	size_t moves_left;		  /* numbers that a run may have moved */
	struct budget *budget;		  /* the struct's */
	const uint8_t *plain_end;	  /* before it, PB_PLAIN_BYTES can be read */
	struct err *err;
};

MUST_USE int otlp_fail_limit(struct otlp_decoder *decoder, size_t elements_max);
MUST_USE int otlp_fail_memory(struct otlp_decoder *decoder, size_t bytes);

/* Whether the column has (or now got) room for one more; says so in `err` when it has none. */
#define OTLP_ROOM_UP_TO(decoder, column, most)                                                     \
	(COLUMN_ROOM_PAID(column, (decoder)->budget, 1, most) ||                                   \
	 ((column)->count >= (most) ? otlp_fail_limit(decoder, most)                               \
				    : otlp_fail_memory(decoder, sizeof(*(column)->data))) == 0)
#define OTLP_ROOM(decoder, column) OTLP_ROOM_UP_TO(decoder, column, (decoder)->elements_max)

MUST_USE int otlp_end_of(struct otlp_decoder *decoder, const struct pb_reader *in,
			 const struct pb_shape *shape);

/* A repeated number, packed (varints) or not; all of one field go to one run. */
MUST_USE int otlp_add_numbers(struct otlp_decoder *decoder, const struct pb_reader *in,
			      const struct pb_field *field, struct otlp_run *run);

MUST_USE int otlp_decode_value_type(struct otlp_decoder *decoder, struct pb_reader in,
				    struct otlp_value_type *ret);
MUST_USE int otlp_add_mapping(struct otlp_decoder *decoder, struct pb_reader in);
MUST_USE int otlp_add_line(struct otlp_decoder *decoder, struct pb_reader in);
MUST_USE int otlp_add_function(struct otlp_decoder *decoder, struct pb_reader in);
MUST_USE int otlp_add_link(struct otlp_decoder *decoder, struct pb_reader in);
MUST_USE int otlp_add_string(struct otlp_decoder *decoder, struct slice text);

/* otlp_old.c: Profile, and the dictionary of 1.7, of the dialects before 1.8. */
MUST_USE int otlp_old_begin(struct otlp_decoder *decoder);
MUST_USE int otlp_old_profile(struct otlp_decoder *decoder, struct pb_reader in, uint32_t scope);
MUST_USE int otlp_old_dictionary(struct otlp_decoder *decoder, struct pb_reader in);

#endif
