/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write - profiles in: OTLP (gRPC and HTTP) and Parca's WriteRaw. Each request becomes one batch,
 * appended as a whole; the answer goes out after the store made it durable.
 */
#include "base/budget.h"
#include "base/lock.h"
#include "base/mem.h"
#include "codec/wire/pb.h"
#include "server/ingest/ingest.h"
#include "server/serve/api/targets.h"
#include "server/serve/tenant.h"

#define WRITE_LABELS_MAX 256
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

/* NULL with an error: the request names no tenant. */
static struct write_slot *take_slot(struct serve *serve, const struct net_request *request,
				    struct err *err)
{
	struct write_pool *pool = serve->writes;
	struct slice tenant;
	struct write_slot *slot;

	if (tenant_of(serve, request, &tenant, err))
		return NULL;
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

/* For the list of who sends. `slot` may be NULL, `err` too. */
static void note(struct serve *serve, const struct net_request *request,
		 const struct write_slot *slot, const struct append_result *result,
		 const struct err *err)
{
	struct targets_write write = { .peer = request->peer,
				       .sender = net_request_header(request, "user-agent"),
				       .bytes = request->body.len,
				       .reports = result->reports_stored,
				       .refused = result->reports_late + result->reports_future,
				       .err = err };
	struct tables_view view;

	if (tenant_of(serve, request, &write.tenant, NULL))
		return;
	if (!slice_parse_u64(net_request_header(request, "firn-lost-samples"), &write.lost))
		write.lost = 0; /* not every sender tells */
	if (slot) {
		view = tables_view_of(&slot->batch);
		write.node = node_of(&view);
		write.samples = samples_of(&view);
	}
	targets_note(serve->targets, &write);
}

static int append(struct serve *serve, const struct tables *batch, struct append_result *ret,
		  struct err *err)
{
	struct tables_view view = tables_view_of(batch);

	return view.reports_count ? store_append(serve->store, &view, ret, err) : 0;
}

/* ExportProfilesServiceResponse{ partial_success = 1 { rejected_profiles = 1; error_message = 2 } }
 */
static void put_partial(struct strbuf *out, int64_t rejected, const char *message)
{
	size_t begun;

	if (!rejected && !message[0])
		return;
	begun = pb_begin(out, 1);
	pb_put_varint(out, 1, (uint64_t)rejected);
	pb_put_bytes(out, 2, slice_of(message));
	pb_end(out, begun);
}

static bool is_protobuf(const struct net_request *request)
{
	struct slice type = net_request_header(request, "content-type");
	struct slice parameters;

	if (request->rpc != NET_RPC_NONE)
		return true;
	type = slice_cut(type, ';', &parameters);
	return slice_is(type, "application/x-protobuf") || slice_is(type, "application/protobuf");
}

static int write_otlp_into(struct serve *serve, struct write_slot *slot,
			   const struct net_request *request, struct net_response *response,
			   struct append_result *result, struct err *err)
{
	struct ingest_limits limits = ingest_limits_default;
	struct ingest_partial partial = { 0 };
	int rc;

	if (serve->no_moments)
		limits.moments_max = 0;
	rc = ingest_from_otlp(slot->scratch, &limits, request->body, clock_real_ns(), &slot->batch,
			      &partial, err);
	if (!rc)
		rc = append(serve, &slot->batch, result, err);
	if (rc)
		return rc;
	put_partial(&response->body,
		    partial.rejected_profiles + result->reports_late + result->reports_future,
		    partial.message[0] ? partial.message : result->refused);
	response->content_type = "application/x-protobuf";
	return 0;
}

void write_otlp(void *context, const struct net_request *request, struct net_response *response)
{
	struct serve *serve = context;
	struct append_result result = { 0 };
	struct write_slot *slot;
	struct err err;
	bool failed;

	if (!is_protobuf(request)) {
		err_set(&err, ERR_UNSUPPORTED, "content type \"%.*s\": send application/x-protobuf",
			SLICE_FMT(net_request_header(request, "content-type")));
		net_response_error(request, response, &err);
		response->status = 415;
		return;
	}
	slot = take_slot(serve, request, &err);
	failed = !slot || write_otlp_into(serve, slot, request, response, &result, &err);
	if (failed)
		net_response_error(request, response, &err);
	note(serve, request, slot, &result, failed ? &err : NULL);
	if (slot)
		give_slot(serve->writes, slot);
}

/* Label{ name = 1; value = 2 } */
static int read_label(const struct pb_reader *outer, struct slice bytes, struct ingest_label *ret,
		      struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	*ret = (struct ingest_label){ 0 };
	while (pb_next(&in, &field)) {
		if (field.wire == PB_BYTES && field.number == 1)
			ret->name = field.bytes;
		else if (field.wire == PB_BYTES && field.number == 2)
			ret->value = field.bytes;
	}
	return in.problem ? pb_fail(&in, "Label", err) : 0;
}

/* LabelSet{ labels = 1 } */
static int read_labels(const struct pb_reader *outer, struct slice bytes,
		       struct ingest_label *labels, size_t *count, struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	while (pb_next(&in, &field)) {
		int rc;

		if (field.wire != PB_BYTES || field.number != 1)
			continue;
		if (*count == WRITE_LABELS_MAX)
			return err_set(err, ERR_LIMIT, "LabelSet: more than %d labels",
				       WRITE_LABELS_MAX);
		rc = read_label(&in, field.bytes, &labels[(*count)++], err);
		if (rc)
			return rc;
	}
	return in.problem ? pb_fail(&in, "LabelSet", err) : 0;
}

/* RawSample{ raw_profile = 1; executable_info = 2 } */
static int read_sample(const struct pb_reader *outer, struct slice bytes, struct slice *ret,
		       struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	*ret = (struct slice){ 0 };
	while (pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == 1)
			*ret = field.bytes;
	return in.problem ? pb_fail(&in, "RawSample", err) : 0;
}

/* RawProfileSeries{ labels = 1 LabelSet; samples = 2 RawSample } - in any order, so labels first.
 */
static int read_series(struct write_slot *slot, const struct pb_reader *outer, struct slice bytes,
		       struct err *err)
{
	struct ingest_label labels[WRITE_LABELS_MAX];
	struct ingest_pprof profile = { .labels = labels, .now_ns = clock_real_ns() };
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == 1)
			rc = read_labels(&in, field.bytes, labels, &profile.labels_count, err);
	if (!rc && in.problem)
		return pb_fail(&in, "RawProfileSeries", err);
	in = pb_reader_into(outer, bytes);
	while (!rc && pb_next(&in, &field)) {
		if (field.wire != PB_BYTES || field.number != 2)
			continue;
		rc = read_sample(&in, field.bytes, &profile.bytes, err);
		if (!rc)
			rc = ingest_from_pprof(slot->scratch, &ingest_limits_default, &profile,
					       &slot->batch, err);
	}
	return rc;
}

/* WriteRawRequest{ tenant = 1; series = 2 RawProfileSeries; normalized = 3 } */
static int read_request(struct write_slot *slot, struct slice body, struct err *err)
{
	struct pb_reader in = pb_reader_of(body);
	struct pb_field field;
	unsigned index = 0;

	while (pb_next(&in, &field)) {
		if (field.wire != PB_BYTES || field.number != 2)
			continue;
		if (read_series(slot, &in, field.bytes, err))
			return err_wrap(err, "series %u", index);
		index++;
	}
	return in.problem ? pb_fail(&in, "WriteRawRequest", err) : 0;
}

/*
 * WriteRawResponse is empty, so a refused report fails the call: the client must not believe that
 * it is kept. What was stored with it stays; a retry counts once.
 */
static int write_raw_into(struct serve *serve, struct write_slot *slot,
			  const struct net_request *request, struct append_result *result,
			  struct err *err)
{
	int rc = read_request(slot, request->body, err);

	if (!rc)
		rc = append(serve, &slot->batch, result, err);
	if (!rc && result->reports_late + result->reports_future)
		return err_set(err, ERR_INVALID, "%u of %u reports refused: %s",
			       result->reports_late + result->reports_future,
			       (unsigned)slot->batch.reports.count, result->refused);
	return rc;
}

void write_raw(void *context, const struct net_request *request, struct net_response *response)
{
	struct serve *serve = context;
	struct append_result result = { 0 };
	struct err err;
	struct write_slot *slot = take_slot(serve, request, &err);
	bool failed = !slot || write_raw_into(serve, slot, request, &result, &err);

	if (failed)
		net_response_error(request, response, &err);
	note(serve, request, slot, &result, failed ? &err : NULL);
	if (slot)
		give_slot(serve->writes, slot);
}
