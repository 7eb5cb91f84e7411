/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_file - a profile file of any format that firn reads (profile_decode.h), as a source of
 * queries.
 *
 * Values are amounts, whatever the file says of its duration; only inuse_* and goroutines are
 * states. One thread. Files are written as output_file.h does.
 */
#ifndef FIRN_CLI_PROFILE_FILE_H
#define FIRN_CLI_PROFILE_FILE_H

#include "cli/push/profile_decode.h"
#include "server/persist/log/tables_codec.h"
#include "server/query/query.h"
#include "server/query/render/render_export.h"
#include "server/resolve/resolver.h"

struct profile_file {
	struct tables tables;	   /* of decoded files, */
	struct tables_image image; /* or a recording */
	struct column *columns;
	struct segment segment;
	struct query_source source;
	struct resolver *resolver;
	struct strbuf type;
	struct selector selector;   /* of the chosen sample type */
	struct query_params params; /* all of it, in that type */
	struct filter_list filters;
	int64_t report_ns; /* the longest report */
};

/*
 * `sample_type` is "cpu", "alloc_space"...; NULL: the file's default, else its last, as go tool
 * pprof has it. `filter` may be NULL. profile_file_close is due in any case.
 */
int profile_file_open(struct profile_file *file, const char *path, const char *sample_type,
		      const char *filter, struct err *err);
/* The same of bytes; errors call them `name`. */
int profile_file_decode(struct profile_file *file, struct slice bytes, const char *name,
			const char *sample_type, const char *filter, struct err *err);
void profile_file_close(struct profile_file *file);

/*
 * Copies a pprof with all of its content: every sample type (or the wanted one), mappings, build
 * ids, addresses without names, comments, and fields that firn does not use. For other formats, and
 * profiles that need repair, *ret stays false.
 */
int profile_copy(struct slice bytes, const char *sample_type, const char *to, bool *ret,
		 struct err *err);

/* A recording, which has all of the profile; it has no `write`. */
extern const struct render_export profile_recording;

/*
 * By name (render_export.h, or "firn") or, without one (NULL), by the ending: theirs, .firn, and
 * .pb, .pprof, .pgo for pprof, .collapsed for folded. "-" is pprof.
 */
int profile_format_of(const char *name, const char *path, const struct render_export **ret,
		      struct err *err);

/* ERR_INVALID when bytes that are no text would go to a terminal. */
int profile_refuse_terminal(const struct render_export *format, const char *path, struct err *err);

/* The answer of `params` in the format; a recording has all that the source's view has. */
int profile_write(const struct query_source *source, struct query_params *params,
		  const struct render_export *format, const char *path, struct err *err);

#endif
