/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/api/query_request.h"

#include <assert.h>
#include <math.h>

#include "base/hash.h"
#include "server/query/diff/compare.h"
#include "server/serve/admission/quota.h"
#include "server/serve/tenant.h"

#define QUERY_REQUEST_DEADLINE_NS (60 * CLOCK_NS_PER_S)
#define LARGE_STACKS ((uint64_t)1 << 18) /* of all segments of a query that is a large one */
#define MIDDLE_STACKS (LARGE_STACKS / 32)

/* The peer without its port: one client, however many connections it has. */
static struct slice host_of(struct slice peer)
{
	for (size_t i = peer.len; i > 0; i--)
		if (peer.data[i - 1] == ':')
			return slice_from(peer.data, i - 1);
	return peer;
}

static struct slice client_of(struct query_request *query)
{
	struct strbuf text = { 0 };
	struct slice client;

	strbuf_add_slice(&text, query->tenant);
	strbuf_add_byte(&text, '\n');
	strbuf_add_slice(&text, host_of(query->request->peer));
	client = arena_copy(&query->asked.arena, strbuf_slice(&text));
	strbuf_free(&text);
	return client;
}

static void begin_ticket(struct query_request *query)
{
	const struct query_limits *limits = &query->asked.params.limits;
	const struct serve *serve = query->serve;
	const struct ticket_desk desk = { .active = serve->active,
					  .admission = serve->admission,
					  .coalesce = serve->coalesce,
					  .cache = serve->cache };
	const struct admission_ask ask = { .request = query->request,
					   .client = client_of(query),
					   .has_tenant = serve->tenants,
					   .tenant = query->tenant,
					   .deadline_at_ns = limits->deadline_at_ns,
					   .cancelled = limits->cancelled };

	ticket_init(&query->ticket, &desk, &ask);
}

static int begin(struct query_request *query, struct serve *serve,
		 const struct net_request *request, struct err *err)
{
	int64_t deadline_at_ns = clock_monotonic_ns() + QUERY_REQUEST_DEADLINE_NS;
	struct query_limits *limits = &query->asked.params.limits;
	int rc;

	*query = (struct query_request){ .serve = serve, .request = request };
	parameters_init(&query->asked);
	if (request->deadline_at_ns && request->deadline_at_ns < deadline_at_ns)
		deadline_at_ns = request->deadline_at_ns;
	limits->deadline_at_ns = deadline_at_ns;
	limits->cancelled = request->cancelled;
	limits->pool = &serve->queries;
	limits->apart_bytes = serve->apart_bytes;
	rc = tenant_of(serve, request, &query->tenant, err);
	begin_ticket(query);
	if (!rc)
		query->quota = quota_enter(serve->quota, query->tenant);
	return rc;
}

void query_request_forget(struct query_request *query)
{
	if (query->store)
		store_snapshot_release(query->store, &query->snapshot);
	query->store = NULL;
	query->source = (struct query_source){ 0 };
}

/* Before it waits for anything, it counts as one of its tenant's. */
static int list(struct query_request *query, struct err *err)
{
	struct parameters *asked = &query->asked;
	struct strbuf text = { 0 };
	struct active_query_what what = {
		.id = asked->id,
		.tenant = query->tenant,
		.path = query->request->path,
		.by = query->request->peer,
		.from_ns = asked->params.from_ns,
		.to_ns = asked->params.to_ns,
	};

	int rc;

	if (query->is_part || query->ticket.state != TICKET_NEW)
		return 0;
	rc = quota_begin_query(query->serve->quota, query->quota, err);
	if (rc)
		return rc;
	query->is_counted = true;
	selector_format(&text, &asked->selector);
	what.query = strbuf_slice(&text);
	ticket_list(&query->ticket, &what);
	strbuf_free(&text);
	asked->params.limits.stopped = active_queries_stopped(query->ticket.active);
	asked->params.limits.progress = active_queries_progress(query->ticket.active);
	return 0;
}

/* Lists of what there is are asked for without a range, and cost little. */
static int check_range(const struct query_request *query, enum store_reads reads, struct err *err)
{
	const struct query_params *params = &query->asked.params;

	if (reads == STORE_LISTS || params->at_moment)
		return 0;
	return quota_check_range(query->serve->quota, query->quota, params->from_ns, params->to_ns,
				 clock_real_ns(), err);
}

/* `asked` but for range and selector. */
static int take_snapshot(struct query_request *query, struct store_query asked, struct err *err)
{
	int rc = list(query, err);

	if (!rc)
		rc = check_range(query, asked.reads, err);
	if (rc)
		return rc;
	query_request_forget(query);
	asked.from_ns = query->asked.params.from_ns;
	if (query->asked.params.by_times)
		asked.from_ns -= QUERY_TIMES_BACK_NS;
	asked.to_ns = query->asked.params.to_ns;
	asked.selector = &query->asked.selector;
	asked.one_tenant = query->serve->tenants;
	asked.tenant = query->tenant;
	asked.deadline_at_ns = query->asked.params.limits.deadline_at_ns;
	asked.cancelled = query->asked.params.limits.cancelled;
	asked.stopped = query->asked.params.limits.stopped;
	rc = store_snapshot(query->serve->store, &asked, &query->snapshot, err);
	if (rc)
		return rc;
	query->store = query->serve->store;
	query->reads = asked.reads;
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

int query_request_list(struct query_request *query, struct err *err)
{
	const struct store_query asked = { .by_series = true, .reads = STORE_LISTS };

	return take_snapshot(query, asked, err);
}

/* At once, or ERR_BUSY. */
static int take_seat(struct query_request *query, enum admission_size size, struct err *err)
{
	return ticket_is_seated(&query->ticket) ? 0 : ticket_take(&query->ticket, size, err);
}

static int wait_for_seat(struct query_request *query, enum admission_size size, struct err *err)
{
	return ticket_is_seated(&query->ticket) ? 0 : ticket_wait(&query->ticket, size, err);
}

static enum admission_size size_of(const struct query_request *query,
				   const struct query_request *base)
{
	uint64_t stacks = 0;

	for (size_t i = 0; i < query->source.segments_count; i++)
		stacks += query->source.segments[i].slots_count;
	for (size_t i = 0; base && i < base->source.segments_count; i++)
		stacks += base->source.segments[i].slots_count;
	return stacks > LARGE_STACKS	? ADMISSION_LARGE
	       : stacks > MIDDLE_STACKS ? ADMISSION_MIDDLE
					: ADMISSION_SMALL;
}

/* The snapshot for sums of all reports in the range, or for the nearest to a moment. */
static int take_for_tree(struct query_request *query, struct err *err)
{
	const struct query_params *params = &query->asked.params;
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

/* Without a snapshot: that would hold what others could give back. */
static int wait_and_take_both(struct query_request *base, struct query_request *query,
			      enum admission_size size, struct err *err)
{
	int rc;

	query_request_forget(query);
	if (base)
		query_request_forget(base);
	rc = wait_for_seat(query, size, err);
	return rc ? rc : take_both(base, query, err);
}

/* Snapshots and a seat; `base` is what a diff compares to, or NULL. */
static int begin_tree(struct query_request *base, struct query_request *query, struct err *err)
{
	enum admission_size size;
	int rc;

	if (ticket_is_seated(&query->ticket) && query->store && query->reads == STORE_ROWS && !base)
		return 0;
	rc = take_both(base, query, err);
	if (rc)
		return rc;
	size = size_of(query, base);
	rc = take_seat(query, size, err);
	return rc == -ERR_BUSY ? wait_and_take_both(base, query, size, err) : rc;
}

/*
 * Names are waited for from now on, a query waits for its seat before: as long as the client says,
 * or half of the time that is left, as an answer without some names is better than none.
 */
static void begin_to_wait(struct query_request *query)
{
	struct query_limits *limits = &query->asked.params.limits;
	int64_t wait_ns = query->asked.names_wait_ns, now_ns = clock_monotonic_ns();
	int64_t left_ns = limits->deadline_at_ns - now_ns;

	assert(wait_ns >= 0 && limits->deadline_at_ns > 0);
	if (wait_ns)
		limits->names_until_ns = now_ns + (wait_ns < left_ns ? wait_ns : left_ns);
	else
		limits->names_give_up_at_ns = now_ns + left_ns / 2;
}

static int compute(struct query_request *base, struct query_request *query, struct tree **ret,
		   struct err *err)
{
	begin_to_wait(query);
	if (base)
		return query_diff(&base->source, &base->asked.params, &query->source,
				  &query->asked.params, ret, err);
	return query_tree(&query->source, &query->asked.params, ret, err);
}

/* When others hold the memory, once more, with nobody beside. */
static int answer_tree(struct query_request *base, struct query_request *query, struct tree **ret,
		       struct err *err)
{
	int rc = begin_tree(base, query, err);

	query->asked.params.limits.crowded = &query->crowded;
	if (!rc)
		rc = compute(base, query, ret, err);
	if (rc != -ERR_NO_MEMORY || !ticket_is_seated(&query->ticket) ||
	    !atomic_load(&query->crowded))
		return rc;
	ticket_leave(&query->ticket);
	rc = wait_and_take_both(base, query, ADMISSION_ALONE, err);
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
		.step_ns = compare_step(query->asked.params.from_ns, query->asked.params.to_ns,
					COMPARE_REPORT_NS),
		.by_series = by_series,
	};

	return take_snapshot(query, asked, err);
}

int query_request_check_size(const struct query_request *query, double bytes, struct err *err)
{
	struct query_pool *pool = query->asked.params.limits.pool;
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
	struct query_params base_params = query->asked.params;
	const struct compare_side sides[SIGNIFICANCE_SIDES] = {
		[SIGNIFICANCE_BASE] = { &base->source, &base_params },
		[SIGNIFICANCE_OTHER] = { &query->source, &query->asked.params },
	};
	int rc = take_for_steps(base, true, err);

	base_params.selector = base->asked.params.selector;
	base_params.from_ns = base->asked.params.from_ns;
	base_params.to_ns = base->asked.params.to_ns;
	if (!rc)
		rc = take_for_steps(query, true, err);
	return rc ? rc : compare(tree, sides, COMPARE_REPORT_NS, err);
}

int query_request_intervals(struct query_request *query, struct tree *tree, struct err *err)
{
	const struct compare_side side = { &query->source, &query->asked.params };
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
		rc = take_seat(query, size_of(query, NULL), err);
	if (rc == -ERR_BUSY) {
		enum admission_size size = size_of(query, NULL);

		query_request_forget(query);
		rc = wait_for_seat(query, size, err);
		if (!rc)
			rc = query_request_open(query, err);
	}
	if (!rc)
		begin_to_wait(query);
	if (!rc)
		rc = flamechart_make(&query->source, &query->asked.params, step_ns, ret, err);
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
		.reads = range->base.by_times ? STORE_ROWS : STORE_TOTALS,
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

	if (query->asked.filters.count)
		return err_set(err, ERR_UNSUPPORTED,
			       "filters are for trees: a time series is made of totals");
	if (!ticket_is_seated(&query->ticket)) {
		query_request_forget(query); /* who waits holds nothing */
		rc = list(query, err);
		if (!rc)
			rc = wait_for_seat(query, ADMISSION_SMALL, err);
	}
	if (!rc && (!query->store || query->reads == STORE_LISTS))
		rc = take_for_series(query, range, err);
	listed.base.limits = query->asked.params.limits;
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
	const struct query_params *params = &query->asked.params;
	struct strbuf times = { 0 }, key = { 0 };

	strbuf_addf(&times, "%d %lld %lld %lld", params->at_moment, (long long)params->from_ns,
		    (long long)params->to_ns, (long long)params->moment_ns);
	if (!parameters_is_set(&query->asked, query->request, "explain") &&
	    coalesce_key(query->request, query->tenant, strbuf_slice(&times), &key))
		query->ticket.key = arena_copy(&query->asked.arena, strbuf_slice(&key));
	strbuf_free(&times);
	strbuf_free(&key);
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
	*ret_is_answered = ticket_find(&query->ticket, query->version, response);
	if (*ret_is_answered)
		return 0;
	size = range ? ADMISSION_SMALL : size_of(query, NULL);
	rc = take_seat(query, size, err);
	if (rc != -ERR_BUSY)
		return rc;
	query_request_forget(query); /* it would hold what others could give back */
	rc = ticket_lead_or_follow(&query->ticket, size, response, err);
	*ret_is_answered = !rc && !ticket_is_seated(&query->ticket);
	if (rc || *ret_is_answered)
		return rc;
	rc = take_for(query, range, err);
	*ret_is_answered = !rc && ticket_find(&query->ticket, query->version, response);
	return rc;
}

int query_request_pay(struct net_response *response, size_t bytes, struct err *err)
{
	return net_response_pay(response, bytes)
		       ? 0
		       : err_set(err, ERR_UNAVAILABLE,
				 "others have not read their large answers yet; try again");
}

/* With its seat still: what is made and not paid for is what those that have one make. */
void query_request_answered(struct query_request *query, int rc, struct net_response *response)
{
	if (!rc && !net_response_pay(response, response->body.len)) {
		strbuf_free(&response->body);
		rc = -ERR_UNAVAILABLE;
	}
	ticket_answer(&query->ticket, rc, query->version, response);
}

int query_request_read(struct serve *serve, const struct net_request *request,
		       enum parameters_need need, struct query_request *ret, struct err *err)
{
	int rc = begin(ret, serve, request, err);

	if (!rc)
		rc = parameters_read(&ret->asked, request, need, clock_real_ns(), err);
	if (rc)
		query_request_end(ret);
	return rc;
}

int query_request_read_base(struct serve *serve, const struct net_request *request,
			    struct query_request *ret, struct err *err)
{
	int rc = begin(ret, serve, request, err);

	ret->is_part = true;
	if (!rc)
		rc = parameters_read_base(&ret->asked, request, clock_real_ns(), err);
	if (rc)
		query_request_end(ret);
	return rc;
}

/* For lists of what there is: they cost little each, but are asked for by everyone at once. */
static int open_when_seated(struct query_request *query, struct err *err)
{
	int rc = list(query, err);

	if (!rc)
		rc = wait_for_seat(query, ADMISSION_SMALL, err);
	return rc ? rc : query_request_list(query, err);
}

int query_request_begin(struct serve *serve, const struct net_request *request,
			enum parameters_need need, struct query_request *ret, struct err *err)
{
	int rc = query_request_read(serve, request, need, ret, err);

	if (rc)
		return rc;
	rc = open_when_seated(ret, err);
	if (rc)
		query_request_end(ret);
	return rc;
}

int query_request_begin_with(struct serve *serve, const struct net_request *request,
			     struct slice selector, enum parameters_need need, int64_t from_ns,
			     int64_t to_ns, struct query_request *ret, struct err *err)
{
	int rc = begin(ret, serve, request, err);

	if (!rc)
		rc = parameters_take(&ret->asked, selector, need, from_ns, to_ns, err);
	if (!rc && need == PARAMETERS_SELECTOR_OPTIONAL)
		rc = open_when_seated(ret, err);
	if (rc)
		query_request_end(ret);
	return rc;
}

void query_request_end(struct query_request *query)
{
	query_request_forget(query);
	ticket_end(&query->ticket);
	if (query->is_counted)
		quota_end_query(query->serve->quota, query->quota);
	if (query->quota) /* else it may never have been begun */
		quota_leave(query->serve->quota, query->quota);
	parameters_free(&query->asked);
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
	int rc = query_request_read(serve, request, PARAMETERS_TYPE_NEEDED, &query, &err);

	response->content_type = "application/json";
	if (!rc) {
		rc = write(&query, request, &response->body, &err);
		query_request_end(&query);
	}
	if (rc)
		net_response_error(request, response, &err);
}
