/* SPDX-License-Identifier: Apache-2.0 */
/* answer - the queries of /api/v1 (docs/api.md). */
#include "codec/wire/json.h"
#include "config/units.h"
#include "server/query/tree/invert.h"
#include "server/query/render/render.h"
#include "server/query/render/render_export.h"
#include "server/serve/api/query_request.h"
#include "server/serve/api/service_senders.h"

#define ANSWER_STEPS_DEFAULT 240
/* A reader wants a picture now, and the missing names in the next one. */
#define NAMES_WAIT_NS (CLOCK_NS_PER_S)
#define ANSWER_WIDTH_MAX_PX 65536
#define SENDING_NS (600 * CLOCK_NS_PER_S) /* who has sent nothing for so long does not send */

static void put_type(struct json *json, const struct query_type *type)
{
	struct strbuf text = { 0 };

	profile_type_format(&text, &type->type);
	json_open_object(json);
	json_member_string(json, "type", strbuf_slice(&text));
	json_member_string(json, "name", type->type.name);
	json_member_string(json, "sample_type", type->type.sample_type);
	json_member_string(json, "sample_unit", type->type.sample_unit);
	json_member_string(json, "period_type", type->type.period_type);
	json_member_string(json, "period_unit", type->type.period_unit);
	json_member_bool(json, "delta", type->type.delta);
	json_member_int(json, "period", type->period);
	json_member_int(json, "newest_ms", type->newest_ns / CLOCK_NS_PER_MS);
	json_close_object(json);
	strbuf_free(&text);
}

void answer_types(void *context, const struct net_request *request, struct net_response *response)
{
	struct query_request query;
	struct query_type *types;
	struct json json;
	struct err err;
	size_t count;

	if (query_request_begin(context, request, PARAMETERS_SELECTOR_OPTIONAL, &query, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	if (query_types(&query.source, query.asked.params.from_ns, query.asked.params.to_ns,
			&query.asked.arena, &types, &count, &err)) {
		net_response_error(request, response, &err);
	} else {
		response->content_type = "application/json";
		json_begin(&json, &response->body);
		json_open_object(&json);
		json_member_array(&json, "types");
		for (size_t i = 0; i < count; i++)
			put_type(&json, &types[i]);
		json_close_array(&json);
		json_member_bool(&json, "several_services",
				 service_senders_several(query.serve->service_senders, query.tenant,
							 clock_real_ns() - SENDING_NS));
		json_close_object(&json);
	}
	query_request_end(&query);
}

static void put_texts(struct net_response *response, const char *key, const struct slice *texts,
		      size_t count)
{
	struct json json;

	response->content_type = "application/json";
	json_begin(&json, &response->body);
	json_open_object(&json);
	json_put_key(&json, key);
	json_open_array(&json);
	for (size_t i = 0; i < count; i++)
		json_put_string(&json, texts[i]);
	json_close_array(&json);
	json_close_object(&json);
}

void answer_labels(void *context, const struct net_request *request, struct net_response *response)
{
	struct query_request query;
	struct slice *names;
	struct err err;
	size_t count;

	if (query_request_begin(context, request, PARAMETERS_SELECTOR_OPTIONAL, &query, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	if (query_labels(&query.source, query.asked.params.selector, query.asked.params.from_ns,
			 query.asked.params.to_ns, &query.asked.arena, &names, &count, &err))
		net_response_error(request, response, &err);
	else
		put_texts(response, "labels", names, count);
	query_request_end(&query);
}

void answer_label_values(void *context, const struct net_request *request,
			 struct net_response *response)
{
	struct query_request query;
	struct slice *values, label;
	struct err err;
	size_t count;
	int rc;

	if (query_request_begin(context, request, PARAMETERS_SELECTOR_OPTIONAL, &query, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	label = parameters_text(&query.asked, request, "label", "");
	if (label.len)
		rc = query_label_values(&query.source, query.asked.params.selector, label,
					query.asked.params.from_ns, query.asked.params.to_ns,
					&query.asked.arena, &values, &count, &err);
	else
		rc = err_set(&err, ERR_INVALID, "parameter \"label\" is missing");
	if (rc)
		net_response_error(request, response, &err);
	else
		put_texts(response, "values", values, count);
	query_request_end(&query);
}

/* With fail_empty=1, scripts learn by the status that nothing matched. */
static int check_found(struct query_request *query, const struct net_request *request, bool found,
		       struct err *err)
{
	if (found || !slice_is(parameters_text(&query->asked, request, "fail_empty", ""), "1"))
		return 0;
	return err_set(
		err, ERR_NOT_FOUND,
		"no profile matches in this time range; GET /api/v1/types lists what there is, "
		"with the newest time of each");
}

/* A round step that gives about ANSWER_STEPS_DEFAULT points. */
static int64_t default_step(int64_t range_ns)
{
	static const int64_t steps_s[] = { 1,	5,   10,  15,	30,   60,   120,
					   300, 600, 900, 1800, 3600, 7200, 21600 };
	int64_t want_s = range_ns / ANSWER_STEPS_DEFAULT / CLOCK_NS_PER_S;

	for (size_t i = 0; i < sizeof(steps_s) / sizeof(steps_s[0]); i++)
		if (steps_s[i] >= want_s)
			return steps_s[i] * CLOCK_NS_PER_S;
	return 86400 * CLOCK_NS_PER_S;
}

static int read_range(struct query_request *query, const struct net_request *request,
		      struct query_range_params *ret, struct err *err)
{
	struct slice step = parameters_text(&query->asked, request, "step", "");
	struct slice sum_by = parameters_text(&query->asked, request, "sum_by", "");

	query->asked.params.group_by_count = 0;
	if (!slice_is(sum_by, "*") && parameters_group_by(&query->asked, sum_by, err))
		return -(int)err->code;
	*ret = (struct query_range_params){ .base = query->asked.params,
					    .sum_all = !sum_by.len,
					    .spread = !parameters_is_set(&query->asked, request,
									 "intervals") };
	ret->step_ns = default_step(query->asked.params.to_ns - query->asked.params.from_ns);
	if (step.len && units_parse_duration(step, &ret->step_ns, err))
		return err_wrap(err, "parameter \"step\"");
	return 0;
}

/* With explain=1, what the answer cost instead of the answer. */
static void explain(const struct query_stats *stats, struct slice format,
		    struct net_response *response)
{
	if (slice_is(format, "json")) {
		response->content_type = "application/json";
		render_explain_json(stats, &response->body);
	} else {
		response->content_type = "text/plain; charset=utf-8";
		render_explain_text(stats, &response->body);
	}
}

void answer_series(void *context, const struct net_request *request, struct net_response *response)
{
	struct query_request query;
	struct query_range_params range;
	struct query_series_set set = { 0 };
	bool is_answered = false;
	struct err err;
	int rc;

	rc = query_request_read(context, request, PARAMETERS_TYPE_NEEDED, &query, &err);
	if (rc) {
		net_response_error(request, response, &err);
		return;
	}
	rc = read_range(&query, request, &range, &err);
	if (!rc)
		rc = query_request_share(&query, &range, response, &is_answered, &err);
	if (is_answered) {
		query_request_end(&query);
		return;
	}
	if (!rc)
		rc = query_request_series(&query, &range, &set, &err);
	if (!rc) {
		rc = check_found(&query, request, set.series_count > 0, &err);
		if (rc)
			query_series_free(&set);
	}
	if (rc) {
		net_response_error(request, response, &err);
	} else {
		struct slice format = parameters_text(&query.asked, request, "format", "json");
		bool intervals = parameters_is_set(&query.asked, request, "intervals");

		if (parameters_is_set(&query.asked, request, "explain")) {
			explain(&set.stats, format, response);
		} else if (slice_is(format, "text")) {
			response->content_type = "text/plain; charset=utf-8";
			render_series_text(&set, intervals, &response->body);
		} else {
			response->content_type = "application/json";
			render_series_json(&set, intervals, &response->body);
		}
		query_series_free(&set);
	}
	query_request_answered(&query, rc, response);
	query_request_end(&query);
}

static bool count_parameter(struct query_request *query, const struct net_request *request,
			    const char *name, uint64_t max, uint64_t *ret)
{
	struct slice text = parameters_text(&query->asked, request, name, "");

	*ret = 0;
	return !text.len || (slice_parse_u64(text, ret) && *ret <= max);
}

/* How much of it is wanted; 0: all. */
struct size {
	uint64_t width, limit;
};

/* A format of another tool. */
static int export(const struct query_request *query, const struct tree *tree,
		  const struct render_export *as, struct net_response *response, struct err *err)
{
	const struct render_export_for asked = { .resolver = query->serve->resolver,
						 .limits = &query->asked.params.limits };
	int rc = render_export_check(as, tree, err);

	if (!rc)
		rc = query_request_check_size(query, render_export_bytes(as, tree), err);
	if (!rc)
		rc = query_request_pay(response, (size_t)render_export_bytes(as, tree), err);
	if (rc)
		return rc;
	as->write(tree, &asked, &response->body);
	rc = query_limits_check(asked.limits, err);
	if (rc)
		return rc;
	response->content_type = as->content_type;
	if (as->is_binary) {
		strbuf_addf(&response->headers,
			    "content-disposition: attachment; filename=\"profile%s\"\r\n",
			    as->ending);
		response->precompressed = true;
	}
	return 0;
}

/* Renders in the format asked for. */
static int render(const struct query_request *query, const struct tree *tree, struct slice format,
		  const struct size *size, struct net_response *response, struct err *err)
{
	const struct render_export *as = render_export_find(format);
	struct strbuf *out = &response->body;

	response->content_type = "text/plain; charset=utf-8";
	if (slice_is(format, "top")) {
		if (query->asked.params.group_by_count)
			render_top_groups(tree, size->limit, out);
		else
			render_top(tree, size->limit, out);
	} else if (as) {
		return export(query, tree, as, response, err);
	} else if (slice_is(format, "flamegraph")) {
		render_flamegraph_text(tree, 0.005, out);
	} else if (slice_is(format, "json")) {
		if (query_request_pay(response, render_json_bytes(tree), err))
			return -(int)err->code;
		response->content_type = "application/json";
		render_json(tree, out);
	} else if (slice_is(format, "binary")) {
		response->content_type = "application/octet-stream";
		render_binary(tree, (uint32_t)size->width, out);
	} else {
		return err_set(
			err, ERR_INVALID,
			"parameter \"format\": \"%.*s\" is not one of top, flamegraph, json, "
			"binary, " RENDER_EXPORT_NAMES,
			SLICE_FMT(format));
	}
	return 0;
}

static void note_filters(const struct tree *tree, struct strbuf *out)
{
	double all = (double)tree->total + (double)tree->filtered;

	if (tree->filters.len && all != 0)
		strbuf_addf(out, "filters show %.2f%% of all; shares are of all\n",
			    100.0 * (double)tree->total / all);
	if (tree->parts_unreadable)
		strbuf_addf(out, "%llu parts of the store cannot be read: values are missing\n",
			    (unsigned long long)tree->parts_unreadable);
}

/*
 * With notes=1, a form feed and then what is to be known beside the answer follow the formats for
 * terminals: what is missing, what has no name, and why.
 */
static void add_notes(struct query_request *query, const struct net_request *request,
		      const struct tree *tree, struct slice format, struct net_response *response)
{
	struct strbuf notes = { 0 };

	if (!parameters_is_set(&query->asked, request, "notes") ||
	    !(slice_is(format, "top") || slice_is(format, "folded") ||
	      slice_is(format, "flamegraph")))
		return;
	note_filters(tree, &notes);
	if (tree->unresolved_count)
		render_unresolved_text(tree, &notes);
	if (notes.len) {
		strbuf_add_byte(&response->body, '\f');
		strbuf_add_slice(&response->body, strbuf_slice(&notes));
	}
	strbuf_free(&notes);
}

static bool is_turned(struct query_request *query, const struct net_request *request)
{
	return parameters_text(&query->asked, request, "sandwich", "").len ||
	       parameters_is_set(&query->asked, request, "invert");
}

static bool needs_stacks(struct slice format)
{
	const struct render_export *as = render_export_find(format);

	return as && as->needs_stacks;
}

/*
 * Upside down: each function's callers below it; with `sandwich` those of that function alone, and
 * what others have counts as filtered, so that shares stay shares of everything.
 */
static int ticket(struct query_request *query, const struct net_request *request,
		  struct slice format, uint32_t width_px, struct tree *tree, struct err *err)
{
	struct slice function = parameters_text(&query->asked, request, "sandwich", "");
	int64_t total = tree->total;
	int rc;

	if (!is_turned(query, request))
		return 0;
	if (needs_stacks(format))
		return err_set(err, ERR_UNSUPPORTED,
			       "%.*s has whole stacks, root to leaf: leave "
			       "out \"invert\" and \"sandwich\"",
			       SLICE_FMT(format));
	rc = tree_invert(tree, function, slice_is(format, "binary") ? width_px : 0, err);
	if (!rc)
		tree->filtered += total - tree->total;
	return rc;
}

void answer_query(void *context, const struct net_request *request, struct net_response *response)
{
	struct query_request query;
	struct tree *tree = NULL;
	struct slice format;
	struct size size = { 0 };
	bool intervals, is_answered = false;
	struct err err;
	int rc;

	rc = query_request_read(context, request, PARAMETERS_TYPE_NEEDED, &query, &err);
	if (rc) {
		net_response_error(request, response, &err);
		return;
	}
	format = parameters_text(&query.asked, request, "format", "json");
	if (!count_parameter(&query, request, "width", ANSWER_WIDTH_MAX_PX, &size.width) ||
	    !count_parameter(&query, request, "limit", UINT32_MAX, &size.limit))
		rc = err_set(&err, ERR_INVALID,
			     "parameter \"width\" or \"limit\" is not a number in range");
	if (slice_is(format, "binary") && !query.asked.names_wait_ns)
		query.asked.names_wait_ns = NAMES_WAIT_NS;
	query.asked.params.nodes_only = !needs_stacks(format);
	intervals = parameters_is_set(&query.asked, request, "intervals");
	query.asked.params.rows_only = slice_is(format, "top") && !is_turned(&query, request) &&
				       !intervals && !query.asked.params.group_by_count;
	query.asked.params.rows_limit = (uint32_t)size.limit;
	if (slice_is(format, "binary") && !is_turned(&query, request) && !intervals)
		query.asked.params.width_px = (uint32_t)size.width;
	if (!rc)
		rc = query_request_share(&query, NULL, response, &is_answered, &err);
	if (is_answered) {
		query_request_end(&query);
		return;
	}
	if (!rc)
		rc = query_request_tree(&query, &tree, &err);
	if (!rc)
		rc = check_found(&query, request, tree->reports > 0, &err);
	if (!rc)
		rc = ticket(&query, request, format, (uint32_t)size.width, tree, &err);
	if (!rc && intervals && is_turned(&query, request))
		rc = err_set(&err, ERR_UNSUPPORTED,
			     "intervals are of the tree from its roots: leave out \"invert\" and "
			     "\"sandwich\"");
	if (!rc && intervals && slice_is(format, "top") && query.asked.params.group_by_count)
		rc = err_set(&err, ERR_UNSUPPORTED,
			     "intervals are of all groups together: leave out \"group_by\"");
	if (!rc && intervals)
		rc = query_request_intervals(&query, tree, &err);
	if (!rc && parameters_is_set(&query.asked, request, "explain")) {
		explain(&tree->stats, format, response);
	} else if (!rc) {
		rc = render(&query, tree, format, &size, response, &err);
		if (!rc)
			add_notes(&query, request, tree, format, response);
	}
	if (rc)
		net_response_error(request, response, &err);
	tree_free(tree);
	query_request_answered(&query, rc, response);
	query_request_end(&query);
}
