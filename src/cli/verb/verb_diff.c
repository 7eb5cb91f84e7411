/* SPDX-License-Identifier: Apache-2.0 */
/* firn diff - what changed between two profiles, files or selections of a server. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/printable.h"
#include "cli/ask.h"
#include "cli/output_file.h"
#include "cli/profile_file.h"
#include "server/query/render/render.h"

struct diff_verb_options {
	struct verb_common common;
	struct client_flags client;
	const char *fail_on, *output, *filter, *sample_type;
	unsigned limit;
};

#define AT(member) offsetof(struct diff_verb_options, member)

static const struct option options[] = {
	CLIENT_FLAGS_OPTIONS(struct diff_verb_options),
	OPTION_AT(FAIL_ON, AT(fail_on)),
	OPTION_AT(DIFF_OUTPUT, AT(output)),
	OPTION_AT(FILTER, AT(filter)),
	OPTION_AT(DIFF_SAMPLE_TYPE, AT(sample_type)),
	OPTION_AT(LIMIT, AT(limit)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "diff",
	.operands = "A B",
	.summary = "show what changed between two profiles, and whether it is more than noise",
	.details =
		"A is the baseline and B the new profile. Each is a file of any format that\n"
		"`firn convert` reads, or SELECTOR@FROM..TO of a server. The table equals `go\n"
		"tool pprof -top -diff_base=A B`: values are B - A, percentages are of A.\n"
		"Standard error then lists the functions whose share changed by more than\n"
		"noise; the spread between reports shows how much they vary by themselves\n"
		"(docs/diff.md).\n"
		"\n"
		"  firn diff before.pb.gz after.pb.gz\n"
		"  firn diff "
		"'on_cpu{comm=\"api\"}@now-1d..now-23h' 'on_cpu{comm=\"api\"}@now-1h..now'\n"
		"  firn diff --fail-on 'total>5% significant' main.firn branch.firn   # in CI\n"
		"\n"
		"--fail-on takes rules separated by commas. A rule is one or more terms\n"
		"separated by blanks; it matches when all of its terms hold:\n"
		"\n"
		"  significant          the share of a function grew by more than noise (for all "
		"functions\n"
		"                       together, the chance of a false alarm is at most 5 %)\n"
		"  total>5%  rate>5%    the total grew by more than 5 %; the total per second did\n"
		"  func>10%             a function, callees included, grew by more than 10 %\n"
		"  func(\"re\")>10%       so did a function whose name matches the RE2 "
		"expression;\n"
		"                       self(\"re\") excludes callees\n"
		"  func(\"re\")>2pt       its share grew by more than 2 percentage points\n"
		"  <                    instead of >: shrank by more than that\n"
		"\n"
		"Exits 0 when no rule matches, 1 when one does, 2 on an error.",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

/* An operand: a file, or a selection. */
struct side {
	const char *path; /* NULL: a selection */
	char *selector, *from, *to;
};

static void free_side(struct side *side)
{
	free(side->selector);
	free(side->from);
	free(side->to);
}

/* SELECTOR@FROM..TO; the last '@' counts, label values may hold others. */
static int read_side(const char *text, struct side *ret, struct err *err)
{
	const char *at = strrchr(text, '@'), *dots = at ? strstr(at, "..") : NULL;

	*ret = (struct side){ 0 };
	if (!access(text, F_OK) || (!at && !strchr(text, '{') && !strchr(text, ':'))) {
		ret->path = text;
		return 0;
	}
	if (!dots || dots == at + 1 || !dots[2] || at == text)
		return err_set(err, ERR_INVALID,
			       "\"%s\" is neither a file nor SELECTOR@FROM..TO, for example "
			       "'on_cpu@now-2h..now-1h'",
			       text);
	ret->selector = mem_strndup(text, (size_t)(at - text));
	ret->from = mem_strndup(at + 1, (size_t)(dots - at - 1));
	ret->to = mem_strndup(dots + 2, strlen(dots + 2));
	return 0;
}

static int complete_side(const struct diff_verb_options *values, struct side *side, struct err *err)
{
	char *whole = NULL;
	int rc;

	if (side->path)
		return 0;
	rc = ask_complete_type(&values->client, side->selector, side->from, side->to, &whole, err);
	if (!rc) {
		free(side->selector);
		side->selector = whole;
	}
	return rc;
}

/* Prints the notes, whose first line says whether a rule holds. */
static int tell_notes(struct slice notes, bool has_rules)
{
	struct slice rest = notes, first = slice_cut(notes, '\n', &rest);
	bool breach = has_rules && slice_is(first, "breach");

	if (has_rules && !breach)
		notes = rest;
	printable_write(stderr, notes);
	return breach ? VERB_NEGATIVE : VERB_OK;
}

static int diff_on_server(const struct diff_verb_options *values, const struct side *base,
			  const struct side *side)
{
	struct strbuf path = { 0 };
	struct net_reply reply = { 0 };
	struct slice notes;
	struct err err;
	char limit[16];
	int code;

	snprintf(limit, sizeof(limit), "%u", values->limit);
	strbuf_add_text(&path, "/api/v1/diff?significance=1&notes=1&fail_empty=1");
	ask_add_parameter(&path, "query", side->selector);
	ask_add_parameter(&path, "from", side->from);
	ask_add_parameter(&path, "to", side->to);
	ask_add_parameter(&path, "base_query", base->selector);
	ask_add_parameter(&path, "base_from", base->from);
	ask_add_parameter(&path, "base_to", base->to);
	ask_add_parameter(&path, "filter", values->filter);
	ask_add_parameter(&path, "fail_on", values->fail_on);
	ask_add_parameter(&path, "limit", values->limit ? limit : NULL);
	ask_add_parameter(&path, "format", strcmp(values->output, "json") ? "top" : "table");
	if (ask(&values->client, strbuf_text(&path), &reply, &err))
		code = verb_error(&verb_diff, &err);
	else
		code = ask_print(&verb_diff, &reply, true, &notes);
	if (!code)
		code = tell_notes(notes, values->fail_on);
	else
		code = VERB_ERROR; /* nothing there to compare is no answer */
	strbuf_free(&path);
	strbuf_free(&reply.body);
	return code;
}

/* A side as a file; a selection is fetched as one. */
static int open_side(const struct diff_verb_options *values, const struct side *side,
		     struct profile_file *file, struct err *err)
{
	struct strbuf path = { 0 };
	struct net_reply reply = { 0 };
	struct slice rest;
	int rc;

	if (side->path)
		return profile_file_open(file, side->path, values->sample_type, values->filter,
					 err);
	strbuf_add_text(&path, "/api/v1/query?format=pprof&fail_empty=1");
	ask_add_parameter(&path, "query", side->selector);
	ask_add_parameter(&path, "from", side->from);
	ask_add_parameter(&path, "to", side->to);
	rc = ask(&values->client, strbuf_text(&path), &reply, err);
	if (!rc && reply.status != 200)
		rc = err_set(err, ERR_INVALID, "%s: %.*s", side->selector,
			     SLICE_FMT(slice_cut(strbuf_slice(&reply.body), '\n', &rest)));
	if (!rc)
		rc = profile_file_decode(file, strbuf_slice(&reply.body), side->selector,
					 values->sample_type, values->filter, err);
	strbuf_free(&path);
	strbuf_free(&reply.body);
	return rc;
}

static int compare_files(struct profile_file *base, struct profile_file *file, struct tree **ret,
			 struct err *err)
{
	const struct compare_side sides[SIGNIFICANCE_SIDES] = {
		[SIGNIFICANCE_BASE] = { &base->source, &base->params },
		[SIGNIFICANCE_OTHER] = { &file->source, &file->params },
	};
	int64_t report_ns = base->report_ns > file->report_ns ? base->report_ns : file->report_ns;
	int rc;

	base->params.nodes_only = file->params.nodes_only = true;
	rc = query_diff(&base->source, &base->params, &file->source, &file->params, ret, err);
	if (!rc)
		rc = compare(*ret, sides, report_ns, err);
	return rc;
}

static int print_diff(const struct diff_verb_options *values, const struct tree *tree,
		      const struct rules *rules)
{
	struct strbuf out = { 0 }, notes = { 0 };
	struct err err;
	int code, rc;

	if (strcmp(values->output, "json") != 0)
		render_top(tree, values->limit, &out);
	else
		render_table_json(tree, &out);
	rc = render_verdict_text(tree, rules, NULL, &notes, &err);
	if (!rc)
		rc = output_file_print("-", strbuf_slice(&out), &err);
	code = rc ? verb_error(&verb_diff, &err) : VERB_OK;
	if (!code)
		code = tell_notes(strbuf_slice(&notes), rules->count > 0);
	strbuf_free(&out);
	strbuf_free(&notes);
	return code;
}

static int diff_files(const struct diff_verb_options *values, const struct side *base_side,
		      const struct side *side, const struct rules *rules)
{
	struct profile_file base = { 0 }, file = { 0 };
	struct tree *tree = NULL;
	struct err err;
	int code, rc = open_side(values, base_side, &base, &err);

	if (!rc)
		rc = open_side(values, side, &file, &err);
	if (!rc)
		rc = compare_files(&base, &file, &tree, &err);
	code = rc ? verb_error(&verb_diff, &err) : print_diff(values, tree, rules);
	tree_free(tree);
	profile_file_close(&base);
	profile_file_close(&file);
	return code;
}

static int check(const struct diff_verb_options *values, const struct option_operands *operands,
		 struct rules *rules, struct err *err)
{
	int rc = 0;

	if (operands->count != 2)
		return err_set(err, ERR_INVALID,
			       "expected two profiles, for example before.pb.gz after.pb.gz");
	if (strcmp(values->output, "top") != 0 && strcmp(values->output, "json") != 0)
		return err_set(err, ERR_INVALID, "--output: \"%s\" is neither top nor json",
			       values->output);
	if (values->fail_on)
		rc = rules_parse(slice_of(values->fail_on), rules, err);
	return rc ? err_wrap(err, "--fail-on") : 0;
}

static int run(int argc, char **argv)
{
	struct diff_verb_options values = { 0 };
	struct option_operands operands;
	struct side base = { 0 }, side = { 0 };
	struct rules rules = { 0 };
	struct err err;
	int code = verb_parse(&verb_diff, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (check(&values, &operands, &rules, &err) || read_side(operands.items[0], &base, &err) ||
	    read_side(operands.items[1], &side, &err) || complete_side(&values, &base, &err) ||
	    complete_side(&values, &side, &err))
		code = verb_error(&verb_diff, &err);
	else if (!base.path && !side.path)
		code = diff_on_server(&values, &base, &side);
	else
		code = diff_files(&values, &base, &side, &rules);
	rules_free(&rules);
	free_side(&base);
	free_side(&side);
	return code;
}

const struct verb verb_diff = { &spec, run, LOG_WARN };
