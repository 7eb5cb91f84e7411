/* SPDX-License-Identifier: Apache-2.0 */
/* object_flags - the options that say which bucket of which object storage. */
#ifndef FIRN_CLI_FLAGS_OBJECT_FLAGS_H
#define FIRN_CLI_FLAGS_OBJECT_FLAGS_H

#include "config/options.h"
#include "net/s3/s3.h"

struct object_flags {
	const char *endpoint, *region, *credentials_file, *ca_file;
	bool host_style;
};

/* `type` is the verb's options struct, whose member `member` is a struct object_flags. */
#define OBJECT_FLAGS_OPTIONS(type, member)                                                         \
	{ 0,	       "object-endpoint",                                                          \
	  OPTION_TEXT, offsetof(type, member.endpoint),                                            \
	  "URL",       "the S3 server, http[s]://HOST[:PORT] (default: AWS' own of the region)",   \
	  0,	       0 },                                                                        \
		{ 0,	       "object-region",                                                    \
		  OPTION_TEXT, offsetof(type, member.region),                                      \
		  "NAME",      "its region (default: AWS_REGION, else us-east-1)",                 \
		  0,	       0 },                                                                \
		{ 0,                                                                               \
		  "object-credentials-file",                                                       \
		  OPTION_TEXT,                                                                     \
		  offsetof(type, member.credentials_file),                                         \
		  "FILE",                                                                          \
		  "keys, as in ~/.aws/credentials (default: where AWS' tools look)",               \
		  0,                                                                               \
		  0 },                                                                             \
		{ 0,	       "object-ca-file",                                                   \
		  OPTION_TEXT, offsetof(type, member.ca_file),                                     \
		  "FILE",      "whom to trust, in PEM (default: the system's certificates)",       \
		  0,	       0 },                                                                \
	{                                                                                          \
		0, "object-host-style", OPTION_FLAG, offsetof(type, member.host_style), NULL,      \
			"the bucket's name stands in the host's, not in the path", 0, 0            \
	}

/* Borrows from the flags. */
static inline struct s3_options object_flags_options(const struct object_flags *flags,
						     const char *url)
{
	return (struct s3_options){ .url = url,
				    .endpoint = flags->endpoint,
				    .region = flags->region,
				    .host_style = flags->host_style,
				    .credentials_file = flags->credentials_file,
				    .ca_file = flags->ca_file };
}

#endif
