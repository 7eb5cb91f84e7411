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

#define QUESTION_ARENA_BYTES ((size_t)1 << 20)
#define QUESTION_DEADLINE_NS (60 * CLOCK_NS_PER_S)
#define LARGE_STACKS ((uint64_t)1 << 18) /* of all segments of a question that is a large one */

struct slice question_text(struct question *question, const struct net_request *request,
			   const char *name, const char *fallback)
{
	struct strbuf value = { 0 };
	struct slice text = slice_of(fallback);

	if (net_request_parameter(request, name, 0, &value))
		text = arena_copy(&question->arena, strbuf_slice(&value));
	strbuf_free(&value);
	return text;
}

bool question_is_set(struct question *question, const struct net_request *request, const char *name)
{
	return slice_is(question_text(question, request, name, "0"), "1");
}

static int time_parameter(struct question *question, const struct net_request *request,
			  const char *name, const char *fallback, int64_t now_ns, int64_t *ret,
			  struct err *err)
{
	struct slice text = question_text(question, request, name, fallback);

	if (units_parse_time(text, now_ns, ret, err))
		return err_wrap(err, "parameter \"%s\"", name);
	return 0;
}

static int read_times(struct question *question, const struct net_request *request, struct err *err)
{
	struct query_params *params = &question->params;
	int64_t now_ns = clock_real_ns();
	struct slice at = question_text(question, request, "at", "");
	int rc;

	if (at.len) {
		rc = units_parse_time(at, now_ns, &params->moment_ns, err);
		if (rc)
			return err_wrap(err, "parameter \"at\"");
		params->at_moment = true;
		params->moment_window_ns = QUESTION_MOMENT_WINDOW_NS;
		params->from_ns = params->moment_ns - QUESTION_MOMENT_WINDOW_NS;
		params->to_ns = params->moment_ns + QUESTION_MOMENT_WINDOW_NS;
		return 0;
	}
	rc = time_parameter(question, request, "to", "now", now_ns, &params->to_ns, err);
	if (!rc)
		rc = time_parameter(question, request, "from", "now-1h", now_ns, &params->from_ns,
				    err);
	if (!rc && params->from_ns > params->to_ns)
		return err_set(err, ERR_INVALID, "parameter \"from\" is later than \"to\"");
	return rc;
}

int question_group_by(struct question *question, struct slice comma_list, struct err *err)
{
	struct query_params *params = &question->params;

	while (comma_list.len) {
		struct slice name = slice_cut(comma_list, ',', &comma_list);

		if (!name.len)
			continue;
		if (params->group_by_count == QUERY_GROUP_BY_MAX)
			return err_set(err, ERR_LIMIT, "group by: more than %d labels",
				       QUERY_GROUP_BY_MAX);
		params->group_by[params->group_by_count++] = arena_copy(&question->arena, name);
	}
	return 0;
}

static int read_demangle(struct question *question, const struct net_request *request,
			 struct err *err)
{
	struct slice mode = question_text(question, request, "demangle", "full");

	if (demangle_parse_mode(mode, &question->params.demangle))
		return 0;
	return err_set(err, ERR_INVALID,
		       "parameter \"demangle\": \"%.*s\" is none of none, simple, templates, full",
		       SLICE_FMT(mode));
}

static int read_selector(struct question *question, struct slice text, enum question_need need,
			 struct err *err)
{
	int rc = selector_parse(text, &question->selector, err);

	if (rc)
		return rc;
	question->params.selector = &question->selector;
	if (need == QUESTION_TYPE_NEEDED && !question->selector.has_type)
		return err_set(err, ERR_INVALID,
			       "the selector must start with a profile type, for example "
			       "on_cpu:samples:count:cpu:nanoseconds:delta{comm=\"nginx\"}; "
			       "GET /api/v1/types lists those there are");
	return 0;
}

static int read_filters(struct question *question, const struct net_request *request,
			struct err *err)
{
	struct strbuf text = { 0 };
	int rc = 0;

	for (size_t i = 0; !rc && net_request_parameter(request, "filter", i, &text); i++) {
		rc = filter_list_parse(&question->filters, strbuf_slice(&text), err);
		strbuf_clear(&text);
	}
	strbuf_free(&text);
	question->params.filters = &question->filters;
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

static int read_cells(struct question *question, const struct net_request *request, struct err *err)
{
	struct slice text = question_text(question, request, "cells", "");
	struct query_span *spans;
	size_t count = 0;

	if (!text.len) {
		question_times(question, request, INT64_MAX);
		return 0;
	}
	spans = arena_new_array(&question->arena, struct query_span, QUESTION_CELLS_MAX);
	while (text.len && spans) {
		struct slice cell = slice_cut(text, ',', &text);

		if (count == QUESTION_CELLS_MAX)
			return err_set(err, ERR_LIMIT, "parameter \"cells\": more than %d",
				       QUESTION_CELLS_MAX);
		if (!read_cell(cell, &spans[count++]))
			return err_set(err, ERR_INVALID,
				       "parameter \"cells\": \"%.*s\" is not FROM-TO in ms",
				       (int)(cell.len < 64 ? cell.len : 64), cell.data);
	}
	question->params.spans = spans;
	question->params.spans_count = spans ? join_cells(spans, count) : 0;
	question_times(question, request, 0);
	return 0;
}

void question_times(struct question *question, const struct net_request *request, int64_t step_ns)
{
	struct slice text = question_text(question, request, "times", "");

	question->params.by_times =
		!question->params.at_moment &&
		(text.len ? slice_is(text, "1") : step_ns < QUESTION_TIMES_BELOW_NS);
}

static int read_id(struct question *question, const struct net_request *request, struct err *err)
{
	question->id = question_text(question, request, "id", "");
	if (question->id.len <= RUNNING_ID_BYTES_MAX && slice_is_utf8(question->id))
		return 0;
	return err_set(err, ERR_INVALID, "parameter \"id\": more than %d bytes, or no UTF-8",
		       RUNNING_ID_BYTES_MAX);
}

static int begin(struct question *question, struct serve *serve, const struct net_request *request,
		 struct err *err)
{
	int64_t deadline_at_ns = clock_monotonic_ns() + QUESTION_DEADLINE_NS;

	*question = (struct question){ .serve = serve, .request = request };
	arena_init(&question->arena, QUESTION_ARENA_BYTES);
	if (request->deadline_at_ns && request->deadline_at_ns < deadline_at_ns)
		deadline_at_ns = request->deadline_at_ns;
	question->params.limits.deadline_at_ns = deadline_at_ns;
	question->params.limits.cancelled = request->cancelled;
	question->params.limits.pool = &serve->queries;
	return tenant_of(serve, request, &question->tenant, err);
}

static void drop_snapshot(struct question *question)
{
	if (question->store)
		store_snapshot_release(question->store, &question->snapshot);
	question->store = NULL;
	question->source = (struct query_source){ 0 };
}

static void list(struct question *question)
{
	struct strbuf text = { 0 };
	struct running_what what = {
		.id = question->id,
		.tenant = question->tenant,
		.path = question->request->path,
		.by = question->request->peer,
		.from_ns = question->params.from_ns,
		.to_ns = question->params.to_ns,
	};

	if (question->is_part || question->running)
		return;
	selector_format(&text, &question->selector);
	what.query = strbuf_slice(&text);
	question->running = running_add(question->serve->running, &what);
	strbuf_free(&text);
	question->params.limits.stopped = running_stopped(question->running);
	question->params.limits.progress = running_progress(question->running);
}

/* `asked` but for range and selector. */
static int take_snapshot(struct question *question, struct store_question asked, struct err *err)
{
	int rc;

	list(question);
	drop_snapshot(question);
	asked.from_ns = question->params.from_ns;
	if (question->params.by_times)
		asked.from_ns -= QUERY_TIMES_BACK_NS;
	asked.to_ns = question->params.to_ns;
	asked.selector = &question->selector;
	asked.one_tenant = question->serve->tenants;
	asked.tenant = question->tenant;
	rc = store_snapshot(question->serve->store, &asked, &question->snapshot, err);
	if (rc)
		return rc;
	question->store = question->serve->store;
	question->version = question->snapshot.version;
	if (question->version)
		question->version =
			hash_mix(question->version, resolver_version(question->serve->resolver)) |
			1;
	question->source =
		(struct query_source){ question->snapshot.segments, question->snapshot.count,
				       question->serve->resolver, question->serve->indexes };
	return 0;
}

int question_open(struct question *question, struct err *err)
{
	const struct store_question asked = { .by_series = true };

	return take_snapshot(question, asked, err);
}

/* The peer without its port: one client, however many connections it has. */
static struct slice host_of(struct slice peer)
{
	for (size_t i = peer.len; i > 0; i--)
		if (peer.data[i - 1] == ':')
			return slice_from(peer.data, i - 1);
	return peer;
}

static struct turns_ask patience_of(const struct question *question)
{
	const struct query_limits *limits = &question->params.limits;

	return (struct turns_ask){ .deadline_at_ns = limits->deadline_at_ns,
				   .cancelled = limits->cancelled,
				   .stopped = limits->stopped };
}

static int ask_turn(struct question *question, enum turns_size size, bool at_once, struct err *err)
{
	struct turns_ask ask = patience_of(question);
	struct strbuf client = { 0 };
	int rc;

	if (question->turn)
		return 0;
	strbuf_add_slice(&client, question->tenant);
	strbuf_add_byte(&client, '\n');
	strbuf_add_slice(&client, host_of(question->request->peer));
	ask.client = strbuf_slice(&client);
	ask.size = size;
	ask.at_once = at_once;
	rc = turns_take(question->serve->turns, &ask, &question->turn, err);
	strbuf_free(&client);
	return rc;
}

static enum turns_size size_of(const struct question *question, const struct question *base)
{
	uint64_t stacks = 0;

	for (size_t i = 0; i < question->source.segments_count; i++)
		stacks += question->source.segments[i].slots_count;
	for (size_t i = 0; base && i < base->source.segments_count; i++)
		stacks += base->source.segments[i].slots_count;
	return stacks > LARGE_STACKS ? TURNS_LARGE : TURNS_SMALL;
}

/* The snapshot for sums of all reports in the range, or for the nearest to a moment. */
static int take_for_tree(struct question *question, struct err *err)
{
	const struct query_params *params = &question->params;
	const struct store_question asked = {
		.names = params->group_by,
		.names_count = params->group_by_count,
		.sums_only = !params->at_moment && !params->spans_count && !params->by_times,
		.by_series = params->at_moment || params->spans_count || params->by_times,
	};

	return take_snapshot(question, asked, err);
}

static int take_both(struct question *base, struct question *question, struct err *err)
{
	int rc = take_for_tree(question, err); /* listed from here on */

	return rc || !base ? rc : take_for_tree(base, err);
}

/* Waits for a turn, without a snapshot: that would hold what others could give back. */
static int wait_for_turn(struct question *base, struct question *question, enum turns_size size,
			 struct err *err)
{
	int rc;

	drop_snapshot(question);
	if (base)
		drop_snapshot(base);
	rc = ask_turn(question, size, false, err);
	return rc ? rc : take_both(base, question, err);
}

/* Snapshots and a turn; `base` is what a diff compares to, or NULL. */
static int begin_tree(struct question *base, struct question *question, struct err *err)
{
	enum turns_size size;
	int rc;

	if (question->turn && question->store && !base)
		return 0;
	rc = take_both(base, question, err);
	if (rc)
		return rc;
	size = size_of(question, base);
	rc = ask_turn(question, size, true, err);
	return rc == -ERR_BUSY ? wait_for_turn(base, question, size, err) : rc;
}

static int compute(struct question *base, struct question *question, struct tree **ret,
		   struct err *err)
{
	if (question->names_patience_ns)
		question->params.limits.names_until_ns =
			clock_monotonic_ns() + question->names_patience_ns;
	if (base)
		return query_diff(&base->source, &base->params, &question->source,
				  &question->params, ret, err);
	return query_tree(&question->source, &question->params, ret, err);
}

/* When others hold the memory, once more, with nobody beside. */
static int answer_tree(struct question *base, struct question *question, struct tree **ret,
		       struct err *err)
{
	int rc = begin_tree(base, question, err);

	question->params.limits.crowded = &question->crowded;
	if (!rc)
		rc = compute(base, question, ret, err);
	if (rc != -ERR_NO_MEMORY || !question->turn || !atomic_load(&question->crowded))
		return rc;
	turns_give(question->serve->turns, question->turn);
	question->turn = NULL;
	rc = wait_for_turn(base, question, TURNS_ALONE, err);
	return rc ? rc : compute(base, question, ret, err);
}

int question_tree(struct question *question, struct tree **ret, struct err *err)
{
	int rc = answer_tree(NULL, question, ret, err);

	if (!rc) {
		(*ret)->parts_unreadable += question->snapshot.parts_unreadable;
		if ((*ret)->names_pending || (*ret)->parts_unreadable)
			question->version = 0;
		(*ret)->stats.kept = question->version;
	}
	return rc;
}

int question_diff(struct question *base, struct question *question, struct tree **ret,
		  struct err *err)
{
	int rc = answer_tree(base, question, ret, err);

	if (!rc)
		(*ret)->parts_unreadable +=
			base->snapshot.parts_unreadable + question->snapshot.parts_unreadable;
	return rc;
}

/* The snapshot for sums of each step, of single series too if they are told apart. */
static int take_for_steps(struct question *question, bool by_series, struct err *err)
{
	const struct store_question asked = {
		.step_ns = compare_step(question->params.from_ns, question->params.to_ns,
					COMPARE_REPORT_NS),
		.by_series = by_series,
	};

	return take_snapshot(question, asked, err);
}

int question_check_size(const struct question *question, double bytes, struct err *err)
{
	struct query_pool *pool = question->params.limits.pool;
	double left = (double)pool->limit_bytes - (double)atomic_load(&pool->used_bytes);

	if (!pool->limit_bytes || bytes <= left)
		return 0;
	return err_set(
		err, ERR_NO_MEMORY,
		"the answer would have %.0f MiB, and queries may use %.0f more; narrow the "
		"time range or the matchers, or take a format that has each name once (pprof)",
		bytes / (1 << 20), fmax(0, left) / (1 << 20));
}

int question_compare(struct question *base, struct question *question, struct tree *tree,
		     struct err *err)
{
	struct query_params base_params = question->params;
	const struct compare_side sides[SIGNIFICANCE_SIDES] = {
		[SIGNIFICANCE_BASE] = { &base->source, &base_params },
		[SIGNIFICANCE_OTHER] = { &question->source, &question->params },
	};
	int rc = take_for_steps(base, true, err);

	base_params.selector = base->params.selector;
	base_params.from_ns = base->params.from_ns;
	base_params.to_ns = base->params.to_ns;
	if (!rc)
		rc = take_for_steps(question, true, err);
	return rc ? rc : compare(tree, sides, COMPARE_REPORT_NS, err);
}

int question_intervals(struct question *question, struct tree *tree, struct err *err)
{
	const struct compare_side side = { &question->source, &question->params };
	int rc = take_for_steps(question, false, err);

	question->version = 0; /* it was of the tree's segments alone */
	tree->stats.kept = false;
	return rc ? rc : compare_intervals(tree, &side, COMPARE_REPORT_NS, err);
}

int question_chart(struct question *question, int64_t step_ns, struct flamechart *ret,
		   struct err *err)
{
	int rc = question_open(question, err);

	if (!rc)
		rc = ask_turn(question, size_of(question, NULL), true, err);
	if (rc == -ERR_BUSY) {
		enum turns_size size = size_of(question, NULL);

		drop_snapshot(question);
		rc = ask_turn(question, size, false, err);
		if (!rc)
			rc = question_open(question, err);
	}
	if (!rc)
		rc = flamechart_make(&question->source, &question->params, step_ns, ret, err);
	if (!rc)
		ret->parts_unreadable += question->snapshot.parts_unreadable;
	return rc;
}

/* The snapshot for totals of steps. */
static int take_for_series(struct question *question, const struct query_range_params *range,
			   struct err *err)
{
	const struct store_question asked = {
		.names = range->base.group_by,
		.names_count = range->sum_all ? 0 : range->base.group_by_count,
		.step_ns = range->base.by_times ? 0 : range->step_ns,
		.by_series =
			range->base.by_times || (!range->sum_all && !range->base.group_by_count),
	};

	return take_snapshot(question, asked, err);
}

int question_series(struct question *question, const struct query_range_params *range,
		    struct query_series_set *ret, struct err *err)
{
	struct query_range_params listed = *range;
	int rc = 0;

	if (question->filters.count)
		return err_set(err, ERR_UNSUPPORTED,
			       "filters are for trees: a time series is made of totals");
	if (!question->turn) {
		drop_snapshot(question); /* who waits holds nothing */
		list(question);
		rc = ask_turn(question, TURNS_SMALL, false, err);
	}
	if (!rc && !question->store)
		rc = take_for_series(question, range, err);
	listed.base.limits = question->params.limits;
	if (!rc)
		rc = query_series(&question->source, &listed, ret, err);
	if (!rc) {
		ret->parts_unreadable += question->snapshot.parts_unreadable;
		if (ret->parts_unreadable)
			question->version = 0;
		ret->stats.kept = question->version;
	}
	return rc;
}

/* What makes the answer, unless it cannot be told or is of this one time. */
static void find_key(struct question *question)
{
	const struct query_params *params = &question->params;
	struct strbuf times = { 0 }, key = { 0 };

	strbuf_addf(&times, "%d %lld %lld %lld", params->at_moment, (long long)params->from_ns,
		    (long long)params->to_ns, (long long)params->moment_ns);
	if (!question_is_set(question, question->request, "explain") &&
	    shared_key(question->request, question->tenant, strbuf_slice(&times), &key))
		question->key = arena_copy(&question->arena, strbuf_slice(&key));
	strbuf_free(&times);
	strbuf_free(&key);
}

static bool is_kept(const struct question *question, struct net_response *response)
{
	return question->key.len && question->version &&
	       kept_find(question->serve->kept, question->key, question->version,
			 clock_monotonic_ns(), response);
}

/* Leads and has its turn, or has the answer of another. */
static int lead_or_follow(struct question *question, enum turns_size size,
			  struct net_response *response, bool *ret_is_answered, struct err *err)
{
	const struct turns_ask patience = patience_of(question);
	struct serve *serve = question->serve;
	int rc = 0;

	if (question->key.len) {
		rc = shared_enter(serve->shared, question->key, &patience, response,
				  &question->lead, err);
		*ret_is_answered = !rc && !question->lead;
	}
	if (!rc && !*ret_is_answered)
		rc = ask_turn(question, size, false, err);
	if (!rc && question->lead)
		shared_close(serve->shared, question->lead);
	return rc;
}

static int take_for(struct question *question, const struct query_range_params *range,
		    struct err *err)
{
	return range ? take_for_series(question, range, err) : take_for_tree(question, err);
}

int question_share(struct question *question, const struct query_range_params *range,
		   struct net_response *response, bool *ret_is_answered, struct err *err)
{
	enum turns_size size;
	int rc = take_for(question, range, err);

	*ret_is_answered = false;
	if (rc)
		return rc;
	find_key(question);
	*ret_is_answered = is_kept(question, response);
	if (*ret_is_answered)
		return 0;
	size = range ? TURNS_SMALL : size_of(question, NULL);
	rc = ask_turn(question, size, true, err);
	if (rc != -ERR_BUSY)
		return rc;
	drop_snapshot(question); /* it would hold what others could give back */
	rc = lead_or_follow(question, size, response, ret_is_answered, err);
	if (rc || *ret_is_answered)
		return rc;
	rc = take_for(question, range, err);
	if (!rc && is_kept(question, response)) { /* since it began to wait */
		*ret_is_answered = true;
		question->version = 0;
		question_answered(question, 0, response);
	}
	return rc;
}

/* What another client of the same question would get as well. */
static bool is_of_question(int rc)
{
	return rc != -ERR_CANCELLED && rc != -ERR_DEADLINE && rc != -ERR_NO_MEMORY &&
	       rc != -ERR_BUSY;
}

void question_answered(struct question *question, int rc, const struct net_response *response)
{
	if (question->lead)
		shared_finish(question->serve->shared, question->lead,
			      is_of_question(rc) ? response : NULL);
	question->lead = NULL;
	if (!rc && question->key.len && question->version && response->status == 200)
		kept_put(question->serve->kept, question->key, question->version,
			 clock_monotonic_ns(), response);
	question->key = SLICE_LITERAL("");
}

int question_read(struct serve *serve, const struct net_request *request, enum question_need need,
		  struct question *ret, struct err *err)
{
	int rc;

	rc = begin(ret, serve, request, err);
	if (!rc)
		rc = read_selector(ret, question_text(ret, request, "query", ""), need, err);
	if (!rc)
		rc = read_times(ret, request, err);
	if (!rc)
		rc = question_group_by(ret, question_text(ret, request, "group_by", ""), err);
	if (!rc)
		rc = read_filters(ret, request, err);
	if (!rc)
		rc = read_demangle(ret, request, err);
	if (!rc)
		rc = read_cells(ret, request, err);
	if (!rc)
		rc = read_id(ret, request, err);
	if (rc)
		question_end(ret);
	return rc;
}

static int read_base_times(struct question *question, const struct net_request *request,
			   struct err *err)
{
	struct query_params *params = &question->params;
	int64_t now_ns = clock_real_ns();
	int rc = time_parameter(question, request, "base_from", "", now_ns, &params->from_ns, err);

	if (!rc)
		rc = time_parameter(question, request, "base_to", "", now_ns, &params->to_ns, err);
	if (!rc && params->from_ns > params->to_ns)
		rc = err_set(err, ERR_INVALID, "parameter \"base_from\" is later than \"base_to\"");
	return rc;
}

int question_read_base(struct serve *serve, const struct net_request *request, struct question *ret,
		       struct err *err)
{
	struct slice text;
	int rc = begin(ret, serve, request, err);

	if (!rc) {
		text = question_text(ret, request, "base_query", "");
		if (!text.len)
			text = question_text(ret, request, "query", "");
		rc = read_selector(ret, text, QUESTION_TYPE_NEEDED, err);
	}
	ret->is_part = true;
	if (!rc)
		rc = read_base_times(ret, request, err);
	if (rc)
		question_end(ret);
	return rc;
}

/* For lists of what there is: they cost little each, but are asked for by everyone at once. */
static int open_in_turn(struct question *question, struct err *err)
{
	int rc;

	list(question);
	rc = ask_turn(question, TURNS_SMALL, false, err);
	return rc ? rc : question_open(question, err);
}

int question_begin(struct serve *serve, const struct net_request *request, enum question_need need,
		   struct question *ret, struct err *err)
{
	int rc = question_read(serve, request, need, ret, err);

	if (rc)
		return rc;
	rc = open_in_turn(ret, err);
	if (rc)
		question_end(ret);
	return rc;
}

int question_begin_with(struct serve *serve, const struct net_request *request,
			struct slice selector, enum question_need need, int64_t from_ns,
			int64_t to_ns, struct question *ret, struct err *err)
{
	int rc;

	rc = begin(ret, serve, request, err);
	ret->params.from_ns = from_ns;
	ret->params.to_ns = to_ns;
	if (!rc)
		rc = read_selector(ret, selector, need, err);
	if (!rc && from_ns > to_ns)
		rc = err_set(err, ERR_INVALID, "start is later than end");
	if (!rc && need == QUESTION_SELECTOR_OPTIONAL)
		rc = open_in_turn(ret, err);
	if (rc)
		question_end(ret);
	return rc;
}

void question_end(struct question *question)
{
	drop_snapshot(question);
	question_answered(question, -ERR_CANCELLED, NULL);
	if (question->turn)
		turns_give(question->serve->turns, question->turn);
	if (question->running)
		running_remove(question->serve->running, question->running);
	filter_list_free(&question->filters);
	selector_free(&question->selector);
	arena_free(&question->arena);
	*question = (struct question){ 0 };
}

void question_answer(struct serve *serve, const struct net_request *request,
		     struct net_response *response,
		     int (*write)(struct question *question, const struct net_request *request,
				  struct strbuf *out, struct err *err))
{
	struct question question;
	struct err err;
	int rc = question_read(serve, request, QUESTION_TYPE_NEEDED, &question, &err);

	response->content_type = "application/json";
	if (!rc) {
		rc = write(&question, request, &response->body, &err);
		question_end(&question);
	}
	if (rc)
		net_response_error(request, response, &err);
}
