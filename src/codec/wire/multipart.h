/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multipart - the parts of a multipart/form-data body (RFC 7578). Nothing is copied: parts are
 * slices of the body. Any thread.
 *
 *     while ((more = multipart_next(&reader, &part, &err)) > 0)
 *             ...part.name, part.bytes...
 */
#ifndef FIRN_CODEC_WIRE_MULTIPART_H
#define FIRN_CODEC_WIRE_MULTIPART_H

#include "base/err.h"
#include "base/slice.h"

struct multipart_part {
	struct slice name, file_name; /* empty when not given; as they stand between the quotes */
	struct slice bytes;
};

struct multipart_reader {
	struct slice body, boundary;
	size_t at;
};

/* True if a content type is one of multipart/form-data. */
bool multipart_is(struct slice content_type);

/* ERR_INVALID: no boundary, or the body does not begin with it. */
MUST_USE int multipart_begin(struct multipart_reader *reader, struct slice content_type,
			     struct slice body, struct err *err);

/* 1 with a part, 0 at the end, ERR_INVALID with the offset when the body is cut or malformed. */
MUST_USE int multipart_next(struct multipart_reader *reader, struct multipart_part *ret,
			    struct err *err);

#endif
