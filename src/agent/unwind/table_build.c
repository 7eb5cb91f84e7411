/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/table_build.h"

#include <assert.h>
#include <inttypes.h>

#include "agent/unwind/segment_writer.h"
#include "agent/unwind/unwind_sources.h"

#define PADDING_BYTES_MAX 15 /* between functions: the gap that linkers fill up to alignment */
#define SECTION_BYTES_MAX (1ull << 30)
#define FUNCTIONS_MAX (4ull << 20)
#define ROWS_MAX (64ull << 20)
#define STEPS_PER_LOOK 1024u /* at whether to stop */

struct build {
	const struct table_input *input;
	struct table_limits limits;
	struct table_stats *stats;
	struct unwind_sources *sources;
	struct segment_writer *writer;
	size_t next[TABLE_SOURCES]; /* the first function of each that ends behind `at` */
	uint64_t at;		    /* all before is done */
	uint64_t from, to;	    /* of the function being written; rows outside are not */
	uint64_t known_end;	    /* end of the last one */
	uint64_t steps, rows_taken;
	bool has_rule; /* the function's rule at `from` is `rule` */
	struct unwind_rule rule;
	struct err *err;
};

static int put_row(struct build *build, uint64_t offset, const struct unwind_rule *rule)
{
	return segment_writer_row(build->writer, offset, rule, build->err);
}

static int put_none(struct build *build, uint64_t offset)
{
	struct unwind_rule none = { .cfa = UNWIND_CFA_NONE };

	return put_row(build, offset, &none);
}

/* Rows of the function, of which the part from `from` to `to` is wanted, in order. */
static int take_row(void *context, uint64_t offset, const struct unwind_rule *rule)
{
	struct build *build = context;
	int status = 0;

	if (++build->rows_taken > build->limits.rows)
		return err_set(build->err, ERR_LIMIT,
			       "build the unwind table of \"%s\": over %" PRIu64 " rows",
			       build->input->name, build->limits.rows);
	if (offset > build->from && offset < build->to) {
		if (build->has_rule)
			status = put_row(build, build->from, &build->rule);
		build->from = offset;
	}
	if (offset < build->to) {
		build->rule = *rule;
		build->has_rule = true;
	}
	return status;
}

static int put_function(struct build *build, enum table_source source,
			const struct source_function *function, uint64_t to)
{
	struct unwind_row_sink sink = { take_row, build };
	int status;

	assert(source < TABLE_SOURCES);
	build->from = build->at;
	build->to = to;
	build->has_rule = false;
	status = put_none(build, build->at); /* unless a row says better */
	if (!status)
		status = unwind_sources_rows(build->sources, source, function, &sink, build->err);
	if (!status && build->has_rule)
		status = put_row(build, build->from, &build->rule);
	build->known_end = build->at = to;
	return status;
}

static const struct source_function *next_of(struct build *build, int source)
{
	const struct source_list *list =
		unwind_sources_list(build->sources, (enum table_source)source);
	size_t *next;

	assert(source >= 0 && source < TABLE_SOURCES);
	next = &build->next[source];
	while (*next < list->count &&
	       (uint64_t)list->functions[*next].start + list->functions[*next].length <= build->at)
		(*next)++;
	return *next < list->count ? &list->functions[*next] : NULL;
}

/* Writes what comes next; *ret_more is false when nothing does. */
static int step(struct build *build, bool *ret_more)
{
	uint64_t nearest = UINT64_MAX;
	int status = 0;

	for (int source = 0; source < TABLE_SOURCES; source++) {
		const struct source_function *function = next_of(build, source);
		uint64_t end;

		if (!function)
			continue;
		if (function->start > build->at) {
			if (function->start < nearest)
				nearest = function->start;
			continue;
		}
		/* Better sources begin at `nearest` at the earliest. */
		end = (uint64_t)function->start + function->length;
		return put_function(build, (enum table_source)source, function,
				    end < nearest ? end : nearest);
	}
	*ret_more = nearest != UINT64_MAX;
	if (*ret_more && build->known_end && nearest - build->known_end > PADDING_BYTES_MAX)
		status = put_none(build, build->known_end);
	build->at = nearest;
	return status;
}

static int write_rows(struct build *build)
{
	bool more = true;
	int status = 0;

	while (!status && more) {
		if (build->steps++ % STEPS_PER_LOOK == 0 && build->limits.cancel &&
		    atomic_load_explicit(build->limits.cancel, memory_order_relaxed))
			return err_set(build->err, ERR_CANCELLED,
				       "build the unwind table of \"%s\": cancelled",
				       build->input->name);
		status = step(build, &more);
	}
	return status ? status : put_none(build, build->known_end);
}

static int finish(struct build *build)
{
	const struct elf_layout *layout = unwind_sources_layout(build->sources);
	uint64_t end = build->known_end + TABLE_BLOCK_BYTES - 1;
	struct table_stats *stats = build->stats;
	struct table_file_header header;
	uint32_t sources = 0;
	int status;

	assert(build->writer);
	for (int i = 0; i < TABLE_SOURCES; i++)
		sources |= stats->functions[i] ? 1u << i : 0;
	status = segment_writer_finish(build->writer, end - end % TABLE_BLOCK_BYTES,
				       layout->info.machine, sources, &header, build->err);
	if (status)
		return status;
	table_file_sources(sources, stats->sources);
	stats->segments = header.segments_count;
	stats->rows = header.rows_count;
	for (uint32_t i = 0; i < header.segments_count; i++) {
		stats->rules += header.segments[i].rules_count;
		stats->bytes += header.segments[i].image_bytes;
	}
	stats->malformed += unwind_sources_malformed(build->sources);
	stats->rows_unsupported = segment_writer_unsupported(build->writer);
	stats->is_cut = segment_writer_is_full(build->writer);
	return 0;
}

static void set_defaults(struct table_limits *limits)
{
	if (!limits->section_bytes)
		limits->section_bytes = SECTION_BYTES_MAX;
	if (!limits->functions)
		limits->functions = FUNCTIONS_MAX;
	if (!limits->rows)
		limits->rows = ROWS_MAX;
}

int table_build(const struct table_input *input, int out_fd, const struct table_limits *limits,
		struct table_stats *ret_stats, struct err *err)
{
	struct err own_err = { 0 };
	struct table_stats stats = { 0 };
	struct build build = { .input = input, .stats = &stats, .err = err ? err : &own_err };
	int status;

	assert(out_fd >= 0);
	if (limits)
		build.limits = *limits;
	set_defaults(&build.limits);
	status = unwind_sources_open(input, &build.limits, &stats, &build.sources, build.err);
	if (status)
		return status;
	build.writer = segment_writer_new(out_fd, input->name);
	status = write_rows(&build);
	if (!status)
		status = finish(&build);
	segment_writer_free(build.writer);
	unwind_sources_free(build.sources);
	if (!status && ret_stats)
		*ret_stats = stats;
	return status;
}
