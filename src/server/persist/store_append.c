/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending: group commit.
 *
 * Every append encodes its batch by itself and joins the queue. Whoever finds the log free takes
 * the whole queue: one write, one sync, then all batches go into the memtable in the order of the
 * log, and their callers return. Meanwhile the next queue forms, so under load a group holds what
 * arrived during one sync. A batch is in the memtable only after it is durable, and before its
 * caller knows: what was read was acknowledged or is about to be, and is never taken back.
 */
#include <assert.h>

#include "server/persist/store_int.h"
#include "server/persist/log/tables_check.h"

struct pending {
	const struct tables_view *batch;
	struct memtable_window window;
	struct strbuf payload;
	struct append_result result;
	struct err err;
	int rc;
	bool done;
	struct pending *next;
};

static size_t view_bytes(const struct tables_view *view)
{
	return view->string_bytes_count + view->strings_count * sizeof(struct string_ref) +
	       view->labels_count * sizeof(struct label) +
	       view->label_sets_count * sizeof(struct label_set) +
	       view->columns_count * sizeof(struct column) +
	       view->groups_count * sizeof(struct group) +
	       view->series_count * sizeof(struct series) +
	       view->frames_count * sizeof(struct frame) + view->nodes_count * sizeof(struct node) +
	       view->reports_count * sizeof(struct report) + view->rows_count * sizeof(struct row) +
	       view->values_count * sizeof(int64_t) + view->totals_count * sizeof(int64_t) +
	       view->moments_count * sizeof(struct moment) +
	       view->links_count * sizeof(struct trace_link);
}

static int reserve(struct store_disk *store, size_t bytes, struct err *err)
{
	size_t in_flight;
	bool fits;

	if (bytes > STORE_BATCH_BYTES_MAX)
		return err_set(err, ERR_INVALID, "a batch of %zu bytes is over the limit of %zu",
			       bytes, STORE_BATCH_BYTES_MAX);
	lock_take(&store->commit_lock);
	in_flight = store->in_flight_bytes;
	fits = !in_flight || in_flight + bytes <= STORE_IN_FLIGHT_BYTES_MAX;
	if (fits)
		store->in_flight_bytes += bytes;
	lock_give(&store->commit_lock);
	if (!fits)
		return err_set(err, ERR_NO_MEMORY,
			       "batches of %zu bytes wait for the disk already; try again later",
			       in_flight);
	metric_add(&store_in_flight_bytes, (int64_t)bytes);
	return 0;
}

static void unreserve(struct store_disk *store, size_t bytes)
{
	lock_take(&store->commit_lock);
	assert(store->in_flight_bytes >= bytes);
	store->in_flight_bytes -= bytes;
	lock_give(&store->commit_lock);
	metric_add(&store_in_flight_bytes, -(int64_t)bytes);
}

static struct memtable_window window_now(const struct store_disk *store)
{
	int64_t now = store_now_ns(store);
	int64_t from = store->options.retention_ns ? now - store->options.retention_ns : 0;

	return (struct memtable_window){
		.received_ns = now,
		.from_ns = from > 0 ? from : 0,
		.to_ns = now + STORE_FUTURE_MAX_NS,
	};
}

/* Begins a new generation when the active one is large. */
static int make_room(struct store_disk *store, struct err *err)
{
	uint64_t limit = store->options.seal_bytes;

	store_assert_owns_log(store);
	if (memtable_bytes(store->active) < limit && store->wal.generation_bytes < limit)
		return 0;
	if (store_may_rotate(store)) {
		store_rotate(store);
		store_wake_background(store);
		return 0;
	}
	store_wake_background(store);
	lock_take(&store->lock);
	if (store->seal_err.code)
		err_set(err, store->seal_err.code, "parts cannot be written: %.400s",
			store->seal_err.message);
	else
		err_set(err, ERR_NO_MEMORY,
			"parts are written more slowly than batches arrive; try again later");
	lock_give(&store->lock);
	return -(int)err->code;
}

static int log_group(struct store_disk *store, const struct pending *group, size_t count,
		     struct err *err)
{
	struct slice payloads[STORE_GROUP_BATCHES_MAX];
	int64_t begin = clock_monotonic_ns();
	int rc = store_check_writable(store, err);
	size_t i = 0;

	store_assert_owns_log(store);
	assert(count <= STORE_GROUP_BATCHES_MAX);
	if (!rc)
		rc = make_room(store, err);
	if (rc)
		return rc;
	for (const struct pending *pending = group; i < count; pending = pending->next) {
		payloads[i++] = strbuf_slice(&pending->payload);
		metric_add(&store_wal_bytes_written, (int64_t)pending->payload.len);
	}
	rc = wal_append(&store->wal, payloads, count, err);
	metric_add(&store_wal_groups, 1);
	metric_add(&store_sync_seconds, clock_monotonic_ns() - begin);
	if (store->wal.poisoned) {
		store_poison(store, err);
		rc = store_check_writable(store, err); /* as for all that come after: try later */
	}
	return rc;
}

static void count_result(const struct append_result *result)
{
	metric_add(&store_appends, 1);
	metric_add(&store_reports, result->reports_stored);
	metric_add(&store_reports_duplicate, result->reports_duplicate);
	metric_add(&store_reports_late, result->reports_late);
	metric_add(&store_reports_future, result->reports_future);
	metric_add(&store_rows, (int64_t)result->rows_stored);
}

static void apply_group(struct store_disk *store, struct pending *group, size_t count)
{
	struct memtable *active = store->active;
	size_t i = 0;

	store_assert_owns_log(store);
	assert(!active->ended);
	lock_take(&store->lock);
	for (struct pending *pending = group; i < count; pending = pending->next, i++) {
		memtable_apply(active, &store->ledger, pending->batch, &pending->window,
			       &pending->result);
		count_result(&pending->result);
	}
	metric_set(&store_memtable_bytes, (int64_t)memtable_bytes(active));
	metric_set(&store_wal_bytes, (int64_t)store->wal.generation_bytes);
	lock_give(&store->lock);
}

static void commit_group(struct store_disk *store, struct pending *group, size_t count)
{
	struct err err = { 0 };
	size_t i = 0;
	int rc;

	store_assert_owns_log(store);
	assert(count && !lock_is_held(&store->commit_lock));
	rc = log_group(store, group, count, &err);
	if (!rc)
		apply_group(store, group, count);
	for (struct pending *pending = group; i < count; pending = pending->next, i++) {
		pending->rc = rc;
		pending->err = err;
	}
}

/* Takes up to STORE_GROUP_BATCHES_MAX batches off the queue. */
static size_t take_group(struct store_disk *store, struct pending **ret)
{
	struct pending **end = &store->queue;
	size_t count = 0;

	lock_assert_held(&store->commit_lock);
	*ret = store->queue;
	while (*end && count < STORE_GROUP_BATCHES_MAX) {
		end = &(*end)->next;
		count++;
	}
	store->queue = *end;
	if (!store->queue)
		store->queue_end = &store->queue;
	assert(count || !*ret);
	return count;
}

/* Leads groups until its own batch was in one; gives commit_lock up meanwhile. */
static void lead(struct store_disk *store, const struct pending *mine)
{
	lock_assert_held(&store->commit_lock);
	assert(!store->log_owner);
	store->log_owner = lock_thread();
	while (!mine->done) {
		struct pending *group;
		size_t count = take_group(store, &group);

		lock_give(&store->commit_lock);
		commit_group(store, group, count);
		lock_take(&store->commit_lock);
		while (count--) {
			struct pending *next = group->next;

			assert(!group->done);
			group->done = true;
			group = next;
		}
		lock_broadcast(&store->commit_changed);
	}
	store_assert_owns_log(store);
	store->log_owner = NULL;
}

static void commit(struct store_disk *store, struct pending *mine)
{
	lock_take(&store->commit_lock);
	*store->queue_end = mine;
	store->queue_end = &mine->next;
	while (!mine->done) {
		if (store->log_owner)
			lock_wait(&store->commit_changed, &store->commit_lock);
		else
			lead(store, mine);
	}
	lock_give(&store->commit_lock);
}

static int append(struct store_disk *store, const struct tables_view *batch,
		  struct append_result *ret, struct err *err)
{
	struct pending pending = { .batch = batch };
	int rc = tables_check(batch, &pending.err);

	if (rc)
		return err_set(err, ERR_INVALID, "batch: %s", pending.err.message);
	pending.window = window_now(store);
	memtable_encode_batch(batch, &pending.window, &pending.payload);
	commit(store, &pending);
	strbuf_free(&pending.payload);
	if (pending.rc) {
		if (err)
			*err = pending.err;
		return pending.rc;
	}
	*ret = pending.result;
	return 0;
}

int store_disk_takes_appends(struct store *base, struct err *err)
{
	struct store_disk *store = store_disk_of(base);
	int rc = store_check_writable(store, err);

	if (!rc)
		rc = store_check_space(store, err);
	if (rc)
		return rc;
	lock_take(&store->lock);
	if (store->seal_err.code == ERR_NO_SPACE)
		rc = err_set(err, ERR_NO_SPACE, "parts cannot be written: %.400s",
			     store->seal_err.message);
	else if (store->log_full)
		rc = err_set(err, ERR_NO_SPACE, "no disk space for the log");
	lock_give(&store->lock);
	return rc;
}

static void note_log_full(struct store_disk *store)
{
	lock_take(&store->lock);
	store->log_full = true;
	lock_give(&store->lock);
}

int store_disk_append(struct store *base, const struct tables_view *batch,
		      struct append_result *ret, struct err *err)
{
	struct store_disk *store = store_disk_of(base);
	size_t bytes = view_bytes(batch);
	int rc = store_check_writable(store, err);

	if (!rc && !batch->reports_count) {
		*ret = (struct append_result){ 0 };
		return 0;
	}
	if (!rc)
		rc = store_check_space(store, err);
	if (!rc)
		rc = reserve(store, bytes, err);
	if (!rc) {
		rc = append(store, batch, ret, err);
		unreserve(store, bytes);
	}
	if (rc == -ERR_NO_SPACE)
		note_log_full(store);
	if (rc)
		metric_add(&store_append_errors, 1);
	return rc;
}
