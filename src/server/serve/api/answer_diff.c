/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/diff: one tree with the values of two selections, and what of it is more than noise.
 */
#include "server/query/render/render.h"
#include "server/query/diff/rules.h"
#include "server/serve/api/query_request.h"

#define ROWS_MAX ((uint64_t)UINT32_MAX)
#define TRIES_MAX 3

enum diff_format { DIFF_JSON, DIFF_TOP, DIFF_TABLE };

/* What a request wants of the diff. */
struct wanted {
	enum diff_format format;
	uint64_t limit; /* of rows; 0 = all */
	bool significance, notes, fail_empty;
	struct rules rules; /* none: count 0 */
};

static int read_format(struct slice text, enum diff_format *ret, struct err *err)
{
	if (slice_is(text, "json"))
		*ret = DIFF_JSON;
	else if (slice_is(text, "top"))
		*ret = DIFF_TOP;
	else if (slice_is(text, "table"))
		*ret = DIFF_TABLE;
	else
		return err_set(err, ERR_INVALID,
			       "parameter \"format\": \"%.*s\" is not one of json, top, table",
			       SLICE_FMT(text));
	return 0;
}

static int read_wanted(struct query_request *query, const struct net_request *request,
		       struct wanted *ret, struct err *err)
{
	struct slice rules = parameters_text(&query->asked, request, "fail_on", "");
	struct slice limit = parameters_text(&query->asked, request, "limit", "0");
	int rc = read_format(parameters_text(&query->asked, request, "format", "json"),
			     &ret->format, err);

	ret->significance = parameters_is_set(&query->asked, request, "significance");
	ret->notes = parameters_is_set(&query->asked, request, "notes");
	ret->fail_empty = parameters_is_set(&query->asked, request, "fail_empty");
	if (!rc && (!slice_parse_u64(limit, &ret->limit) || ret->limit > ROWS_MAX))
		rc = err_set(err, ERR_INVALID, "parameter \"limit\" is not a number in range");
	if (!rc && rules.len) {
		rc = rules_parse(rules, &ret->rules, err);
		if (rc)
			return err_wrap(err, "parameter \"fail_on\"");
	}
	ret->significance |= rules_need_comparison(&ret->rules);
	return rc;
}

static int render(const struct wanted *wanted, const struct tree *tree,
		  const struct query_limits *limits, struct net_response *response, struct err *err)
{
	response->content_type = "application/json";
	if (wanted->format == DIFF_JSON) {
		if (query_request_pay(response, render_json_bytes(tree), err))
			return -(int)err->code;
		render_json(tree, &response->body);
	} else if (wanted->format == DIFF_TABLE) {
		render_table_json(tree, &response->body);
	} else {
		response->content_type = "text/plain; charset=utf-8";
		render_top(tree, (size_t)wanted->limit, &response->body);
	}
	if (!wanted->notes)
		return 0;
	strbuf_add_byte(&response->body, '\f');
	return render_verdict_text(tree, &wanted->rules, limits, &response->body, err);
}

/*
 * A verdict is of one set of names: when some came in the middle, the sides would be told apart by
 * them. After TRIES_MAX of that there is none, unless rules are to be judged by it; who asks again
 * will have it.
 */
static int compute(struct query_request *base, struct query_request *query,
		   const struct wanted *wanted, struct tree **ret, struct err *err)
{
	const struct resolver *resolver = query->serve->resolver;
	int rc;

	for (int tries = 1;; tries++) {
		uint64_t version = resolver_version(resolver);
		bool is_last = tries == TRIES_MAX;

		rc = query_request_diff(base, query, ret, err);
		if (rc || !wanted->significance)
			return rc;
		rc = query_request_compare(base, query, *ret, err);
		if (rc || !(*ret)->names_pending || version == resolver_version(resolver) ||
		    (is_last && wanted->rules.count))
			return rc;
		tree_free(*ret);
		*ret = NULL;
		if (is_last)
			return query_request_diff(base, query, ret, err);
	}
}

static int answer(struct serve *serve, const struct net_request *request,
		  struct net_response *response, struct query_request *query, struct err *err)
{
	struct wanted wanted = { 0 };
	struct query_request base;
	struct tree *tree = NULL;
	int rc = query_request_read_base(serve, request, &base, err);

	if (rc)
		return rc;
	query->asked.params.nodes_only = true;
	rc = read_wanted(query, request, &wanted, err);
	if (!rc)
		rc = compute(&base, query, &wanted, &tree, err);
	if (!rc && wanted.fail_empty && !tree->reports)
		rc = err_set(err, ERR_NOT_FOUND, "no report matches");
	if (!rc)
		rc = render(&wanted, tree, &query->asked.params.limits, response, err);
	rules_free(&wanted.rules);
	tree_free(tree);
	query_request_end(&base);
	return rc;
}

void answer_diff(void *context, const struct net_request *request, struct net_response *response)
{
	struct query_request query;
	struct err err;
	int rc = query_request_read(context, request, PARAMETERS_TYPE_NEEDED, &query, &err);

	if (!rc) {
		rc = answer(context, request, response, &query, &err);
		query_request_answered(&query, rc, response);
		query_request_end(&query);
	}
	if (rc)
		net_response_error(request, response, &err);
}
