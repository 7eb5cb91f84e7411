/* SPDX-License-Identifier: Apache-2.0 */
/* object_flags - the options that say which bucket of which object storage. */
#ifndef FIRN_CLI_FLAGS_OBJECT_FLAGS_H
#define FIRN_CLI_FLAGS_OBJECT_FLAGS_H

#include "cli/flags/option_table.h"
#include "net/s3/s3.h"

struct object_flags {
	const char *endpoint, *region, *credentials_file, *ca_file;
	bool host_style;
};

/* `type` is the verb's options struct, whose member `member` is a struct object_flags. */
#define OBJECT_FLAGS_OPTIONS(type, member)                                                         \
	OPTION_AT(OBJECT_ENDPOINT, offsetof(type, member.endpoint)),                               \
		OPTION_AT(OBJECT_REGION, offsetof(type, member.region)),                           \
		OPTION_AT(OBJECT_CREDENTIALS_FILE, offsetof(type, member.credentials_file)),       \
		OPTION_AT(OBJECT_CA_FILE, offsetof(type, member.ca_file)),                         \
		OPTION_AT(OBJECT_HOST_STYLE, offsetof(type, member.host_style))

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
