/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push_request - makes the request that sends a profile file of any format to a server. pprof, and
 * formats that convert to it, use Parca's WriteRaw: all profiles of a file in one request, which is
 * stored whole or not at all. OTLP and firn's recordings use OTLP's Export.
 *
 * The same file becomes the same bytes, so that the server counts it once however often it is sent:
 * a profile that does not say when it was taken gets the file's time.
 */
#ifndef FIRN_CLI_PUSH_PUSH_REQUEST_H
#define FIRN_CLI_PUSH_PUSH_REQUEST_H

#include "cli/push/profile_decode.h"
#include "config/options.h"

struct push_about {
	const char *name;		  /* of the profiles; NULL: by their sample types */
	const struct option_list *labels; /* "KEY=VALUE" */
	struct slice stem;		  /* of the file's name: what it is called without a type */
	int64_t file_time_ns;
};

struct push_request {
	struct strbuf message;
	const char *path; /* of the call, which is gRPC */
	enum profile_form form;
	unsigned profiles; /* 0: nobody counted */
	bool timed_by_file;
};

/* `ret` is to be freed in any case. Errors: the file is none that we read, a label has no name. */
MUST_USE int push_request_make(struct slice file, const struct push_about *about,
			       struct push_request *ret, struct err *err);
void push_request_free(struct push_request *request);

#endif
