/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compacting a store: what is due is chosen under seal_lock, done without any lock, and put in
 * force by one edit of the manifest and one swap under `lock`. If an input went meanwhile (by
 * retention), the result is thrown away. Parts with reports to delete come before all others.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/persist/compact/compact.h"
#include "server/persist/compact/compact_plan.h"
#include "server/persist/store_int.h"

#define HOLD_BACK_NS (60 * CLOCK_NS_PER_S) /* after a failure; doubled with each */
#define HOLD_BACK_MAX_NS (3600 * CLOCK_NS_PER_S)
#define DAMAGED_MAX 100u  /* parts that may be set aside on the way */
#define BACKLOG_PARTS 64u /* so many at once: parts come faster than half a core compacts them */

struct step {
	struct store_disk *store;
	struct compact_plan plan;
	struct part_info *inputs;
	struct tombstones *tombstones;
	uint64_t number;
	bool only_deletes; /* one part, for the sake of tombstones */
};

static struct store_held_back *find_held_back(const struct store_disk *store, uint64_t number)
{
	lock_assert_held(&store->compact_lock);
	for (size_t i = 0; i < store->held_back_count; i++)
		if (store->held_back[i].number == number)
			return &store->held_back[i];
	return NULL;
}

static bool is_held_back(const struct store_disk *store, uint64_t number, int64_t now_ns)
{
	const struct store_held_back *held = find_held_back(store, number);

	return held && held->until_ns > now_ns;
}

/* True if a failure is the job's own, so that another job may succeed. */
static bool is_of_job(int rc)
{
	return rc && rc != -ERR_CANCELLED && rc != -ERR_READ_ONLY && rc != -ERR_CORRUPT;
}

static void hold_back(struct store_disk *store, uint64_t number, int64_t now_ns)
{
	struct store_held_back *held = find_held_back(store, number);

	lock_assert_held(&store->compact_lock);
	if (!held) {
		mem_grow(store->held_back, store->held_back_count, store->held_back_capacity);
		held = &store->held_back[store->held_back_count++];
		*held = (struct store_held_back){ number, 0, HOLD_BACK_NS / 2 };
	}
	held->delay_ns =
		held->delay_ns < HOLD_BACK_MAX_NS / 2 ? 2 * held->delay_ns : HOLD_BACK_MAX_NS;
	held->until_ns = now_ns + held->delay_ns;
}

/*
 * Together they take too much memory: half as many bytes may do. What a window holds beyond that
 * becomes parts of its own, which stay.
 */
static void lower_bytes_max(struct store_disk *store, const struct compact_plan *plan,
			    const struct err *err)
{
	lock_assert_held(&store->compact_lock);
	assert(plan->parts_count > 1 && plan->bytes > 1);
	store->compact_bytes_max = plan->bytes / 2;
	log_info("store", "parts are compacted in several steps", "inputs=%zu tier=%d cause=\"%s\"",
		 plan->parts_count, plan->tier, err->message);
}

/* Step by step, for other names may be shorter. */
static void raise_bytes_max(struct store_disk *store)
{
	uint64_t *max = &store->compact_bytes_max;

	lock_assert_held(&store->compact_lock);
	if (*max && __builtin_add_overflow(*max, *max / 8 + 1, max))
		*max = 0;
	if (*max > COMPACT_BYTES_MAX)
		*max = 0;
}

static void hold_back_job(struct store_disk *store, const struct compact_plan *plan,
			  const struct err *err)
{
	assert(plan->parts_count && plan->parts_count <= COMPACT_INPUTS_MAX);
	for (size_t i = 0; i < plan->parts_count; i++)
		hold_back(store, plan->parts[i], store_now_ns(store));
	metric_set(&store_compact_held_back, (int64_t)store->held_back_count);
	log_warn("store", "parts cannot be compacted; they are skipped and retried later",
		 "inputs=%zu first=%llu tier=%d error=\"%s\"", plan->parts_count,
		 (unsigned long long)plan->parts[0], plan->tier, err->message);
}

static bool has_deletes(const struct tombstones *tombstones, const struct part_info *part)
{
	for (size_t i = 0; i < tombstones->count; i++) {
		const struct tombstone *tombstone = &tombstones->items[i];

		if (!part->damaged &&
		    tombstone_meets(tombstone->number, tombstone->from_ns, tombstone->to_ns, part))
			return true;
	}
	return false;
}

/* A part that some tombstone may touch. */
static bool plan_deletes(const struct store_disk *store, struct compact_plan *ret)
{
	const struct manifest_state *state = &store->manifest.state;

	lock_assert_held(&store->seal_lock);
	for (size_t i = 0; i < state->parts_count; i++) {
		const struct part_info *part = &state->parts[i];

		if (!has_deletes(store->tombstones, part) ||
		    is_held_back(store, part->number, store_now_ns(store)))
			continue;
		*ret = (struct compact_plan){ .tier = part->tier, .bytes = part->bytes };
		ret->parts[ret->parts_count++] = part->number;
		return true;
	}
	return false;
}

static const struct part_info *find_part(const struct store_disk *store, uint64_t number)
{
	const struct manifest_state *state = &store->manifest.state;

	lock_assert_held(&store->seal_lock);
	for (size_t i = 0; i < state->parts_count; i++)
		if (state->parts[i].number == number)
			return &state->parts[i];
	return NULL;
}

/* Forgets those held back that are no parts any more. */
static void prune_held_back(struct store_disk *store)
{
	size_t kept = 0;

	lock_assert_held(&store->seal_lock);
	for (size_t i = 0; i < store->held_back_count; i++)
		if (find_part(store, store->held_back[i].number))
			store->held_back[kept++] = store->held_back[i];
	assert(kept <= store->held_back_count);
	store->held_back_count = kept;
	metric_set(&store_compact_held_back, (int64_t)kept);
}

/* Retention by size takes whole parts: each is a small share of the limit. Memory bounds it too. */
static uint64_t bytes_max(const struct store_disk *store)
{
	uint64_t share = store->options.retention_bytes / STORE_LIMIT_SHARE;
	uint64_t max = share && share < COMPACT_BYTES_MAX ? share : COMPACT_BYTES_MAX;

	return store->compact_bytes_max && store->compact_bytes_max < max ? store->compact_bytes_max
									  : max;
}

/* As compact_plan_next, without the parts that are held back. */
static bool plan_next(struct store_disk *store, bool all, struct compact_plan *ret)
{
	const struct manifest_state *state = &store->manifest.state;
	struct part_info *parts = mem_new_array(struct part_info, state->parts_count);
	int64_t now_ns = store_now_ns(store);
	size_t count = 0;
	bool found;

	lock_assert_held(&store->seal_lock);
	for (size_t i = 0; i < state->parts_count; i++)
		if (!is_held_back(store, state->parts[i].number, now_ns))
			parts[count++] = state->parts[i];
	found = compact_plan_next(parts, count, bytes_max(store), all ? INT64_MAX : now_ns, ret);
	free(parts);
	return found;
}

/* The result is beside the inputs for a while. */
static int check_room(const struct store_disk *store, const struct compact_plan *plan,
		      struct err *err)
{
	uint64_t free_bytes, total_bytes, need = plan->bytes + plan->bytes / 2;

	if (store->vfs->space(store->vfs, store->path, &free_bytes, &total_bytes) ||
	    free_bytes >= need + store->options.reserve_bytes / 4)
		return 0;
	return err_set(err, ERR_NO_SPACE,
		       "compact: needs about %llu MB, and the disk has %llu MB free",
		       (unsigned long long)(need >> 20), (unsigned long long)(free_bytes >> 20));
}

static int choose(struct step *step, bool all, bool *ret_found, struct err *err)
{
	struct store_disk *store = step->store;
	int rc = store_check_writable(store, err);

	lock_assert_held(&store->seal_lock);
	assert(!step->inputs && !step->number);
	*ret_found = false;
	if (rc)
		return rc;
	prune_held_back(store);
	step->only_deletes = plan_deletes(store, &step->plan);
	if (!step->only_deletes && !plan_next(store, all, &step->plan))
		return 0;
	*ret_found = true;
	rc = check_room(store, &step->plan, err);
	if (rc)
		return rc;
	step->inputs = mem_new_array(struct part_info, step->plan.parts_count);
	for (size_t i = 0; i < step->plan.parts_count; i++)
		step->inputs[i] = *find_part(store, step->plan.parts[i]);
	step->number = manifest_take_number(&store->manifest);
	step->tombstones = tombstones_ref(store->tombstones);
	return 0;
}

/* True if all inputs are as they were. */
static bool inputs_stand(const struct step *step)
{
	lock_assert_held(&step->store->seal_lock);
	for (size_t i = 0; i < step->plan.parts_count; i++) {
		const struct part_info *part = find_part(step->store, step->inputs[i].number);

		if (!part || part->damaged)
			return false;
	}
	return true;
}

/* Snapshots see the inputs before and the result after. */
static void swap_in(struct step *step, const struct part_info *part)
{
	struct store_disk *store = step->store;

	lock_assert_held(&store->seal_lock);
	lock_take(&store->lock);
	for (size_t i = 0; i < step->plan.parts_count; i++)
		part_cache_drop(&store->cache, step->inputs[i].number);
	if (part->number)
		part_cache_add(&store->cache, part);
	lock_give(&store->lock);
}

static void remove_part_file(const struct store_disk *store, uint64_t number)
{
	struct layout_path path = layout_path(store->path, LAYOUT_PART, number);

	assert(number);
	store->vfs->unlink(store->vfs, path.text); /* else the next open does */
}

static int put_in_force(struct step *step, const struct part_info *part, struct err *err)
{
	struct store_disk *store = step->store;
	struct manifest_edit edit = { 0 };
	int rc;

	lock_assert_held(&store->seal_lock);
	assert(!part->number || part->number == step->number);
	for (size_t i = 0; i < step->plan.parts_count; i++)
		manifest_edit_drop_part(&edit, step->inputs[i].number);
	if (part->number)
		manifest_edit_add_part(&edit, part);
	rc = manifest_commit(&store->manifest, &edit, err);
	manifest_edit_free(&edit);
	if (rc)
		return rc;
	swap_in(step, part);
	return store_settle_tombstones(store, err);
}

static int finish(struct step *step, const struct part_info *part, struct err *err)
{
	struct store_disk *store = step->store;
	bool stand;
	int rc = 0;

	lock_take(&store->seal_lock);
	stand = inputs_stand(step);
	if (stand)
		rc = put_in_force(step, part, err);
	if ((!stand || (rc && !find_part(store, part->number))) && part->number &&
	    !store->manifest.poisoned)
		remove_part_file(store, part->number);
	store_note_fault(store, rc, err);
	store_publish_parts(store);
	lock_give(&store->seal_lock);
	return rc;
}

static void count(const struct step *step, const struct compact_result *result, int64_t began_ns,
		  struct store_compacted *ret)
{
	assert(!result->part.number || result->part.number == step->number);
	ret->jobs++;
	ret->parts_in += step->plan.parts_count;
	ret->parts_out += result->part.number != 0;
	ret->bytes_in += step->plan.bytes;
	ret->bytes_out += result->part.bytes;
	ret->reports_deleted += result->reports_deleted;
	metric_add(&store_compactions, 1);
	metric_add(&store_compact_read_bytes, (int64_t)step->plan.bytes);
	metric_add(&store_compact_written_bytes, (int64_t)result->part.bytes);
	metric_add(&store_compact_rows, (int64_t)result->part.rows);
	metric_add(&store_deleted_reports, (int64_t)result->reports_deleted);
	metric_add(&store_compact_seconds, clock_monotonic_ns() - began_ns);
	log_info("store", "parts compacted",
		 "inputs=%zu part=%llu tier=%d rows=%llu bytes_in=%llu bytes_out=%llu deleted=%llu",
		 step->plan.parts_count, (unsigned long long)result->part.number, step->plan.tier,
		 (unsigned long long)result->part.rows, (unsigned long long)step->plan.bytes,
		 (unsigned long long)result->part.bytes,
		 (unsigned long long)result->reports_deleted);
}

int store_note_unreadable(struct store_disk *store, uint64_t number, int rc, struct err *err)
{
	bool stands;

	if (rc == -ERR_NOT_FOUND) {
		lock_take(&store->seal_lock);
		stands = find_part(store, number) != NULL;
		lock_give(&store->seal_lock);
		if (stands)
			rc = err_set(err, ERR_CORRUPT, "part %llu: its file is missing",
				     (unsigned long long)number);
	}
	if (rc == -ERR_CORRUPT)
		part_cache_note_damaged(&store->cache, number, err);
	return rc;
}

static int run(struct step *step, const struct store_compact_options *options,
	       struct throttle *throttle, struct store_compacted *ret, struct err *err)
{
	struct compact_job job = {
		.vfs = step->store->vfs,
		.dir = step->store->path,
		.inputs = step->inputs,
		.inputs_count = step->plan.parts_count,
		.memory_bytes = step->store->options.compact_bytes,
		.number = step->number,
		.tier = step->plan.tier,
		.tombstones = step->tombstones,
		.moments_from_ns =
			step->store->options.moments_ns
				? store_now_ns(step->store) - step->store->options.moments_ns
				: INT64_MIN,
		.throttle = throttle,
		.progress = options->progress,
		.progress_context = options->context,
	};
	int64_t began_ns = clock_monotonic_ns();
	struct compact_result result;
	int rc;

	assert(step->inputs && step->number && step->plan.parts_count);
	for (size_t i = 0; i < step->plan.parts_count; i++)
		assert(step->inputs[i].number < step->number);
	if (throttle)
		throttle->cpu_percent =
			step->plan.parts_count >= BACKLOG_PARTS ? 100 : STORE_MAINTAIN_CPU_PERCENT;
	rc = compact_run(&job, &result, err);

	if (rc && result.damaged)
		rc = store_note_unreadable(step->store, result.damaged, rc, err);
	if (!rc)
		rc = finish(step, &result.part, err);
	if (!rc)
		count(step, &result, began_ns, ret);
	return rc;
}

/* No report of the part is meant by the tombstones that met it: remember that. */
static int note_untouched(struct step *step, struct err *err)
{
	struct store_disk *store = step->store;
	const struct tombstones *tombstones = step->tombstones;
	struct manifest_edit edit = { 0 };
	int rc = 0;

	assert(step->only_deletes && tombstones->count);
	lock_take(&store->seal_lock);
	if (inputs_stand(step)) {
		uint64_t last = tombstones->items[tombstones->count - 1].number;

		manifest_edit_deleted_to(&edit, step->inputs[0].number, last);
		rc = manifest_commit(&store->manifest, &edit, err);
		if (!rc)
			rc = store_settle_tombstones(store, err);
		manifest_edit_free(&edit);
		store_note_fault(store, rc, err);
	}
	lock_give(&store->seal_lock);
	return rc;
}

static int run_deletes(struct step *step, const struct store_compact_options *options,
		       struct throttle *throttle, struct store_compacted *ret, struct err *err)
{
	int rc = compact_is_deleted(step->store->vfs, step->store->path, &step->inputs[0],
				    step->tombstones, err);

	assert(step->plan.parts_count == 1);
	if (rc < 0)
		rc = store_note_unreadable(step->store, step->inputs[0].number, rc, err);
	if (rc > 0)
		return run(step, options, throttle, ret, err);
	return rc ? rc : note_untouched(step, err);
}

int store_compact_step(struct store_disk *store, const struct store_compact_options *options,
		       struct throttle *throttle, struct store_compacted *ret, bool *ret_done,
		       struct err *err)
{
	struct step step = { .store = store };
	struct err cause = { 0 };
	int rc = throttle_check(throttle, &cause);

	lock_assert_held(&store->compact_lock);
	*ret_done = false;
	lock_take(&store->seal_lock);
	if (!rc)
		rc = choose(&step, options->all, ret_done, &cause);
	lock_give(&store->seal_lock);
	if (!rc && *ret_done) {
		metric_set(&store_compact_running, 1);
		rc = step.only_deletes ? run_deletes(&step, options, throttle, ret, &cause)
				       : run(&step, options, throttle, ret, &cause);
		metric_set(&store_compact_running, 0);
	}
	if (rc == -ERR_LIMIT && *ret_done && step.plan.parts_count > 1) {
		lower_bytes_max(store, &step.plan, &cause);
		rc = 0;
	} else if (!rc && *ret_done) {
		raise_bytes_max(store);
	}
	tombstones_unref(step.tombstones);
	free(step.inputs);
	metric_add(&store_compact_errors, rc && rc != -ERR_CANCELLED);
	if (*ret_done && is_of_job(rc))
		hold_back_job(store, &step.plan, &cause);
	if (rc && err)
		*err = cause;
	return rc;
}

int store_disk_compact(struct store_disk *store, const struct store_compact_options *options,
		       struct store_compacted *ret, struct err *err)
{
	struct err cause = { 0 };
	bool done = true;
	int rc = 0, failed = 0;

	*ret = (struct store_compacted){ 0 };
	lock_take(&store->compact_lock);
	store->held_back_count = 0; /* who asks wants it tried now */
	while (!rc && done) {
		rc = store_compact_step(store, options, NULL, ret, &done, &cause);
		ret->parts_damaged += rc == -ERR_CORRUPT;
		if (rc == -ERR_CORRUPT && ret->parts_damaged <= DAMAGED_MAX &&
		    !store_disk_tick(&store->base, NULL))
			rc = 0; /* the damaged part has been set aside: go on without it */
		if (rc && !failed && err)
			*err = cause;
		if (done && is_of_job(rc)) {
			failed = failed ? failed : rc;
			rc = 0; /* there may be others */
		}
	}
	lock_give(&store->compact_lock);
	return failed ? failed : rc;
}
