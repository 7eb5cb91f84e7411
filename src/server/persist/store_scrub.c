/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scrubbing: each part is read and checked once in STORE_SCRUB_NS, the one that waits longest
 * first. What was checked is forgotten when the store is closed.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/part/part_scrub.h"
#include "server/persist/store_int.h"

#define NEVER_NS INT64_MIN

static struct store_scrubbed *find(struct store_disk *store, uint64_t number)
{
	lock_assert_held(&store->compact_lock);
	for (size_t i = 0; i < store->scrubbed_count; i++)
		if (store->scrubbed[i].number == number)
			return &store->scrubbed[i];
	return NULL;
}

/* Forgets parts that are gone, and adds new ones. */
static void refresh(struct store_disk *store)
{
	const struct manifest_state *state = &store->manifest.state;
	struct store_scrubbed *fresh = mem_new_array(struct store_scrubbed, state->parts_count);
	size_t count = 0;

	lock_assert_held(&store->compact_lock);
	lock_assert_held(&store->seal_lock);
	for (size_t i = 0; i < state->parts_count; i++) {
		const struct store_scrubbed *known = find(store, state->parts[i].number);

		if (!state->parts[i].damaged)
			fresh[count++] = (struct store_scrubbed){ state->parts[i].number,
								  known ? known->at_ns : NEVER_NS };
	}
	assert(count <= state->parts_count);
	free(store->scrubbed);
	store->scrubbed = fresh;
	store->scrubbed_count = count;
}

/* The part that waits longest, when it is due; *ret_more: another is, too. */
static struct store_scrubbed *choose(struct store_disk *store, int64_t now_ns, bool *ret_more)
{
	struct store_scrubbed *oldest = NULL;
	size_t due = 0;

	lock_assert_held(&store->compact_lock);
	for (size_t i = 0; i < store->scrubbed_count; i++) {
		struct store_scrubbed *scrubbed = &store->scrubbed[i];

		due += scrubbed->at_ns == NEVER_NS || scrubbed->at_ns < now_ns - STORE_SCRUB_NS;
		if (!oldest || scrubbed->at_ns < oldest->at_ns)
			oldest = scrubbed;
	}
	assert(!due || oldest);
	*ret_more = due > 1;
	return due ? oldest : NULL;
}

/* How long ago the part was looked at that waits longest; since the store was opened, at most. */
static void publish_age(struct store_disk *store, int64_t now_ns)
{
	int64_t oldest_ns = now_ns;

	lock_assert_held(&store->compact_lock);
	for (size_t i = 0; i < store->scrubbed_count; i++) {
		int64_t at_ns = store->scrubbed[i].at_ns == NEVER_NS ? store->opened_ns
								     : store->scrubbed[i].at_ns;

		oldest_ns = at_ns < oldest_ns ? at_ns : oldest_ns;
	}
	metric_set(&store_scrub_age_seconds, (now_ns - oldest_ns) / CLOCK_NS_PER_S);
}

static int scrub_part(struct store_disk *store, struct store_scrubbed *scrubbed,
		      const struct part_info *info, int64_t now_ns, struct err *err)
{
	struct throttle *throttle = store->maintenance_runs ? &store->throttle : NULL;
	int rc;

	lock_assert_held(&store->compact_lock);
	assert(scrubbed->number == info->number && !info->damaged);
	rc = part_scrub(store->vfs, store->path, info, throttle, err);
	if (rc)
		rc = store_note_unreadable(store, info->number, rc, err);
	if (rc == -ERR_NOT_FOUND)
		return 0; /* it was dropped meanwhile */
	if (rc && rc != -ERR_CORRUPT)
		return rc;
	scrubbed->at_ns = now_ns;
	metric_add(&store_scrubbed_bytes, (int64_t)info->bytes);
	return rc;
}

int store_disk_scrub(struct store_disk *store, bool *ret_more, struct err *err)
{
	const struct manifest_state *state = &store->manifest.state;
	int64_t now_ns = store_now_ns(store);
	struct store_scrubbed *scrubbed;
	struct part_info info = { 0 };
	int rc = 0;

	lock_take(&store->compact_lock);
	lock_take(&store->seal_lock);
	refresh(store);
	scrubbed = choose(store, now_ns, ret_more);
	for (size_t i = 0; scrubbed && i < state->parts_count; i++)
		if (state->parts[i].number == scrubbed->number)
			info = state->parts[i];
	assert(!scrubbed || info.number == scrubbed->number);
	lock_give(&store->seal_lock);
	store->throttle.bytes_per_s = STORE_SCRUB_BYTES_PER_S;
	throttle_begin(&store->throttle);
	if (info.number && store->maintenance_runs)
		rc = throttle_check(&store->throttle, err);
	if (info.number && !rc)
		rc = scrub_part(store, scrubbed, &info, now_ns, err);
	store->throttle.bytes_per_s = STORE_MAINTAIN_BYTES_PER_S;
	publish_age(store, now_ns);
	lock_give(&store->compact_lock);
	return rc;
}
