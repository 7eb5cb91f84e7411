/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3_answer - the XML answers of S3 and STS in structs. Pure functions over hostile bytes: what an
 * answer may hold is bounded by its size, names that nobody asked for are passed over.
 */
#ifndef FIRN_NET_S3_S3_ANSWER_H
#define FIRN_NET_S3_S3_ANSWER_H

#include "base/strbuf.h"

/* <Error><Code>..</Code><Message>..: empty where it says nothing, or is no XML. */
struct s3_error {
	char code[64];
	char message[256];
};
void s3_answer_error(struct slice body, struct s3_error *ret);

struct s3_list_entry {
	struct strbuf key; /* of the bucket; ends in the delimiter: common prefixes */
	uint64_t bytes;
};
struct s3_list {
	struct s3_list_entry *entries; /* in the order of the answer: keys, then prefixes */
	size_t count, capacity;
	bool is_cut; /* there are more entries: ask again with `next` */
	struct strbuf next;
};
MUST_USE int s3_answer_list(struct slice body, struct s3_list *ret, struct err *err);
void s3_list_free(struct s3_list *list);

/* The text of the first element of that name; ERR_INVALID if there is none, or it is empty. */
MUST_USE int s3_answer_text(struct slice body, const char *name, struct strbuf *out,
			    struct err *err);

#endif
