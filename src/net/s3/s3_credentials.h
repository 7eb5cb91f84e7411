/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3_credentials - the keys for signing requests to S3, from the places where AWS' own tools find
 * them. The first configured source in this list is used, and its error is the result:
 *
 *   a file that was named, or the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
 *     AWS_SESSION_TOKEN
 *   a web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, changed at STS
 *     (AWS_ENDPOINT_URL_STS) into keys
 *   the shared file: AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials, profile AWS_PROFILE
 *   the container's: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI
 *   the instance's, version 2 of its metadata service (AWS_EC2_METADATA_SERVICE_ENDPOINT), unless
 *     AWS_EC2_METADATA_DISABLED is true
 *
 * Blocks, a few seconds at most. Any thread.
 */
#ifndef FIRN_NET_S3_S3_CREDENTIALS_H
#define FIRN_NET_S3_S3_CREDENTIALS_H

#include "base/clock.h"
#include "base/strbuf.h"
#include "net/tls.h"

struct s3_credentials {
	struct strbuf access_key, secret_key;
	struct strbuf token;  /* for temporary keys; or empty */
	int64_t ask_again_ns; /* when to fetch new keys, before these expire; real clock */
	const char *from;     /* for messages; static */
};

/* `file` may be NULL; `tls` is for STS. ERR_NOT_FOUND names the places that were searched. */
MUST_USE int s3_credentials_find(const char *file, struct tls *tls, struct s3_credentials *ret,
				 struct err *err);
void s3_credentials_free(struct s3_credentials *credentials); /* wipes them */

/* Pure: the keys of a profile in the text of a shared file; those in a metadata service's JSON. */
MUST_USE int s3_credentials_of_file(struct slice text, const char *profile,
				    struct s3_credentials *ret, struct err *err);
MUST_USE int s3_credentials_of_json(struct slice text, struct s3_credentials *ret, struct err *err);

#endif
