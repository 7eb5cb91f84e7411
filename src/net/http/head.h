/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head - the request line and headers of one request, collected piece by piece under a bound.
 *
 * It holds bytes and offsets while it grows. head_seal turns them into slices, which live as long
 * as the head; nothing may be added afterwards.
 */
#ifndef FIRN_NET_HTTP_HEAD_H
#define FIRN_NET_HTTP_HEAD_H

#include "net/server.h"

#define HEAD_BYTES_MAX (32u * 1024) /* names, values, target and HEAD_FIELD_BYTES per field */
#define HEAD_TARGET_BYTES_MAX (16u * 1024)
#define HEAD_FIELD_BYTES 32u /* the cost of a field besides its text, as in HTTP/2 */

struct head_span {
	uint32_t offset, len;
};

struct head_field {
	struct head_span name, value;
};

struct head {
	struct strbuf bytes;
	struct head_field *fields;
	struct net_header *headers; /* after head_seal; as many as fields */
	size_t fields_count, fields_capacity;
	struct head_span method, target;
};

void head_free(struct head *head);
size_t head_cost(const struct head *head); /* bytes, as HEAD_BYTES_MAX counts them */

/* Each returns false, and adds nothing, if it would exceed its bound. */
bool head_set_method(struct head *head, struct slice method);
bool head_set_target(struct head *head, struct slice target);
bool head_add(struct head *head, struct slice name, struct slice value); /* name in any case */

void head_seal(struct head *head);
struct slice head_text(const struct head *head, struct head_span span);

#endif
