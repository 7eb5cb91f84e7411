/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/intake/writing.h"

#include "base/budget.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "server/serve/admission/quota.h"
#include "server/serve/api/service_senders.h"
#include "server/serve/api/targets.h"
#include "server/serve/intake/arrow_input.h"
#include "server/serve/intake/unknown_path.h"
#include "server/serve/tenant.h"

#define WRITE_IDLE_SLOTS_MAX 8
#define WRITE_IDLE_BYTES_MAX ((int64_t)48 << 20) /* what the idle slots hold together */
#define WRITE_SHARE 2				 /* of the memory that one request may become, */
#define WRITE_SHARE_OF 3			 /* so that others go on beside it */

/* The buffers of one running write; reused, because their memory is what makes ingest fast. */
struct write_slot {
	struct budget budget; /* of the request, and of what is kept for the next */
	struct ingest_scratch *scratch;
	struct tables batch;
	struct write_slot *next;
};

#define COUNTER(name, protocol, help)                                                              \
	{                                                                                          \
		METRIC_TYPE_COUNTER, name, "{protocol=\"" protocol "\"}", help, 1.0, 0             \
	}
#define REQUESTS(protocol)                                                                         \
	COUNTER("firn_intake_requests_total", protocol,                                            \
		"Requests that brought profiles, by how they were spoken")
#define FAILURES(protocol)                                                                         \
	COUNTER("firn_intake_failures_total", protocol,                                            \
		"Requests with profiles that were answered with an error")

static struct metric requests[WRITING_PROTOCOL_COUNT] = {
#define X(name, label) [WRITING_##name] = REQUESTS(label),
	WRITING_PROTOCOLS(X)
#undef X
};
static struct metric failures[WRITING_PROTOCOL_COUNT] = {
#define X(name, label) [WRITING_##name] = FAILURES(label),
	WRITING_PROTOCOLS(X)
#undef X
};

void writing_register_metrics(void)
{
	for (int i = 0; i < WRITING_PROTOCOL_COUNT; i++) {
		struct metric *both[] = { &requests[i], &failures[i] };

		metrics_register(both, 2);
	}
}

struct write_pool {
	struct lock lock; /* guards the rest */
	struct write_slot *idle;
	unsigned idle_count;
	int64_t idle_bytes;
	struct budget *memory;
};

struct write_pool *write_pool_new(struct budget *memory)
{
	struct write_pool *pool = mem_new(struct write_pool);

	pool->memory = memory;
	writing_register_metrics();
	unknown_path_register_metrics();
	arrow_input_register_metrics();
	lock_init(&pool->lock, "write_pool", LOCK_SERVE + 5);
	return pool;
}

static struct write_slot *slot_new(struct budget *memory)
{
	struct write_slot *slot = mem_new(struct write_slot);

	slot->budget.max_bytes = memory->max_bytes / WRITE_SHARE_OF * WRITE_SHARE;
	slot->budget.parent = memory;
	slot->scratch = ingest_scratch_new(&slot->budget);
	tables_init(&slot->batch);
	return slot;
}

static void slot_free(struct write_slot *slot)
{
	ingest_scratch_free(slot->scratch);
	tables_free(&slot->batch);
	free(slot);
}

void write_pool_free(struct write_pool *pool)
{
	while (pool->idle) {
		struct write_slot *slot = pool->idle;

		pool->idle = slot->next;
		slot_free(slot);
	}
	lock_free(&pool->lock);
	free(pool);
}

static struct write_slot *take_slot(struct write_pool *pool, struct slice tenant)
{
	struct write_slot *slot;

	lock_take(&pool->lock);
	slot = pool->idle;
	if (slot) {
		pool->idle = slot->next;
		pool->idle_count--;
		pool->idle_bytes -= slot->budget.used_bytes;
	}
	lock_give(&pool->lock);
	if (!slot)
		slot = slot_new(pool->memory);
	ingest_scratch_set_tenant(slot->scratch, tenant);
	return slot;
}

static void give_slot(struct write_pool *pool, struct write_slot *slot)
{
	tables_reset(&slot->batch);
	ingest_scratch_forget_batch(slot->scratch);
	ingest_scratch_set_tenant(slot->scratch, (struct slice){ "", 0 });
	lock_take(&pool->lock);
	if (pool->idle_count < WRITE_IDLE_SLOTS_MAX &&
	    pool->idle_bytes + slot->budget.used_bytes <= WRITE_IDLE_BYTES_MAX) {
		slot->next = pool->idle;
		pool->idle = slot;
		pool->idle_count++;
		pool->idle_bytes += slot->budget.used_bytes;
		slot = NULL;
	}
	lock_give(&pool->lock);
	if (slot)
		slot_free(slot);
}

/* The label node of the first series that has one. */
static struct slice node_of(const struct tables_view *view)
{
	for (uint32_t i = 0; i < view->series_count; i++) {
		struct slice node =
			tables_label_value(view, view->series[i].label_set, SLICE_LITERAL("node"));

		if (node.len)
			return node;
	}
	return (struct slice){ 0 };
}

/* What the batch's types that count samples add up to. */
static uint64_t samples_of(const struct tables_view *view)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];
		const struct group *group = &view->groups[view->series[report->series].group];

		for (uint32_t c = 0; c < group->column_count; c++) {
			const struct column *column = &view->columns[group->column_first + c];
			int64_t total = view->totals[report->total_first + c];

			if (total > 0 && column->kind == COLUMN_DELTA &&
			    slice_is(tables_text(view, column->sample_type), "samples"))
				sum += (uint64_t)total;
		}
	}
	return sum;
}

/* For the list of who sends. */
static void note(const struct writing *writing)
{
	const struct net_request *request = writing->request;
	const struct append_result *result = &writing->result;
	struct targets_write write = { .peer = request->peer,
				       .sender = net_request_header(request, "user-agent"),
				       .bytes = request->body.len,
				       .reports = result->reports_stored,
				       .refused = result->reports_late + result->reports_future +
						  writing->rejected,
				       .err = writing->err.code	      ? &writing->err
					      : writing->partial.code ? &writing->partial
								      : NULL };
	bool is_scraped = writing->protocol == WRITING_SCRAPE;
	struct tables_view view;

	if (tenant_of(writing->serve, request, &write.tenant, NULL))
		return;
	if (writing->slot && !writing->err.code) {
		view = tables_view_of(writing->batch);
		service_senders_note(writing->serve->service_senders, write.tenant,
				     is_scraped ? SLICE_LITERAL("scraped") : write.sender, &view);
	}
	if (is_scraped) /* has a list of its own */
		return;
	if (!slice_parse_u64(net_request_header(request, "firn-lost-samples"), &write.lost))
		write.lost = 0; /* not every sender tells */
	if (writing->slot) {
		view = tables_view_of(writing->batch);
		write.node = node_of(&view);
		write.samples = samples_of(&view);
	}
	targets_note(writing->serve->targets, &write);
}

static int admit_series(void *context, uint64_t hash, uint32_t labels, struct err *err)
{
	struct writing *writing = context;

	return quota_check_series(writing->serve->quota, writing->tenant, hash, labels,
				  clock_monotonic_ns(), err);
}

int writing_begin(struct writing *writing, struct serve *serve, const struct net_request *request,
		  enum writing_protocol protocol)
{
	struct slice tenant;

	*writing = (struct writing){ .serve = serve,
				     .request = request,
				     .protocol = protocol,
				     .limits = ingest_limits_default };
	writing->limits.guard = serve->guard;
	if (serve->no_moments)
		writing->limits.moments_max = 0;
	metric_add(&requests[protocol], 1);
	if (tenant_of(serve, request, &tenant, &writing->err))
		return -(int)writing->err.code;
	writing->tenant = quota_enter(serve->quota, tenant);
	if (quota_check_ingest(serve->quota, writing->tenant, clock_monotonic_ns(), &writing->err))
		return -(int)writing->err.code;
	if (writing->tenant) {
		writing->limits.admit_series = admit_series;
		writing->limits.admit_context = writing;
	}
	writing->slot = take_slot(serve->writes, tenant);
	writing->scratch = writing->slot->scratch;
	writing->batch = &writing->slot->batch;
	writing->budget = &writing->slot->budget;
	return 0;
}

int writing_append(struct writing *writing)
{
	struct tables_view view = tables_view_of(writing->batch);
	int rc;

	if (!view.reports_count)
		return 0;
	rc = store_append(writing->serve->store, &view, &writing->result, &writing->err);
	if (!rc)
		quota_charge(writing->serve->quota, writing->tenant, view.rows_count,
			     view.reports_count, writing->request->body.len);
	return rc;
}

int writing_append_all(struct writing *writing)
{
	const struct append_result *result = &writing->result;
	int rc = writing_append(writing);

	if (!rc && result->reports_late + result->reports_future)
		return err_set(&writing->err, ERR_INVALID, "%u of %u reports refused: %s",
			       result->reports_late + result->reports_future,
			       (unsigned)writing->batch->reports.count, result->refused);
	return rc;
}

bool writing_refuse(struct writing *writing, unsigned index)
{
	enum err_code code = writing->err.code;

	(void)err_wrap(&writing->err, "series %u", index);
	if (code != ERR_INVALID && code != ERR_QUOTA)
		return false;
	if (!writing->refused++)
		writing->refusal = writing->err;
	writing->rejected++;
	writing->err.code = ERR_NONE;
	return true;
}

int writing_append_rest(struct writing *writing, unsigned series)
{
	int rc = writing_append_all(writing);

	if (rc || !writing->refused)
		return rc;
	if (writing->refused == series && series == 1)
		writing->err = writing->refusal;
	else
		err_set(&writing->err, writing->refusal.code, "%u of %u series refused: %s",
			writing->refused, series, writing->refusal.message);
	return -(int)writing->err.code;
}

void writing_end(struct writing *writing, struct net_response *response)
{
	if (writing->err.code) {
		metric_add(&failures[writing->protocol], 1);
		net_response_error(writing->request, response, &writing->err);
	}
	note(writing);
	quota_leave(writing->serve->quota, writing->tenant);
	if (writing->slot)
		give_slot(writing->serve->writes, writing->slot);
}

void writing_note_failure(struct serve *serve, const struct net_request *request,
			  const struct err *err)
{
	struct writing writing = { .serve = serve, .request = request, .err = *err };

	note(&writing);
}
