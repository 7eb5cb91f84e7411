/* SPDX-License-Identifier: Apache-2.0 */
/* firn query - asks a server and prints the answer. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/printable.h"
#include "cli/ask.h"
#include "server/query/render/render_export.h"

struct query_verb_options {
	struct verb_common common;
	struct client_flags client;
	const char *from, *to, *at;
	const char *output;
	const char *group_by, *sum_by;
	const char *step;
	const char *demangle;
	const char *filter;
	const char *sandwich;
	unsigned limit;
	bool explain, invert, intervals;
};

#define AT(member) offsetof(struct query_verb_options, member)

static const struct option options[] = {
	CLIENT_FLAGS_OPTIONS(struct query_verb_options),
	OPTION_AT(FROM, AT(from)),
	OPTION_AT(TO, AT(to)),
	OPTION_AT(AT, AT(at)),
	OPTION_AT(QUERY_OUTPUT, AT(output)),
	OPTION_AT(GROUP_BY, AT(group_by)),
	OPTION_AT(SUM_BY, AT(sum_by)),
	OPTION_AT(STEP, AT(step)),
	OPTION_AT(DEMANGLE, AT(demangle)),
	OPTION_AT(FILTER, AT(filter)),
	OPTION_AT(INVERT, AT(invert)),
	OPTION_AT(SANDWICH, AT(sandwich)),
	OPTION_AT(EXPLAIN, AT(explain)),
	OPTION_AT(INTERVALS, AT(intervals)),
	OPTION_AT(LIMIT, AT(limit)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "query",
	.operands = "SELECTOR",
	.summary = "query a server: where time and memory went",
	.details = "SELECTOR is a profile type and label matchers (= != =~ !~). Regular\n"
		   "expressions are anchored; a missing label equals the empty string.\n"
		   "The beginning of a type is enough if no other type of the server begins with\n"
		   "it (on_cpu for on_cpu:samples:count:cpu:nanoseconds:delta). Omit the type if\n"
		   "the server has only one.\n"
		   "\n"
		   "  firn query 'on_cpu{comm=\"nginx\"}'\n"
		   "  firn query --from now-1d --output pprof on_cpu > p.pb.gz\n"
		   "  firn query --output series --sum-by comm --step 1m on_cpu\n"
		   "\n"
		   "Standard error lists frames without names and the reasons. Exits 1 when\n"
		   "nothing matches.",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

static void build_path(const struct query_verb_options *values, const char *selector,
		       struct strbuf *path)
{
	bool series = !strcmp(values->output, "series");
	char limit[16];

	strbuf_add_text(path, series ? "/api/v1/series" : "/api/v1/query");
	ask_add_parameter(path, "query", selector);
	ask_add_parameter(path, "from", values->from);
	ask_add_parameter(path, "to", values->to);
	ask_add_parameter(path, "at", values->at);
	ask_add_parameter(path, "fail_empty", "1");
	ask_add_parameter(path, "filter", values->filter);
	ask_add_parameter(path, "explain", values->explain ? "1" : NULL);
	if (series) {
		ask_add_parameter(path, "format", "text");
		ask_add_parameter(path, "step", values->step);
		ask_add_parameter(path, "sum_by", values->sum_by);
		ask_add_parameter(path, "intervals", values->intervals ? "1" : NULL);
		return;
	}
	snprintf(limit, sizeof(limit), "%u", values->limit);
	ask_add_parameter(path, "format", values->output);
	ask_add_parameter(path, "group_by", values->group_by);
	ask_add_parameter(path, "invert", values->invert ? "1" : NULL);
	ask_add_parameter(path, "sandwich", values->sandwich);
	ask_add_parameter(path, "intervals", values->intervals ? "1" : NULL);
	ask_add_parameter(path, "demangle", values->demangle);
	ask_add_parameter(path, "notes", "1");
	ask_add_parameter(path, "limit", values->limit ? limit : NULL);
}

static bool is_format(const char *output)
{
	static const char *const formats[] = { "top", "flamegraph", "json", "series", "binary" };

	for (size_t i = 0; i < VERB_COUNT_OF(formats); i++)
		if (!strcmp(output, formats[i]))
			return true;
	return render_export_find(slice_of(output)) != NULL;
}

static int check(const struct query_verb_options *values, const struct option_operands *operands,
		 struct err *err)
{
	if (operands->count != 1)
		return err_set(err, ERR_INVALID,
			       "expected one SELECTOR, for example "
			       "'on_cpu{comm=\"nginx\"}'");
	if (!is_format(values->output))
		return err_set(err, ERR_INVALID,
			       "--output: \"%s\" is not one of top, flamegraph, json, "
			       "series, " RENDER_EXPORT_NAMES,
			       values->output);
	if ((values->sum_by || values->step) && strcmp(values->output, "series"))
		return err_set(err, ERR_INVALID, "--sum-by and --step go with --output series");
	if (values->group_by && !strcmp(values->output, "series"))
		return err_set(err, ERR_INVALID, "--output series is split with --sum-by");
	if (values->intervals && strcmp(values->output, "top") && strcmp(values->output, "json") &&
	    strcmp(values->output, "series"))
		return err_set(err, ERR_INVALID,
			       "--intervals go with --output top, json or series, not %s",
			       values->output);
	if (isatty(STDOUT_FILENO) &&
	    (!strcmp(values->output, "pprof") || !strcmp(values->output, "binary")))
		return err_set(err, ERR_INVALID, "%s is binary; redirect it: > profile.pb.gz",
			       values->output);
	return 0;
}

static int run(int argc, char **argv)
{
	struct query_verb_options values = { 0 };
	struct option_operands operands;
	struct net_reply reply = { 0 };
	struct strbuf path = { 0 };
	char *selector = NULL;
	struct slice notes;
	struct err err;
	bool is_text;
	int code = verb_parse(&verb_query, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (check(&values, &operands, &err))
		return verb_error(&verb_query, &err);
	if (ask_complete_type(&values.client, operands.items[0], values.from, values.to, &selector,
			      &err))
		return verb_error(&verb_query, &err);
	build_path(&values, selector, &path);
	is_text = strcmp(values.output, "pprof") != 0 && strcmp(values.output, "binary") != 0;
	if (ask(&values.client, strbuf_text(&path), &reply, &err)) {
		code = verb_error(&verb_query, &err);
	} else {
		code = ask_print(&verb_query, &reply, is_text, &notes);
		if (notes.len)
			printable_print(stderr, "firn query: %.*s", SLICE_FMT(notes));
	}
	strbuf_free(&path);
	strbuf_free(&reply.body);
	free(selector);
	return code;
}

const struct verb verb_query = { &spec, run, LOG_WARN };
