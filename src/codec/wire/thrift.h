/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thrift - writes structs in Thrift's compact protocol (thrift-compact-protocol.md of Apache
 * Thrift), which is what the metadata of Parquet files is made of.
 *
 * Fields of a struct come in ascending order of their ids, which are below 16. Elements of a list
 * are written after thrift_list, structs among them between thrift_element and thrift_end.
 */
#ifndef FIRN_CODEC_WIRE_THRIFT_H
#define FIRN_CODEC_WIRE_THRIFT_H

#include "base/strbuf.h"

#define THRIFT_DEPTH_MAX 8u

enum thrift_type { THRIFT_I32 = 5, THRIFT_I64 = 6, THRIFT_BINARY = 8, THRIFT_STRUCT = 12 };

struct thrift {
	struct strbuf *out;
	int last[THRIFT_DEPTH_MAX]; /* the field written last, by depth */
	unsigned depth;
};

/* The outermost struct; thrift_end ends it. */
struct thrift thrift_begin(struct strbuf *out);

void thrift_bool(struct thrift *thrift, int field, bool value);
void thrift_byte(struct thrift *thrift, int field, char value);
void thrift_i32(struct thrift *thrift, int field, int32_t value);
void thrift_i64(struct thrift *thrift, int field, int64_t value);
void thrift_text(struct thrift *thrift, int field, struct slice value);
void thrift_struct(struct thrift *thrift, int field);
void thrift_list(struct thrift *thrift, int field, enum thrift_type type, uint32_t count);

void thrift_element(struct thrift *thrift); /* a struct in a list */
void thrift_element_i32(struct thrift *thrift, int32_t value);
void thrift_element_text(struct thrift *thrift, struct slice value);

void thrift_end(struct thrift *thrift);

#endif
