/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/thrift.h"

#include <assert.h>

enum { TYPE_TRUE = 1, TYPE_FALSE = 2, TYPE_BYTE = 3, TYPE_LIST = 9 };

struct thrift thrift_begin(struct strbuf *out)
{
	return (struct thrift){ .out = out };
}

static void header(struct thrift *thrift, int field, int type)
{
	int *last = &thrift->last[thrift->depth];

	assert(field > *last && field - *last < 16);
	strbuf_add_byte(thrift->out, (char)((field - *last) << 4 | type));
	*last = field;
}

void thrift_bool(struct thrift *thrift, int field, bool value)
{
	header(thrift, field, value ? TYPE_TRUE : TYPE_FALSE);
}

void thrift_byte(struct thrift *thrift, int field, char value)
{
	header(thrift, field, TYPE_BYTE);
	strbuf_add_byte(thrift->out, value);
}

void thrift_i32(struct thrift *thrift, int field, int32_t value)
{
	header(thrift, field, THRIFT_I32);
	strbuf_add_zigzag(thrift->out, value);
}

void thrift_i64(struct thrift *thrift, int field, int64_t value)
{
	header(thrift, field, THRIFT_I64);
	strbuf_add_zigzag(thrift->out, value);
}

void thrift_text(struct thrift *thrift, int field, struct slice value)
{
	header(thrift, field, THRIFT_BINARY);
	thrift_element_text(thrift, value);
}

void thrift_struct(struct thrift *thrift, int field)
{
	header(thrift, field, THRIFT_STRUCT);
	thrift_element(thrift);
}

void thrift_list(struct thrift *thrift, int field, enum thrift_type type, uint32_t count)
{
	header(thrift, field, TYPE_LIST);
	if (count < 15) {
		strbuf_add_byte(thrift->out, (char)(count << 4 | type));
		return;
	}
	strbuf_add_byte(thrift->out, (char)(0xf0u | type));
	strbuf_add_varint(thrift->out, count);
}

void thrift_element(struct thrift *thrift)
{
	assert(thrift->depth + 1 < THRIFT_DEPTH_MAX);
	thrift->last[++thrift->depth] = 0;
}

void thrift_element_i32(struct thrift *thrift, int32_t value)
{
	strbuf_add_zigzag(thrift->out, value);
}

void thrift_element_text(struct thrift *thrift, struct slice value)
{
	strbuf_add_varint(thrift->out, value.len);
	strbuf_add_slice(thrift->out, value);
}

void thrift_end(struct thrift *thrift)
{
	strbuf_add_byte(thrift->out, 0);
	if (thrift->depth)
		thrift->depth--;
}
