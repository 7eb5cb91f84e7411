/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of single tenants: what is over them is deleted as if somebody had ordered it, by a
 * tombstone on the tenant and everything before a moment. So it is gone from answers at once, and
 * from the disk when compaction comes by; parts hold several tenants and cannot go as a whole.
 *
 * Moments by age are the beginnings of windows of compaction, so that each part is written anew
 * only once. Parts of which the tenant's bytes are over the limit go from the oldest on.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/persist/compact/compact_plan.h"
#include "server/persist/store_admin.h"
#include "server/persist/store_int.h"

#define LOOK_NS (300 * CLOCK_NS_PER_S)
#define BY "retention"

/* What a part has of the tenant. */
struct share {
	const struct part_info *part;
	int64_t start_min_ns, start_max_ns;
	uint64_t bytes;
};

struct looking {
	struct store_disk *store;
	struct part **parts;
	size_t parts_count;
	struct strbuf selector;
	struct share *shares;
	size_t count, capacity;
};

static uint64_t bytes_of(const struct part_info *part, const struct part_partition *partition)
{
	uint64_t samples = part->bytes_samples + part->bytes_rollups + part->bytes_moments;

	return partition->bytes_series + partition->bytes_symbols + partition->bytes_stacks +
	       (part->rows
			? (uint64_t)((double)samples * (double)partition->rows / (double)part->rows)
			: 0);
}

/* True if what the tenant has in the part before `to_ns` was ordered to go. */
static bool is_ordered(const struct looking *looking, const struct part_info *part, int64_t to_ns)
{
	const struct manifest_state *state = &looking->store->manifest.state;

	lock_assert_held(&looking->store->seal_lock);
	for (size_t i = 0; i < state->tombstones_count; i++) {
		const struct manifest_tombstone *tombstone = &state->tombstones[i];

		if (tombstone->to_ns >= to_ns && !strcmp(tombstone->by, BY) &&
		    slice_is(strbuf_slice(&looking->selector), tombstone->selector) &&
		    tombstone_meets(tombstone->number, tombstone->from_ns, tombstone->to_ns, part))
			return true;
	}
	return false;
}

static void add_part(struct looking *looking, const struct part *part, struct slice tenant)
{
	struct share share = { .part = &part->info,
			       .start_min_ns = INT64_MAX,
			       .start_max_ns = INT64_MIN };

	assert(part->reader);
	for (uint32_t i = 0; i < part_reader_partitions(part->reader); i++) {
		const struct part_partition *partition = part_reader_partition(part->reader, i);

		if (!partition->reports || !slice_equal(partition->key.tenant, tenant))
			continue;
		if (partition->start_min_ns < share.start_min_ns)
			share.start_min_ns = partition->start_min_ns;
		if (partition->start_max_ns > share.start_max_ns)
			share.start_max_ns = partition->start_max_ns;
		share.bytes += bytes_of(&part->info, partition);
	}
	if (share.start_min_ns > share.start_max_ns ||
	    is_ordered(looking, &part->info, share.start_max_ns + 1))
		return;
	mem_grow(looking->shares, looking->count, looking->capacity);
	looking->shares[looking->count++] = share;
}

static int newest_first(const void *left, const void *right)
{
	const struct share *a = left, *b = right;

	return (a->start_max_ns < b->start_max_ns) - (a->start_max_ns > b->start_max_ns);
}

static int64_t moment_by_age(const struct store_disk *store, int64_t retention_ns)
{
	int64_t window_ns = retention_ns >= 2 * COMPACT_DAY_NS ? COMPACT_DAY_NS : COMPACT_HOURS_NS;

	return retention_ns ? compact_window(store_now_ns(store) - retention_ns, window_ns)
			    : INT64_MIN;
}

/* Reports before this go; INT64_MIN: none. */
static int64_t find_moment(struct looking *looking, const struct store_tenant_limit *limit)
{
	int64_t by_age = moment_by_age(looking->store, limit->retention_ns), moment = INT64_MIN;
	uint64_t bytes = 0;

	lock_assert_held(&looking->store->seal_lock);
	if (looking->count)
		qsort(looking->shares, looking->count, sizeof(*looking->shares), newest_first);
	for (size_t i = 0; i < looking->count; i++) {
		const struct share *share = &looking->shares[i];

		bytes += share->bytes;
		if (limit->bytes && bytes > limit->bytes && share->start_max_ns >= moment)
			moment = share->start_max_ns + 1;
		if (share->start_min_ns < by_age && by_age > moment &&
		    !is_ordered(looking, share->part, by_age))
			moment = by_age;
	}
	return moment;
}

static int apply(struct looking *looking, const struct store_tenant_limit *limit, struct err *err)
{
	struct store_delete order = { .from_ns = INT64_MIN, .by = BY };
	uint64_t number;

	looking->count = 0;
	strbuf_clear(&looking->selector);
	strbuf_addf(&looking->selector, "{" PART_KEY_TENANT "=\"%s\"}", limit->tenant);
	lock_take(&looking->store->seal_lock);
	for (size_t i = 0; i < looking->parts_count; i++)
		add_part(looking, looking->parts[i], slice_of(limit->tenant));
	order.to_ns = find_moment(looking, limit);
	lock_give(&looking->store->seal_lock);
	if (order.to_ns == INT64_MIN)
		return 0;
	order.selector = strbuf_slice(&looking->selector);
	return store_disk_delete(&looking->store->base, &order, &number, err);
}

/* True if it is time again. */
static bool is_due(struct store_disk *store)
{
	int64_t now_ns = store_now_ns(store);
	bool due;

	lock_take(&store->lock);
	due = !store->tenants_looked_ns || now_ns - store->tenants_looked_ns >= LOOK_NS ||
	      now_ns < store->tenants_looked_ns;
	if (due)
		store->tenants_looked_ns = now_ns;
	lock_give(&store->lock);
	return due;
}

/*
 * Pins the parts that can be read. What cannot is counted and set aside by who reads it next, who
 * may be doing that now.
 */
static void take_parts(struct looking *looking)
{
	struct store_disk *store = looking->store;
	size_t count;

	lock_take(&store->lock);
	count = part_cache_select(&store->cache, INT64_MIN, INT64_MAX, &looking->parts);
	lock_give(&store->lock);
	for (size_t i = 0; i < count; i++)
		if (part_cache_load(&store->cache, looking->parts[i], NULL))
			part_cache_unpin(&store->cache, looking->parts[i]);
		else
			looking->parts[looking->parts_count++] = looking->parts[i];
	assert(looking->parts_count <= count);
}

int store_apply_tenant_limits(struct store_disk *store, struct err *err)
{
	const struct store_options *options = &store->options;
	struct looking looking = { .store = store };
	int rc = 0;

	if (!options->tenant_limits_count || !is_due(store))
		return 0;
	take_parts(&looking);
	for (size_t i = 0; i < options->tenant_limits_count && !rc; i++)
		rc = apply(&looking, &options->tenant_limits[i], err);
	for (size_t i = 0; i < looking.parts_count; i++)
		part_cache_unpin(&store->cache, looking.parts[i]);
	free(looking.parts);
	free(looking.shares);
	strbuf_free(&looking.selector);
	return rc;
}
