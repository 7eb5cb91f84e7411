/* SPDX-License-Identifier: Apache-2.0 */
/* firn store export - a storage directory's profiles for other programs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "cli/output_file.h"
#include "cli/verb.h"
#include "config/units.h"
#include "server/parquet/export_parquet.h"
#include "server/query/render/render.h"
#include "server/resolve/resolver.h"

struct export_verb_options {
	struct verb_common common;
	const char *format, *output, *from, *to;
};

#define AT(member) offsetof(struct export_verb_options, member)

static const struct option options[] = {
	OPTION_AT(EXPORT_OUTPUT, AT(output)),
	OPTION_AT(EXPORT_FORMAT, AT(format)),
	OPTION_AT(EXPORT_FROM, AT(from)),
	OPTION_AT(EXPORT_TO, AT(to)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "store export",
	.operands = "DIR [SELECTOR]",
	.summary = "export a storage directory for other programs",
	.details = "parquet: PATH/rows.parquet has a row per report, stack and sample type with\n"
		   "the labels of its series; PATH/stacks.parquet has the stacks as lists of\n"
		   "frames; for DuckDB, ClickHouse, Spark. pprof, folded: the merged profile of\n"
		   "the one type that SELECTOR names. The server may be running.\n"
		   "\n"
		   "  firn store export /var/lib/firn -o ./out\n"
		   "  firn store export /var/lib/firn --format folded "
		   "'on_cpu:samples:count:cpu:nanoseconds:delta' | flamegraph.pl",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

/* A file that is written beside its place and renamed when it is whole. */
struct output {
	char path[4096], temporary[4096];
	int fd;
};

static int output_open(struct output *output, const char *dir, const char *name, struct err *err)
{
	size_t room = sizeof(output->temporary);

	if ((size_t)snprintf(output->path, room, "%s/%s", dir, name) >= room ||
	    (size_t)snprintf(output->temporary, room, "%s/%s.tmp.%d", dir, name, (int)getpid()) >=
		    room)
		return err_set(err, ERR_INVALID, "\"%s\" is too long", dir);
	output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (output->fd < 0)
		return err_set_errno(err, errno, "create \"%s\"", output->temporary);
	return 0;
}

static int output_write(void *context, struct slice bytes, struct err *err)
{
	const struct output *output = context;

	while (bytes.len) {
		ssize_t wrote = write(output->fd, bytes.data, bytes.len);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return err_set_errno(err, errno, "write \"%s\"", output->temporary);
		bytes = slice_tail(bytes, (size_t)wrote);
	}
	return 0;
}

/* With rc 0 the file takes its place, else it goes. */
static int output_end(struct output *output, int rc, struct err *err)
{
	if (output->fd < 0)
		return rc;
	if (!rc && fsync(output->fd))
		rc = err_set_errno(err, errno, "write \"%s\"", output->path);
	if (close(output->fd) && !rc)
		rc = err_set_errno(err, errno, "write \"%s\"", output->path);
	if (!rc && rename(output->temporary, output->path))
		rc = err_set_errno(err, errno, "write \"%s\"", output->path);
	if (rc)
		unlink(output->temporary);
	return rc;
}

static int write_parquet(struct store *store, const struct export_verb_options *values,
			 const struct export_options *what, struct err *err)
{
	struct output rows = { .fd = -1 }, stacks = { .fd = -1 };
	const struct export_sink rows_sink = { output_write, &rows };
	const struct export_sink stacks_sink = { output_write, &stacks };
	struct export_result result = { 0 };
	int rc;

	if (!values->output)
		return err_set(err, ERR_INVALID,
			       "-o is required: the directory for rows.parquet and stacks.parquet");
	if (mkdir(values->output, 0755) && errno != EEXIST)
		return err_set_errno(err, errno, "make \"%s\"", values->output);
	rc = output_open(&rows, values->output, "rows.parquet", err);
	if (!rc)
		rc = output_open(&stacks, values->output, "stacks.parquet", err);
	if (!rc)
		rc = export_parquet(store, what, &rows_sink, &stacks_sink, &result, err);
	rc = output_end(&stacks, rc, err);
	rc = output_end(&rows, rc, err);
	if (rc)
		return rc;
	printable_print(stdout, "%s: %llu rows of %llu reports, %llu stacks\n", values->output,
			(unsigned long long)result.rows, (unsigned long long)result.reports,
			(unsigned long long)result.stacks);
	if (result.parts_unreadable)
		fprintf(stderr, "firn store export: %llu parts could not be read and are missing\n",
			(unsigned long long)result.parts_unreadable);
	return 0;
}

static int write_tree(const struct export_verb_options *values, const struct tree *tree,
		      struct err *err)
{
	struct strbuf out = { 0 };
	int rc;

	if (!strcmp(values->format, "pprof"))
		render_pprof(tree, &out);
	else
		render_folded(tree, &out);
	if (tree->parts_unreadable)
		fprintf(stderr, "firn store export: %llu parts could not be read and are missing\n",
			(unsigned long long)tree->parts_unreadable);
	rc = output_file_write(values->output ? values->output : "-", strbuf_slice(&out), err);
	strbuf_free(&out);
	return rc;
}

/* The merged profile, with the names that uploads to this directory give. */
static int write_profile(struct store *store, const char *dir,
			 const struct export_verb_options *values,
			 const struct export_options *what, struct err *err)
{
	const struct store_query query = { .from_ns = what->from_ns,
					   .to_ns = what->to_ns,
					   .selector = what->selector,
					   .sums_only = true };
	struct query_params params = { .selector = what->selector,
				       .from_ns = what->from_ns,
				       .to_ns = what->to_ns,
				       .limits = { .names_until_ns = RESOLVE_WAIT_ALWAYS } };
	struct strbuf uploads = { 0 };
	struct resolver_options resolve = { 0 };
	struct query_source source = { 0 };
	struct store_snapshot snapshot;
	struct tree *tree;
	int rc;

	if (!what->selector || !what->selector->has_type)
		return err_set(err, ERR_INVALID,
			       "%s needs a selector with a profile type, for example "
			       "on_cpu:samples:count:cpu:nanoseconds:delta",
			       values->format);
	rc = store_snapshot(store, &query, &snapshot, err);
	if (rc)
		return rc;
	strbuf_addf(&uploads, "%s/debuginfo", dir);
	resolve.uploads_path = strbuf_text(&uploads);
	rc = resolver_new(&resolve, &source.resolver, err);
	source.segments = snapshot.segments;
	source.segments_count = snapshot.count;
	if (!rc)
		rc = query_tree(&source, &params, &tree, err);
	if (!rc) {
		tree->parts_unreadable += snapshot.parts_unreadable;
		rc = write_tree(values, tree, err);
		tree_free(tree);
	}
	resolver_free(source.resolver);
	strbuf_free(&uploads);
	store_snapshot_release(store, &snapshot);
	return rc;
}

static int export_from(const char *dir, const struct export_verb_options *values,
		       const struct export_options *what, struct err *err)
{
	const struct store_options open = { .path = dir, .read_only = true, .no_background = true };
	struct store *store;
	int rc = store_open(&open, &store, err);

	if (rc)
		return rc;
	if (!strcmp(values->format, "parquet"))
		rc = write_parquet(store, values, what, err);
	else
		rc = write_profile(store, dir, values, what, err);
	store_close(store);
	return rc;
}

static int read_times(const struct export_verb_options *values, struct export_options *what,
		      struct err *err)
{
	int64_t now_ns = clock_real_ns();
	int rc = 0;

	what->from_ns = UNITS_TIME_MIN_NS;
	what->to_ns = UNITS_TIME_MAX_NS;
	if (values->from)
		rc = units_parse_time(slice_of(values->from), now_ns, &what->from_ns, err);
	if (!rc && values->to)
		rc = units_parse_time(slice_of(values->to), now_ns, &what->to_ns, err);
	return rc;
}

static int export(const struct option_operands *operands, const struct export_verb_options *values,
		  struct err *err)
{
	struct export_options what = { 0 };
	struct selector selector = { 0 };
	int rc = 0;

	if (operands->count < 1 || operands->count > 2)
		return err_set(err, ERR_INVALID,
			       "expected a storage directory and perhaps a selector, for example "
			       "/var/lib/firn");
	if (strcmp(values->format, "parquet") != 0 && strcmp(values->format, "pprof") != 0 &&
	    strcmp(values->format, "folded") != 0)
		return err_set(err, ERR_INVALID, "--format: \"%s\" is not parquet, pprof or folded",
			       values->format);
	rc = read_times(values, &what, err);
	if (!rc && operands->count == 2) {
		rc = selector_parse(slice_of(operands->items[1]), &selector, err);
		what.selector = &selector;
	}
	if (!rc)
		rc = export_from(operands->items[0], values, &what, err);
	selector_free(&selector);
	return rc;
}

static int run(int argc, char **argv)
{
	struct export_verb_options values = { .format = "parquet" };
	struct option_operands operands;
	struct err err;
	int code = verb_parse(&verb_store_export, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	return export(&operands, &values, &err) ? verb_error(&verb_store_export, &err) : VERB_OK;
}

const struct verb verb_store_export = { &spec, run, LOG_WARN };
