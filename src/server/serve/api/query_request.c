/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/api/query_request.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "config/units.h"
#include "server/query/diff/compare.h"
#include "server/serve/admission/answer_cache.h"
#include "server/serve/admission/active_queries.h"
#include "server/serve/admission/coalesce.h"
#include "server/serve/tenant.h"
#include "server/serve/admission/admission.h"

#define QUERY_REQUEST_ARENA_BYTES ((size_t)1 << 20)
#define QUERY_REQUEST_DEADLINE_NS (60 * CLOCK_NS_PER_S)
#define LARGE_STACKS ((uint64_t)1 << 18) /* of all segments of a query that is a large one */

struct slice query_request_text(struct query_request *query, const struct net_request *request,
				const char *name, const char *fallback)
{
	struct strbuf value = { 0 };
	struct slice text = slice_of(fallback);

	if (net_request_parameter(request, name, 0, &value))
		text = arena_copy(&query->arena, strbuf_slice(&value));
	strbuf_free(&value);
	return text;
}

bool query_request_is_set(struct query_request *query, const struct net_request *request,
			  const char *name)
{
	return slice_is(query_request_text(query, request, name, "0"), "1");
}

static int time_parameter(struct query_request *query, const struct net_request *request,
			  const char *name, const char *fallback, int64_t now_ns, int64_t *ret,
			  struct err *err)
{
	struct slice text = query_request_text(query, request, name, fallback);

	if (units_parse_time(text, now_ns, ret, err))
		return err_wrap(err, "parameter \"%s\"", name);
	return 0;
}

static int read_times(struct query_request *query, const struct net_request *request,
		      struct err *err)
{
	struct query_params *params = &query->params;
	int64_t now_ns = clock_real_ns();
	struct slice at = query_request_text(query, request, "at", "");
	int rc;

	if (at.len) {
		rc = units_parse_time(at, now_ns, &params->moment_ns, err);
		if (rc)
			return err_wrap(err, "parameter \"at\"");
		params->at_moment = true;
		params->moment_window_ns = QUERY_REQUEST_MOMENT_WINDOW_NS;
		params->from_ns = params->moment_ns - QUERY_REQUEST_MOMENT_WINDOW_NS;
		params->to_ns = params->moment_ns + QUERY_REQUEST_MOMENT_WINDOW_NS;
		return 0;
	}
	rc = time_parameter(query, request, "to", "now", now_ns, &params->to_ns, err);
	if (!rc)
		rc = time_parameter(query, request, "from", "now-1h", now_ns, &params->from_ns,
				    err);
	if (!rc && params->from_ns > params->to_ns)
		return err_set(err, ERR_INVALID, "parameter \"from\" is later than \"to\"");
	return rc;
}

int query_request_group_by(struct query_request *query, struct slice comma_list, struct err *err)
{
	struct query_params *params = &query->params;

	while (comma_list.len) {
		struct slice name = slice_cut(comma_list, ',', &comma_list);

		if (!name.len)
			continue;
		if (params->group_by_count == QUERY_GROUP_BY_MAX)
			return err_set(err, ERR_LIMIT, "group by: more than %d labels",
				       QUERY_GROUP_BY_MAX);
		params->group_by[params->group_by_count++] = arena_copy(&query->arena, name);
	}
	return 0;
}

static int read_demangle(struct query_request *query, const struct net_request *request,
			 struct err *err)
{
	struct slice mode = query_request_text(query, request, "demangle", "full");

	if (demangle_parse_mode(mode, &query->params.demangle))
		return 0;
	return err_set(
		err, ERR_INVALID,
		"parameter \"demangle\": \"%.*s\" is not one of none, simple, templates, full",
		SLICE_FMT(mode));
}

static int read_selector(struct query_request *query, struct slice text,
			 enum query_request_need need, struct err *err)
{
	int rc = selector_parse(text, &query->selector, err);

	if (rc)
		return rc;
	query->params.selector = &query->selector;
	if (need == QUERY_REQUEST_TYPE_NEEDED && !query->selector.has_type)
		return err_set(err, ERR_INVALID,
			       "the selector must start with a profile type, for example "
			       "on_cpu:samples:count:cpu:nanoseconds:delta{comm=\"nginx\"}; "
			       "GET /api/v1/types lists those there are");
	return 0;
}

static int read_filters(struct query_request *query, const struct net_request *request,
			struct err *err)
{
	struct strbuf text = { 0 };
	int rc = 0;

	for (size_t i = 0; !rc && net_request_parameter(request, "filter", i, &text); i++) {
		rc = filter_list_parse(&query->filters, strbuf_slice(&text), err);
		strbuf_clear(&text);
	}
	strbuf_free(&text);
	query->params.filters = &query->filters;
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
	size_t cache = 0;

	qsort(spans, count, sizeof(*spans), by_start);
	for (size_t i = 0; i < count; i++) {
		if (!cache || spans[i].from_ns > spans[cache - 1].to_ns)
			spans[cache++] = spans[i];
		else if (spans[i].to_ns > spans[cache - 1].to_ns)
			spans[cache - 1].to_ns = spans[i].to_ns;
	}
	return cache;
}

static int read_cells(struct query_request *query, const struct net_request *request,
		      struct err *err)
{
	struct slice text = query_request_text(query, request, "cells", "");
	struct query_span *spans;
	size_t count = 0;

	if (!text.len) {
		query_request_times(query, request, INT64_MAX);
		return 0;
	}
	spans = arena_new_array(&query->arena, struct query_span, QUERY_REQUEST_CELLS_MAX);
	while (text.len && spans) {
		struct slice cell = slice_cut(text, ',', &text);

		if (count == QUERY_REQUEST_CELLS_MAX)
			return err_set(err, ERR_LIMIT, "parameter \"cells\": more than %d",
				       QUERY_REQUEST_CELLS_MAX);
		if (!read_cell(cell, &spans[count++]))
			return err_set(err, ERR_INVALID,
				       "parameter \"cells\": \"%.*s\" is not FROM-TO in ms",
				       (int)(cell.len < 64 ? cell.len : 64), cell.data);
	}
	query->params.spans = spans;
	query->params.spans_count = spans ? join_cells(spans, count) : 0;
	query_request_times(query, request, 0);
	return 0;
}

void query_request_times(struct query_request *query, const struct net_request *request,
			 int64_t step_ns)
{
	struct slice text = query_request_text(query, request, "times", "");

	query->params.by_times =
		!query->params.at_moment &&
		(text.len ? slice_is(text, "1") : step_ns < QUERY_REQUEST_TIMES_BELOW_NS);
}

static int read_id(struct query_request *query, const struct net_request *request, struct err *err)
{
	query->id = query_request_text(query, request, "id", "");
	if (query->id.len <= ACTIVE_QUERY_ID_BYTES_MAX && slice_is_utf8(query->id))
		return 0;
	return err_set(err, ERR_INVALID, "parameter \"id\": more than %d bytes, or no UTF-8",
		       ACTIVE_QUERY_ID_BYTES_MAX);
}

static int begin(struct query_request *query, struct serve *serve,
		 const struct net_request *request, struct err *err)
{
	int64_t deadline_at_ns = clock_monotonic_ns() + QUERY_REQUEST_DEADLINE_NS;

	*query = (struct query_request){ .serve = serve, .request = request };
	arena_init(&query->arena, QUERY_REQUEST_ARENA_BYTES);
	if (request->deadline_at_ns && request->deadline_at_ns < deadline_at_ns)
		deadline_at_ns = request->deadline_at_ns;
	query->params.limits.deadline_at_ns = deadline_at_ns;
	query->params.limits.cancelled = request->cancelled;
	query->params.limits.pool = &serve->queries;
	return tenant_of(serve, request, &query->tenant, err);
}

static void drop_snapshot(struct query_request *query)
{
	if (query->store)
		store_snapshot_release(query->store, &query->snapshot);
	query->store = NULL;
	query->source = (struct query_source){ 0 };
}

static void list(struct query_request *query)
{
	struct strbuf text = { 0 };
	struct active_query_what what = {
		.id = query->id,
		.tenant = query->tenant,
		.path = query->request->path,
		.by = query->request->peer,
		.from_ns = query->params.from_ns,
		.to_ns = query->params.to_ns,
	};

	if (query->is_part || query->active)
		return;
	selector_format(&text, &query->selector);
	what.query = strbuf_slice(&text);
	query->active = active_queries_add(query->serve->active, &what);
	strbuf_free(&text);
	query->params.limits.stopped = active_queries_stopped(query->active);
	query->params.limits.progress = active_queries_progress(query->active);
}

/* `asked` but for range and selector. */
static int take_snapshot(struct query_request *query, struct store_query asked, struct err *err)
{
	int rc;

	list(query);
	drop_snapshot(query);
	asked.from_ns = query->params.from_ns;
	if (query->params.by_times)
		asked.from_ns -= QUERY_TIMES_BACK_NS;
	asked.to_ns = query->params.to_ns;
	asked.selector = &query->selector;
	asked.one_tenant = query->serve->tenants;
	asked.tenant = query->tenant;
	rc = store_snapshot(query->serve->store, &asked, &query->snapshot, err);
	if (rc)
		return rc;
	query->store = query->serve->store;
	query->version = query->snapshot.version;
	if (query->version)
		query->version =
			hash_mix(query->version, resolver_version(query->serve->resolver)) | 1;
	query->source = (struct query_source){ query->snapshot.segments, query->snapshot.count,
					       query->serve->resolver, query->serve->indexes };
	return 0;
}

int query_request_open(struct query_request *query, struct err *err)
{
	const struct store_query asked = { .by_series = true };

	return take_snapshot(query, asked, err);
}

/* The peer without its port: one client, however many connections it has. */
static struct slice host_of(struct slice peer)
{
	for (size_t i = peer.len; i > 0; i--)
		if (peer.data[i - 1] == ':')
			return slice_from(peer.data, i - 1);
	return peer;
}

static struct admission_ask patience_of(const struct query_request *query)
{
	const struct query_limits *limits = &query->params.limits;

	return (struct admission_ask){ .deadline_at_ns = limits->deadline_at_ns,
				       .cancelled = limits->cancelled,
				       .stopped = limits->stopped };
}

static int ask_turn(struct query_request *query, enum admission_size size, bool at_once,
		    struct err *err)
{
	struct admission_ask ask = patience_of(query);
	struct strbuf client = { 0 };
	int rc;

	if (query->ticket)
		return 0;
	strbuf_add_slice(&client, query->tenant);
	strbuf_add_byte(&client, '\n');
	strbuf_add_slice(&client, host_of(query->request->peer));
	ask.client = strbuf_slice(&client);
	ask.size = size;
	ask.at_once = at_once;
	rc = admission_take(query->serve->admission, &ask, &query->ticket, err);
	strbuf_free(&client);
	return rc;
}

static enum admission_size size_of(const struct query_request *query,
				   const struct query_request *base)
{
	uint64_t stacks = 0;

	for (size_t i = 0; i < query->source.segments_count; i++)
		stacks += query->source.segments[i].slots_count;
	for (size_t i = 0; base && i < base->source.segments_count; i++)
		stacks += base->source.segments[i].slots_count;
	return stacks > LARGE_STACKS ? ADMISSION_LARGE : ADMISSION_SMALL;
}

/* The snapshot for sums of all reports in the range, or for the nearest to a moment. */
static int take_for_tree(struct query_request *query, struct err *err)
{
	const struct query_params *params = &query->params;
	const struct store_query asked = {
		.names = params->group_by,
		.names_count = params->group_by_count,
		.sums_only = !params->at_moment && !params->spans_count && !params->by_times,
		.by_series = params->at_moment || params->spans_count || params->by_times,
	};

	return take_snapshot(query, asked, err);
}

static int take_both(struct query_request *base, struct query_request *query, struct err *err)
{
	int rc = take_for_tree(query, err); /* listed from here on */

	return rc || !base ? rc : take_for_tree(base, err);
}

/* Waits for a turn, without a snapshot: that would hold what others could give back. */
static int wait_for_turn(struct query_request *base, struct query_request *query,
			 enum admission_size size, struct err *err)
{
	int rc;

	drop_snapshot(query);
	if (base)
		drop_snapshot(base);
	rc = ask_turn(query, size, false, err);
	return rc ? rc : take_both(base, query, err);
}

/* Snapshots and a turn; `base` is what a diff compares to, or NULL. */
static int begin_tree(struct query_request *base, struct query_request *query, struct err *err)
{
	enum admission_size size;
	int rc;

	if (query->ticket && query->store && !base)
		return 0;
	rc = take_both(base, query, err);
	if (rc)
		return rc;
	size = size_of(query, base);
	rc = ask_turn(query, size, true, err);
	return rc == -ERR_BUSY ? wait_for_turn(base, query, size, err) : rc;
}

static int compute(struct query_request *base, struct query_request *query, struct tree **ret,
		   struct err *err)
{
	if (query->names_patience_ns)
		query->params.limits.names_until_ns =
			clock_monotonic_ns() + query->names_patience_ns;
	if (base)
		return query_diff(&base->source, &base->params, &query->source, &query->params, ret,
				  err);
	return query_tree(&query->source, &query->params, ret, err);
}

/* When others hold the memory, once more, with nobody beside. */
static int answer_tree(struct query_request *base, struct query_request *query, struct tree **ret,
		       struct err *err)
{
	int rc = begin_tree(base, query, err);

	query->params.limits.crowded = &query->crowded;
	if (!rc)
		rc = compute(base, query, ret, err);
	if (rc != -ERR_NO_MEMORY || !query->ticket || !atomic_load(&query->crowded))
		return rc;
	admission_give(query->serve->admission, query->ticket);
	query->ticket = NULL;
	rc = wait_for_turn(base, query, ADMISSION_ALONE, err);
	return rc ? rc : compute(base, query, ret, err);
}

int query_request_tree(struct query_request *query, struct tree **ret, struct err *err)
{
	int rc = answer_tree(NULL, query, ret, err);

	if (!rc) {
		(*ret)->parts_unreadable += query->snapshot.parts_unreadable;
		if ((*ret)->names_pending || (*ret)->parts_unreadable)
			query->version = 0;
		(*ret)->stats.kept = query->version;
	}
	return rc;
}

int query_request_diff(struct query_request *base, struct query_request *query, struct tree **ret,
		       struct err *err)
{
	int rc = answer_tree(base, query, ret, err);

	if (!rc)
		(*ret)->parts_unreadable +=
			base->snapshot.parts_unreadable + query->snapshot.parts_unreadable;
	return rc;
}

/* The snapshot for sums of each step, of single series too if they are told apart. */
static int take_for_steps(struct query_request *query, bool by_series, struct err *err)
{
	const struct store_query asked = {
		.step_ns =
			compare_step(query->params.from_ns, query->params.to_ns, COMPARE_REPORT_NS),
		.by_series = by_series,
	};

	return take_snapshot(query, asked, err);
}

int query_request_check_size(const struct query_request *query, double bytes, struct err *err)
{
	struct query_pool *pool = query->params.limits.pool;
	double left = (double)pool->limit_bytes - (double)atomic_load(&pool->used_bytes);

	if (!pool->limit_bytes || bytes <= left)
		return 0;
	return err_set(
		err, ERR_NO_MEMORY,
		"the answer would have %.0f MiB, and queries may use %.0f more; narrow the "
		"time range or the matchers, or take a format that has each name once (pprof)",
		bytes / (1 << 20), fmax(0, left) / (1 << 20));
}

int query_request_compare(struct query_request *base, struct query_request *query,
			  struct tree *tree, struct err *err)
{
	struct query_params base_params = query->params;
	const struct compare_side sides[SIGNIFICANCE_SIDES] = {
		[SIGNIFICANCE_BASE] = { &base->source, &base_params },
		[SIGNIFICANCE_OTHER] = { &query->source, &query->params },
	};
	int rc = take_for_steps(base, true, err);

	base_params.selector = base->params.selector;
	base_params.from_ns = base->params.from_ns;
	base_params.to_ns = base->params.to_ns;
	if (!rc)
		rc = take_for_steps(query, true, err);
	return rc ? rc : compare(tree, sides, COMPARE_REPORT_NS, err);
}

int query_request_intervals(struct query_request *query, struct tree *tree, struct err *err)
{
	const struct compare_side side = { &query->source, &query->params };
	int rc = take_for_steps(query, false, err);

	query->version = 0; /* it was of the tree's segments alone */
	tree->stats.kept = false;
	return rc ? rc : compare_intervals(tree, &side, COMPARE_REPORT_NS, err);
}

int query_request_chart(struct query_request *query, int64_t step_ns, struct flamechart *ret,
			struct err *err)
{
	int rc = query_request_open(query, err);

	if (!rc)
		rc = ask_turn(query, size_of(query, NULL), true, err);
	if (rc == -ERR_BUSY) {
		enum admission_size size = size_of(query, NULL);

		drop_snapshot(query);
		rc = ask_turn(query, size, false, err);
		if (!rc)
			rc = query_request_open(query, err);
	}
	if (!rc)
		rc = flamechart_make(&query->source, &query->params, step_ns, ret, err);
	if (!rc)
		ret->parts_unreadable += query->snapshot.parts_unreadable;
	return rc;
}

/* The snapshot for totals of steps. */
static int take_for_series(struct query_request *query, const struct query_range_params *range,
			   struct err *err)
{
	const struct store_query asked = {
		.names = range->base.group_by,
		.names_count = range->sum_all ? 0 : range->base.group_by_count,
		.step_ns = range->base.by_times ? 0 : range->step_ns,
		.by_series = range->base.by_times || range->base.series_apart ||
			     (!range->sum_all && !range->base.group_by_count),
	};

	return take_snapshot(query, asked, err);
}

int query_request_series(struct query_request *query, const struct query_range_params *range,
			 struct query_series_set *ret, struct err *err)
{
	struct query_range_params listed = *range;
	int rc = 0;

	if (query->filters.count)
		return err_set(err, ERR_UNSUPPORTED,
			       "filters are for trees: a time series is made of totals");
	if (!query->ticket) {
		drop_snapshot(query); /* who waits holds nothing */
		list(query);
		rc = ask_turn(query, ADMISSION_SMALL, false, err);
	}
	if (!rc && !query->store)
		rc = take_for_series(query, range, err);
	listed.base.limits = query->params.limits;
	if (!rc)
		rc = query_series(&query->source, &listed, ret, err);
	if (!rc) {
		ret->parts_unreadable += query->snapshot.parts_unreadable;
		if (ret->parts_unreadable)
			query->version = 0;
		ret->stats.kept = query->version;
	}
	return rc;
}

/* What makes the answer, unless it cannot be told or is of this one time. */
static void find_key(struct query_request *query)
{
	const struct query_params *params = &query->params;
	struct strbuf times = { 0 }, key = { 0 };

	strbuf_addf(&times, "%d %lld %lld %lld", params->at_moment, (long long)params->from_ns,
		    (long long)params->to_ns, (long long)params->moment_ns);
	if (!query_request_is_set(query, query->request, "explain") &&
	    coalesce_key(query->request, query->tenant, strbuf_slice(&times), &key))
		query->key = arena_copy(&query->arena, strbuf_slice(&key));
	strbuf_free(&times);
	strbuf_free(&key);
}

static bool is_kept(const struct query_request *query, struct net_response *response)
{
	return query->key.len && query->version &&
	       answer_cache_find(query->serve->cache, query->key, query->version,
				 clock_monotonic_ns(), response);
}

/* Leads and has its turn, or has the answer of another. */
static int lead_or_follow(struct query_request *query, enum admission_size size,
			  struct net_response *response, bool *ret_is_answered, struct err *err)
{
	const struct admission_ask patience = patience_of(query);
	struct serve *serve = query->serve;
	int rc = 0;

	if (query->key.len) {
		rc = coalesce_enter(serve->coalesce, query->key, &patience, response, &query->lead,
				    err);
		*ret_is_answered = !rc && !query->lead;
	}
	if (!rc && !*ret_is_answered)
		rc = ask_turn(query, size, false, err);
	if (!rc && query->lead)
		coalesce_close(serve->coalesce, query->lead);
	return rc;
}

static int take_for(struct query_request *query, const struct query_range_params *range,
		    struct err *err)
{
	return range ? take_for_series(query, range, err) : take_for_tree(query, err);
}

int query_request_share(struct query_request *query, const struct query_range_params *range,
			struct net_response *response, bool *ret_is_answered, struct err *err)
{
	enum admission_size size;
	int rc = take_for(query, range, err);

	*ret_is_answered = false;
	if (rc)
		return rc;
	find_key(query);
	*ret_is_answered = is_kept(query, response);
	if (*ret_is_answered)
		return 0;
	size = range ? ADMISSION_SMALL : size_of(query, NULL);
	rc = ask_turn(query, size, true, err);
	if (rc != -ERR_BUSY)
		return rc;
	drop_snapshot(query); /* it would hold what others could give back */
	rc = lead_or_follow(query, size, response, ret_is_answered, err);
	if (rc || *ret_is_answered)
		return rc;
	rc = take_for(query, range, err);
	if (!rc && is_kept(query, response)) { /* since it began to wait */
		*ret_is_answered = true;
		query->version = 0;
		query_request_answered(query, 0, response);
	}
	return rc;
}

/* What another client of the same query would get as well. */
static bool is_of_query(int rc)
{
	return rc != -ERR_CANCELLED && rc != -ERR_DEADLINE && rc != -ERR_NO_MEMORY &&
	       rc != -ERR_BUSY;
}

void query_request_answered(struct query_request *query, int rc,
			    const struct net_response *response)
{
	if (query->lead)
		coalesce_finish(query->serve->coalesce, query->lead,
				is_of_query(rc) ? response : NULL);
	query->lead = NULL;
	if (!rc && query->key.len && query->version && response->status == 200)
		answer_cache_put(query->serve->cache, query->key, query->version,
				 clock_monotonic_ns(), response);
	query->key = SLICE_LITERAL("");
}

int query_request_read(struct serve *serve, const struct net_request *request,
		       enum query_request_need need, struct query_request *ret, struct err *err)
{
	int rc;

	rc = begin(ret, serve, request, err);
	if (!rc)
		rc = read_selector(ret, query_request_text(ret, request, "query", ""), need, err);
	if (!rc)
		rc = read_times(ret, request, err);
	if (!rc)
		rc = query_request_group_by(ret, query_request_text(ret, request, "group_by", ""),
					    err);
	if (!rc)
		rc = read_filters(ret, request, err);
	if (!rc)
		rc = read_demangle(ret, request, err);
	if (!rc)
		rc = read_cells(ret, request, err);
	if (!rc)
		rc = read_id(ret, request, err);
	if (rc)
		query_request_end(ret);
	return rc;
}

static int read_base_times(struct query_request *query, const struct net_request *request,
			   struct err *err)
{
	struct query_params *params = &query->params;
	int64_t now_ns = clock_real_ns();
	int rc = time_parameter(query, request, "base_from", "", now_ns, &params->from_ns, err);

	if (!rc)
		rc = time_parameter(query, request, "base_to", "", now_ns, &params->to_ns, err);
	if (!rc && params->from_ns > params->to_ns)
		rc = err_set(err, ERR_INVALID, "parameter \"base_from\" is later than \"base_to\"");
	return rc;
}

int query_request_read_base(struct serve *serve, const struct net_request *request,
			    struct query_request *ret, struct err *err)
{
	struct slice text;
	int rc = begin(ret, serve, request, err);

	if (!rc) {
		text = query_request_text(ret, request, "base_query", "");
		if (!text.len)
			text = query_request_text(ret, request, "query", "");
		rc = read_selector(ret, text, QUERY_REQUEST_TYPE_NEEDED, err);
	}
	ret->is_part = true;
	if (!rc)
		rc = read_base_times(ret, request, err);
	if (rc)
		query_request_end(ret);
	return rc;
}

/* For lists of what there is: they cost little each, but are asked for by everyone at once. */
static int open_in_turn(struct query_request *query, struct err *err)
{
	int rc;

	list(query);
	rc = ask_turn(query, ADMISSION_SMALL, false, err);
	return rc ? rc : query_request_open(query, err);
}

int query_request_begin(struct serve *serve, const struct net_request *request,
			enum query_request_need need, struct query_request *ret, struct err *err)
{
	int rc = query_request_read(serve, request, need, ret, err);

	if (rc)
		return rc;
	rc = open_in_turn(ret, err);
	if (rc)
		query_request_end(ret);
	return rc;
}

int query_request_begin_with(struct serve *serve, const struct net_request *request,
			     struct slice selector, enum query_request_need need, int64_t from_ns,
			     int64_t to_ns, struct query_request *ret, struct err *err)
{
	int rc;

	rc = begin(ret, serve, request, err);
	ret->params.from_ns = from_ns;
	ret->params.to_ns = to_ns;
	if (!rc)
		rc = read_selector(ret, selector, need, err);
	if (!rc && from_ns > to_ns)
		rc = err_set(err, ERR_INVALID, "start is later than end");
	if (!rc && need == QUERY_REQUEST_SELECTOR_OPTIONAL)
		rc = open_in_turn(ret, err);
	if (rc)
		query_request_end(ret);
	return rc;
}

void query_request_end(struct query_request *query)
{
	drop_snapshot(query);
	query_request_answered(query, -ERR_CANCELLED, NULL);
	if (query->ticket)
		admission_give(query->serve->admission, query->ticket);
	if (query->active)
		active_queries_remove(query->serve->active, query->active);
	filter_list_free(&query->filters);
	selector_free(&query->selector);
	arena_free(&query->arena);
	*query = (struct query_request){ 0 };
}

void query_request_answer(struct serve *serve, const struct net_request *request,
			  struct net_response *response,
			  int (*write)(struct query_request *query,
				       const struct net_request *request, struct strbuf *out,
				       struct err *err))
{
	struct query_request query;
	struct err err;
	int rc = query_request_read(serve, request, QUERY_REQUEST_TYPE_NEEDED, &query, &err);

	response->content_type = "application/json";
	if (!rc) {
		rc = write(&query, request, &response->body, &err);
		query_request_end(&query);
	}
	if (rc)
		net_response_error(request, response, &err);
}
