/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3_sign - signs requests with AWS Signature Version 4, with the hash of the whole body. Pure
 * functions. Source of the format: "Create a signed AWS API request" in AWS' documentation.
 */
#ifndef FIRN_NET_S3_S3_SIGN_H
#define FIRN_NET_S3_S3_SIGN_H

#include "base/strbuf.h"

#define S3_SIGN_HASH_BYTES 65 /* hexadecimal, and a NUL */
#define S3_SIGN_TIME_BYTES 17 /* "20130524T000000Z", and a NUL */
#define S3_SIGN_HEADERS_MAX 16

struct s3_header {
	const char *name; /* lower case */
	struct slice value;
};

struct s3_unsigned {
	const char *method;
	struct slice path;		 /* escaped, as it is sent */
	struct slice query;		 /* "name=value&...": escaped, sorted, as it is sent */
	const struct s3_header *headers; /* to be signed, host and x-amz-date among them */
	size_t headers_count;		 /* sorted by name; at most S3_SIGN_HEADERS_MAX */
	const char *payload_hash;
};

struct s3_scope {
	struct slice access_key, secret_key;
	const char *region, *service;
};

void s3_sign_hash(struct slice bytes, char ret[S3_SIGN_HASH_BYTES]);
void s3_sign_time(int64_t at_ns, char ret[S3_SIGN_TIME_BYTES]);

/* Appends the value of the header Authorization. `time` is that of x-amz-date. */
void s3_sign(const struct s3_scope *scope, const struct s3_unsigned *request, const char *time,
	     struct strbuf *out);

#endif
