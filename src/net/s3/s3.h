/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3 - a bucket in object storage that speaks S3's protocol (AWS, Ceph, MinIO, R2, GCS, ...).
 *
 * Requests are signed with the hash of their whole body (net/s3/s3_sign.h), on connections that are
 * kept. Temporary failures (500, 502, 503, 504, 429, 408, 409 of a condition, no connection, a
 * truncated answer) are tried up to five times, with growing pauses; refusals are not. If the
 * server finds our clock too wrong, its own time is used; if keys have expired, new ones are
 * fetched: once each. Objects above S3_PIECE_BYTES are sent in pieces of that size, of which at
 * most one is in memory.
 */
#ifndef FIRN_NET_S3_S3_H
#define FIRN_NET_S3_S3_H

#include "base/storage/bucket.h"
#include "base/clock.h"
#include "net/tls.h"

#define S3_PIECE_BYTES ((size_t)16 << 20)

struct s3_options {
	const char *url;      /* s3://BUCKET[/PREFIX] */
	const char *endpoint; /* http[s]://HOST[:PORT]; NULL: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
				 else AWS' own of the region */
	const char *region;   /* NULL: AWS_REGION, AWS_DEFAULT_REGION, else us-east-1 */
	bool host_style;      /* the bucket's name is part of the host name, not of the path */
	const char *credentials_file; /* NULL: net/s3/s3_credentials.h says where they come from */
	const char *ca_file;	      /* NULL: the system's certificates */
	int64_t retry_ns;	      /* the first pause; 0 = 100 ms */
	clock_f *clock;		      /* NULL = clock_real_ns; for the time of signatures */
	void *clock_context;
};

/* Sends no request yet. ERR_INVALID names what is wrong. bucket->close() frees it. */
MUST_USE int s3_open(const struct s3_options *options, struct bucket **ret, struct err *err);

#endif
