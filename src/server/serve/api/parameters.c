/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/api/parameters.h"

#include <stdlib.h>

#include "config/units.h"
#include "server/serve/admission/active_queries.h"

void parameters_init(struct parameters *asked)
{
	*asked = (struct parameters){ 0 };
	arena_init(&asked->arena, PARAMETERS_ARENA_BYTES);
}

void parameters_free(struct parameters *asked)
{
	filter_list_free(&asked->filters);
	selector_free(&asked->selector);
	arena_free(&asked->arena);
	*asked = (struct parameters){ 0 };
}

struct slice parameters_text(struct parameters *asked, const struct net_request *request,
			     const char *name, const char *fallback)
{
	struct strbuf value = { 0 };
	struct slice text = slice_of(fallback);

	if (net_request_parameter(request, name, 0, &value))
		text = arena_copy(&asked->arena, strbuf_slice(&value));
	strbuf_free(&value);
	return text;
}

bool parameters_is_set(struct parameters *asked, const struct net_request *request,
		       const char *name)
{
	return slice_is(parameters_text(asked, request, name, "0"), "1");
}

static int time_parameter(struct parameters *asked, const struct net_request *request,
			  const char *name, const char *fallback, int64_t now_ns, int64_t *ret,
			  struct err *err)
{
	struct slice text = parameters_text(asked, request, name, fallback);

	if (units_parse_time(text, now_ns, ret, err))
		return err_wrap(err, "parameter \"%s\"", name);
	return 0;
}

static int read_times(struct parameters *asked, const struct net_request *request, int64_t now_ns,
		      struct err *err)
{
	struct query_params *params = &asked->params;
	struct slice at = parameters_text(asked, request, "at", "");
	int rc;

	if (at.len) {
		rc = units_parse_time(at, now_ns, &params->moment_ns, err);
		if (rc)
			return err_wrap(err, "parameter \"at\"");
		params->at_moment = true;
		params->moment_window_ns = PARAMETERS_MOMENT_WINDOW_NS;
		params->from_ns = params->moment_ns - PARAMETERS_MOMENT_WINDOW_NS;
		params->to_ns = params->moment_ns + PARAMETERS_MOMENT_WINDOW_NS;
		return 0;
	}
	rc = time_parameter(asked, request, "to", "now", now_ns, &params->to_ns, err);
	if (!rc)
		rc = time_parameter(asked, request, "from", "now-1h", now_ns, &params->from_ns,
				    err);
	if (!rc && params->from_ns > params->to_ns)
		return err_set(err, ERR_INVALID, "parameter \"from\" is later than \"to\"");
	return rc;
}

int parameters_group_by(struct parameters *asked, struct slice comma_list, struct err *err)
{
	struct query_params *params = &asked->params;

	while (comma_list.len) {
		struct slice name = slice_cut(comma_list, ',', &comma_list);

		if (!name.len)
			continue;
		if (params->group_by_count == QUERY_GROUP_BY_MAX)
			return err_set(err, ERR_LIMIT, "group by: more than %d labels",
				       QUERY_GROUP_BY_MAX);
		params->group_by[params->group_by_count++] = arena_copy(&asked->arena, name);
	}
	return 0;
}

static int read_demangle(struct parameters *asked, const struct net_request *request,
			 struct err *err)
{
	struct slice mode = parameters_text(asked, request, "demangle", "full");

	if (demangle_parse_mode(mode, &asked->params.demangle))
		return 0;
	return err_set(
		err, ERR_INVALID,
		"parameter \"demangle\": \"%.*s\" is not one of none, simple, templates, full",
		SLICE_FMT(mode));
}

static int read_selector(struct parameters *asked, struct slice text, enum parameters_need need,
			 struct err *err)
{
	int rc = selector_parse(text, &asked->selector, err);

	if (rc)
		return rc;
	asked->params.selector = &asked->selector;
	if (need == PARAMETERS_TYPE_NEEDED && !asked->selector.has_type)
		return err_set(err, ERR_INVALID,
			       "the selector must start with a profile type, for example "
			       "on_cpu:samples:count:cpu:nanoseconds:delta{comm=\"nginx\"}; "
			       "GET /api/v1/types lists those there are");
	return 0;
}

static int read_filters(struct parameters *asked, const struct net_request *request,
			struct err *err)
{
	struct strbuf text = { 0 };
	int rc = 0;

	for (size_t i = 0; !rc && net_request_parameter(request, "filter", i, &text); i++) {
		rc = filter_list_parse(&asked->filters, strbuf_slice(&text), err);
		strbuf_clear(&text);
	}
	strbuf_free(&text);
	asked->params.filters = &asked->filters;
	return rc;
}

/* "FROM-TO" in milliseconds; times before 1970 have no cells. */
static bool read_cell(struct slice text, struct query_span *ret)
{
	const uint64_t max_ms = (uint64_t)UNITS_TIME_MAX_NS / CLOCK_NS_PER_MS;
	uint64_t from_ms, to_ms;
	struct slice rest;

	if (!slice_parse_u64(slice_cut(text, '-', &rest), &from_ms) ||
	    !slice_parse_u64(rest, &to_ms) || from_ms > to_ms || to_ms > max_ms)
		return false;
	*ret = (struct query_span){ (int64_t)from_ms * CLOCK_NS_PER_MS,
				    (int64_t)to_ms * CLOCK_NS_PER_MS };
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct query_span *left = a, *right = b;

	return (left->from_ns > right->from_ns) - (left->from_ns < right->from_ns);
}

/* Sorted, those that touch as one. */
static size_t join_cells(struct query_span *spans, size_t count)
{
	size_t kept = 0;

	qsort(spans, count, sizeof(*spans), by_start);
	for (size_t i = 0; i < count; i++) {
		if (!kept || spans[i].from_ns > spans[kept - 1].to_ns)
			spans[kept++] = spans[i];
		else if (spans[i].to_ns > spans[kept - 1].to_ns)
			spans[kept - 1].to_ns = spans[i].to_ns;
	}
	return kept;
}

static int read_cells(struct parameters *asked, const struct net_request *request, struct err *err)
{
	struct slice text = parameters_text(asked, request, "cells", "");
	struct query_span *spans;
	size_t count = 0;

	if (!text.len) {
		parameters_times(asked, request, INT64_MAX);
		return 0;
	}
	spans = arena_new_array(&asked->arena, struct query_span, PARAMETERS_CELLS_MAX);
	while (text.len && spans) {
		struct slice cell = slice_cut(text, ',', &text);

		if (count == PARAMETERS_CELLS_MAX)
			return err_set(err, ERR_LIMIT, "parameter \"cells\": more than %d",
				       PARAMETERS_CELLS_MAX);
		if (!read_cell(cell, &spans[count++]))
			return err_set(err, ERR_INVALID,
				       "parameter \"cells\": \"%.*s\" is not FROM-TO in ms",
				       (int)(cell.len < 64 ? cell.len : 64), cell.data);
	}
	asked->params.spans = spans;
	asked->params.spans_count = spans ? join_cells(spans, count) : 0;
	parameters_times(asked, request, 0);
	return 0;
}

void parameters_times(struct parameters *asked, const struct net_request *request, int64_t step_ns)
{
	struct slice text = parameters_text(asked, request, "times", "");

	asked->params.by_times =
		!asked->params.at_moment &&
		(text.len ? slice_is(text, "1") : step_ns < PARAMETERS_TIMES_BELOW_NS);
}

static int read_id(struct parameters *asked, const struct net_request *request, struct err *err)
{
	asked->id = parameters_text(asked, request, "id", "");
	if (asked->id.len <= ACTIVE_QUERY_ID_BYTES_MAX && slice_is_utf8(asked->id))
		return 0;
	return err_set(err, ERR_INVALID, "parameter \"id\": more than %d bytes, or no UTF-8",
		       ACTIVE_QUERY_ID_BYTES_MAX);
}

static int read_names_wait(struct parameters *asked, const struct net_request *request,
			   struct err *err)
{
	struct slice text = parameters_text(asked, request, "names_wait", "");

	if (!text.len)
		return 0;
	if (units_parse_duration(text, &asked->names_wait_ns, err))
		return err_wrap(err, "parameter \"names_wait\"");
	if (!asked->names_wait_ns)
		asked->names_wait_ns = 1;
	return 0;
}

static int read_base_times(struct parameters *asked, const struct net_request *request,
			   int64_t now_ns, struct err *err)
{
	struct query_params *params = &asked->params;
	int rc = time_parameter(asked, request, "base_from", "", now_ns, &params->from_ns, err);

	if (!rc)
		rc = time_parameter(asked, request, "base_to", "", now_ns, &params->to_ns, err);
	if (!rc && params->from_ns > params->to_ns)
		rc = err_set(err, ERR_INVALID, "parameter \"base_from\" is later than \"base_to\"");
	return rc;
}

int parameters_read(struct parameters *asked, const struct net_request *request,
		    enum parameters_need need, int64_t now_ns, struct err *err)
{
	int rc = read_selector(asked, parameters_text(asked, request, "query", ""), need, err);

	if (!rc)
		rc = read_times(asked, request, now_ns, err);
	if (!rc)
		rc = parameters_group_by(asked, parameters_text(asked, request, "group_by", ""),
					 err);
	if (!rc)
		rc = read_filters(asked, request, err);
	if (!rc)
		rc = read_demangle(asked, request, err);
	if (!rc)
		rc = read_cells(asked, request, err);
	if (!rc)
		rc = read_names_wait(asked, request, err);
	return rc ? rc : read_id(asked, request, err);
}

int parameters_read_base(struct parameters *asked, const struct net_request *request,
			 int64_t now_ns, struct err *err)
{
	struct slice text = parameters_text(asked, request, "base_query", "");
	int rc;

	if (!text.len)
		text = parameters_text(asked, request, "query", "");
	rc = read_selector(asked, text, PARAMETERS_TYPE_NEEDED, err);
	return rc ? rc : read_base_times(asked, request, now_ns, err);
}

int parameters_take(struct parameters *asked, struct slice selector, enum parameters_need need,
		    int64_t from_ns, int64_t to_ns, struct err *err)
{
	int rc = read_selector(asked, selector, need, err);

	asked->params.from_ns = from_ns;
	asked->params.to_ns = to_ns;
	if (!rc && from_ns > to_ns)
		rc = err_set(err, ERR_INVALID, "start is later than end");
	return rc;
}
