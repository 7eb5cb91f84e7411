/* SPDX-License-Identifier: Apache-2.0 */
/* firn query - asks a server and prints the answer. */
#include <stdio.h>
#include <unistd.h>

#include "cli/output_file.h"
#include "cli/client_flags.h"
#include "cli/verb.h"

#define ANSWER_BYTES_MAX ((size_t)1 << 30)
#define ANSWER_TIMEOUT_NS (120 * CLOCK_NS_PER_S)

struct query_verb_options {
	struct verb_common common;
	struct client_flags client;
	const char *from, *to, *at;
	const char *output;
	const char *group_by, *sum_by;
	const char *step;
	const char *demangle;
	const char *filter;
	unsigned limit;
	bool explain;
};

#define AT(member) offsetof(struct query_verb_options, member)

static const struct option options[] = {
	CLIENT_FLAGS_OPTIONS(struct query_verb_options),
	{ 0, "from", OPTION_TEXT, AT(from), "T", "default now-1h; or RFC 3339", 0, 0 },
	{ 0, "to", OPTION_TEXT, AT(to), "T", "default now", 0, 0 },
	{ 0, "at", OPTION_TEXT, AT(at), "T", "the reports nearest to one moment instead", 0, 0 },
	{ 'o', "output", OPTION_TEXT, AT(output), "FORMAT",
	  "top (default), folded, pprof, flamegraph, json, series", 0, 0 },
	{ 0, "group-by", OPTION_TEXT, AT(group_by), "L[,L]", "split by label values", 0, 0 },
	{ 0, "sum-by", OPTION_TEXT, AT(sum_by), "L[,L]",
	  "of series: one line per value (default one line; * = all labels)", 0, 0 },
	{ 0, "step", OPTION_TEXT, AT(step), "D",
	  "of series: width of a point (default fits the range)", 0, 0 },
	{ 0, "demangle", OPTION_TEXT, AT(demangle), "MODE",
	  "of names: full (default), templates, simple (no parameters), none", 0, 0 },
	{ 0, "filter", OPTION_TEXT, AT(filter), "EXPR",
	  "of stacks and frames: 'show-stack NAME; hide-frame binary=libc.so.6' (docs/api.md)", 0,
	  0 },
	{ 0, "explain", OPTION_FLAG, AT(explain), NULL,
	  "what the answer cost and where it came from, instead of it", 0, 0 },
	{ 0, "limit", OPTION_COUNT, AT(limit), "N", "of top: rows (default all)", 1, 1000000000 },
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "query",
	.operands = "SELECTOR",
	.summary = "ask a server: where did time and memory go",
	.details = "SELECTOR is a profile type and label matchers (= != =~ !~; regular expressions "
		   "are\n"
		   "anchored; a missing label equals the empty string):\n\n"
		   "  firn query 'on_cpu:samples:count:cpu:nanoseconds:delta{comm=\"nginx\"}'\n"
		   "  firn query --from now-1d --output pprof "
		   "'on_cpu:samples:count:cpu:nanoseconds:delta' > p.pb.gz\n"
		   "  firn query --output series --sum-by comm --step 1m "
		   "'on_cpu:samples:count:cpu:nanoseconds:delta'\n\n"
		   "What has no name, and why, follows on standard error. Exits 1 when nothing "
		   "matches.",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

static void add_parameter(struct strbuf *path, const char *name, const char *value)
{
	if (!value)
		return;
	strbuf_addf(path, "%c%s=", strchr(strbuf_text(path), '?') ? '&' : '?', name);
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    strchr("-._~", c))
			strbuf_add_byte(path, (char)c);
		else
			strbuf_addf(path, "%%%02X", c);
	}
}

static void build_path(const struct query_verb_options *values, const char *selector,
		       struct strbuf *path)
{
	bool series = !strcmp(values->output, "series");
	char limit[16];

	strbuf_add_text(path, series ? "/api/v1/series" : "/api/v1/query");
	add_parameter(path, "query", selector);
	add_parameter(path, "from", values->from);
	add_parameter(path, "to", values->to);
	add_parameter(path, "at", values->at);
	add_parameter(path, "fail_empty", "1");
	add_parameter(path, "filter", values->filter);
	add_parameter(path, "explain", values->explain ? "1" : NULL);
	if (series) {
		add_parameter(path, "format", "text");
		add_parameter(path, "step", values->step);
		add_parameter(path, "sum_by", values->sum_by);
		return;
	}
	snprintf(limit, sizeof(limit), "%u", values->limit);
	add_parameter(path, "format", values->output);
	add_parameter(path, "group_by", values->group_by);
	add_parameter(path, "demangle", values->demangle);
	add_parameter(path, "notes", "1");
	add_parameter(path, "limit", values->limit ? limit : NULL);
}

static int ask(const struct query_verb_options *values, const char *selector,
	       struct net_reply *reply, struct err *err)
{
	struct strbuf path = { 0 };
	struct net_call call = { .method = "GET",
				 .headers = "accept: text/plain\r\n",
				 .timeout_ns = ANSWER_TIMEOUT_NS,
				 .body_bytes_max = ANSWER_BYTES_MAX };
	struct net_client *client;
	int rc = client_flags_open(&values->client, &client, err);

	if (rc)
		return rc;
	build_path(values, selector, &path);
	call.path = strbuf_text(&path);
	rc = net_client_call(client, &call, reply, err);
	strbuf_free(&path);
	net_client_free(client);
	return rc;
}

static bool is_format(const char *output)
{
	static const char *const formats[] = { "top",  "folded", "pprof", "flamegraph",
					       "json", "series", "binary" };

	for (size_t i = 0; i < VERB_COUNT_OF(formats); i++)
		if (!strcmp(output, formats[i]))
			return true;
	return false;
}

static int check(const struct query_verb_options *values, const struct option_operands *operands,
		 struct err *err)
{
	if (operands->count != 1)
		return err_set(err, ERR_INVALID,
			       "expected one SELECTOR, for example "
			       "'on_cpu:samples:count:cpu:nanoseconds:delta{comm=\"nginx\"}'");
	if (!is_format(values->output))
		return err_set(
			err, ERR_INVALID,
			"--output: \"%s\" is none of top, folded, pprof, flamegraph, json, series",
			values->output);
	if ((values->sum_by || values->step) && strcmp(values->output, "series"))
		return err_set(err, ERR_INVALID, "--sum-by and --step go with --output series");
	if (values->group_by && !strcmp(values->output, "series"))
		return err_set(err, ERR_INVALID, "--output series is split with --sum-by");
	if (isatty(STDOUT_FILENO) &&
	    (!strcmp(values->output, "pprof") || !strcmp(values->output, "binary")))
		return err_set(err, ERR_INVALID, "%s is binary; redirect it: > profile.pb.gz",
			       values->output);
	return 0;
}

static struct slice first_line(const struct strbuf *text)
{
	struct slice rest;

	return slice_cut(strbuf_slice(text), '\n', &rest);
}

/* The server's notes follow a form feed: they are no part of the format. */
static int print(const struct query_verb_options *values, struct slice answer, struct err *err)
{
	bool is_text = strcmp(values->output, "pprof") && strcmp(values->output, "binary");
	const char *end = is_text && answer.len ? memrchr(answer.data, '\f', answer.len) : NULL;
	struct slice notes = { 0 };
	int rc;

	if (end) {
		size_t len = (size_t)(end - answer.data);

		notes = slice_tail(answer, len + 1);
		answer.len = len;
	}
	rc = output_file_write("-", answer, err);
	if (!rc && notes.len)
		fprintf(stderr, "firn query: %.*s", SLICE_FMT(notes));
	return rc;
}

static int run(int argc, char **argv)
{
	struct query_verb_options values = { .output = "top" };
	struct option_operands operands;
	struct net_reply reply = { 0 };
	struct err err;
	int code = verb_parse(&verb_query, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (check(&values, &operands, &err) || ask(&values, operands.items[0], &reply, &err))
		return verb_error(&verb_query, &err);
	if (reply.status == 200) {
		code = VERB_OK;
		if (print(&values, strbuf_slice(&reply.body), &err))
			code = verb_error(&verb_query, &err);
	} else {
		code = reply.status == 404 ? VERB_NEGATIVE : VERB_ERROR;
		fprintf(stderr, "firn query: %.*s\n", SLICE_FMT(first_line(&reply.body)));
	}
	strbuf_free(&reply.body);
	return code;
}

const struct verb verb_query = { &spec, run, LOG_WARN };
