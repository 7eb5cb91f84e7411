/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/v8/v8_safepoints.h"

#define FIELD_BYTES_MAX 4u
#define PUSHED_BYTES 1u

static uint32_t number_of(const uint8_t *bytes, uint32_t count)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < count; i++)
		number |= (uint32_t)bytes[i] << 8 * i;
	return number;
}

bool v8_safepoints_open(const uint8_t head[V8_SAFEPOINTS_HEAD_BYTES], uint32_t form,
			struct v8_safepoints *ret)
{
	uint32_t fields, registers;

	if (form >= V8_SAFEPOINTS_FORMS)
		return false;
	fields = number_of(head + 4 * form + 4, 4);
	registers = fields >> 1 & 7;
	*ret = (struct v8_safepoints){ .count = number_of(head + 4 * form, 4),
				       .place_bytes = fields >> 4 & 7,
				       .exit_bytes = fields >> 7 & 7 };
	ret->entry_bytes = 2 * ret->place_bytes + ret->exit_bytes + PUSHED_BYTES + registers;
	return fields & 1 && fields >> 10 == 0 && ret->place_bytes && ret->exit_bytes &&
	       ret->place_bytes <= FIELD_BYTES_MAX && ret->exit_bytes <= FIELD_BYTES_MAX &&
	       registers <= FIELD_BYTES_MAX &&
	       ret->count <= V8_SAFEPOINTS_BYTES_MAX / ret->entry_bytes;
}

bool v8_safepoints_get(const struct v8_safepoints *points, const uint8_t *entries, uint32_t number,
		       struct v8_safepoint *ret)
{
	const uint8_t *at = entries + (size_t)number * points->entry_bytes;

	ret->place = number_of(at, points->place_bytes);
	at += points->place_bytes;
	ret->exit = number_of(at, points->exit_bytes) - 1;
	ret->exit_at = number_of(at + points->exit_bytes, points->place_bytes) - 1;
	return ret->exit <= INT32_MAX && ret->exit_at <= INT32_MAX;
}
