/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From memtables to parts.
 *
 * A generation ends in a moment (store_rotate, with the log turn): appends go on in a new
 * memtable and a new log. The old one is written at leisure (seal_oldest, with seal_lock): part
 * file, state file, then one manifest edit that names both and says that the log begins behind
 * them. Only then the old log goes. Whatever fails before the edit is tried again later.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "server/persist/store_bucket_int.h"
#include "server/persist/store_int.h"

#define LONG_LOG 8u /* times what a memtable holds, and so many segments at least */

bool store_may_rotate(struct store_disk *store)
{
	bool room;

	store_assert_owns_log(store);
	lock_take(&store->lock);
	room = store->memtables_count < STORE_MEMTABLES_MAX;
	lock_give(&store->lock);
	return room;
}

static void count_forgotten(const struct ledger *ledger)
{
	metric_set(&store_forgotten_reports, (int64_t)ledger->dedupe.forgotten);
	metric_set(&store_forgotten_series, (int64_t)ledger->baselines.forgotten);
}

void store_rotate(struct store_disk *store)
{
	struct memtable *old = store->active;
	struct memtable *next = memtable_new(old->generation + 1);

	store_assert_owns_log(store);
	assert(!old->ended);
	assert(!old->state.len);
	ledger_capture(&store->ledger, old->newest_receipt_ns, &old->state);
	count_forgotten(&store->ledger);
	wal_begin_generation(&store->wal, next->generation);
	lock_take(&store->lock);
	memtable_end(old);
	old->end = store->wal.last;
	assert(store->memtables_count < STORE_MEMTABLES_MAX);
	assert(store->memtables[store->memtables_count - 1] == old);
	store->memtables[store->memtables_count++] = next;
	store_check_memtables(store);
	lock_give(&store->lock);
	store->active = next;
}

static struct memtable *oldest_ended(struct store_disk *store)
{
	struct memtable *memtable;

	lock_take(&store->lock);
	memtable = store->memtables[0]->ended ? store->memtables[0] : NULL;
	lock_give(&store->lock);
	return memtable;
}

static int write_state(struct store_disk *store, const struct memtable *memtable, struct err *err)
{
	struct layout_path path = layout_path(store->path, LAYOUT_STATE, memtable->generation);
	struct strbuf bytes = { 0 };
	int rc;

	assert(memtable->ended);
	ledger_encode_file(memtable->generation, strbuf_slice(&memtable->state), &bytes);
	rc = vfs_replace(store->vfs, store->path, path.text, strbuf_slice(&bytes), err);
	strbuf_free(&bytes);
	return rc;
}

/* Part (unless there is nothing in it), state, edit. */
static int write_generation(struct store_disk *store, const struct memtable *memtable,
			    struct part_info *ret, struct err *err)
{
	struct tables_view view = tables_view_of(&memtable->tables);
	struct manifest_edit edit = { 0 };
	uint64_t number = 0;
	int rc = 0;

	lock_assert_held(&store->seal_lock);
	assert(memtable->ended && !ret->number);
	memtable_check(memtable);
	if (view.reports_count) {
		number = manifest_take_number(&store->manifest);
		rc = part_write(store->vfs, store->path, &view, number, ret, err);
		if (!rc)
			manifest_edit_add_part(&edit, ret);
	}
	if (!rc)
		rc = write_state(store, memtable, err);
	if (!rc) {
		manifest_edit_log_from(&edit, memtable->generation + 1, memtable->end,
				       memtable->generation);
		rc = manifest_commit(&store->manifest, &edit, err);
	}
	if (rc && ret->number && !store->manifest.poisoned) {
		struct layout_path path = layout_path(store->path, LAYOUT_PART, number);

		store->vfs->unlink(store->vfs, path.text); /* the next try has another number */
	}
	manifest_edit_free(&edit);
	return rc;
}

/* Snapshots see the memtable before and the part after, never both or none. */
static void swap_in(struct store_disk *store, struct memtable *memtable,
		    const struct part_info *part)
{
	lock_take(&store->lock);
	assert(store->memtables[0] == memtable && memtable->ended);
	assert(store->memtables_count > 1);
	if (part->number)
		part_cache_add(&store->cache, part);
	store->memtables_count--;
	memmove(&store->memtables[0], &store->memtables[1],
		store->memtables_count * sizeof(store->memtables[0]));
	store_check_memtables(store);
	lock_give(&store->lock);
	store_unref_memtable(store, memtable);
}

/* Files of the log and states that the edit made superfluous. What stays, the next open removes. */
static void remove_old_files(struct store_disk *store)
{
	const struct manifest_state *state = &store->manifest.state;
	struct layout_list list;

	lock_assert_held(&store->seal_lock);
	if (layout_list(store->vfs, store->path, &list, NULL))
		return;
	for (size_t i = 0; i < list.count; i++) {
		const struct layout_name *name = &list.entries[i].name;
		struct layout_path path = layout_join(store->path, list.entries[i].text);

		if ((name->kind == LAYOUT_WAL && name->number < state->log_generation) ||
		    (name->kind == LAYOUT_STATE && name->number < state->state_generation))
			store->vfs->unlink(store->vfs, path.text);
	}
	free(list.entries);
}

static void set_damaged_log_aside(struct store_disk *store, const struct memtable *memtable)
{
	struct err err;

	for (size_t i = 0; i < memtable->damaged_count; i++)
		if (layout_quarantine(store->vfs, store->path, memtable->damaged[i], &err))
			log_warn("store", "cannot set a damaged log aside", "error=\"%s\"",
				 err.message);
}

void store_publish_parts(struct store_disk *store)
{
	const struct manifest_state *state = &store->manifest.state;
	uint64_t bytes = 0, damaged = 0;

	lock_assert_held(&store->seal_lock);
	for (size_t i = 0; i < state->parts_count; i++) {
		bytes += state->parts[i].bytes;
		damaged += state->parts[i].damaged;
	}
	metric_set(&store_parts, (int64_t)state->parts_count);
	metric_set(&store_part_bytes, (int64_t)bytes);
	metric_set(&store_parts_quarantined, (int64_t)damaged);
}

static int seal_oldest(struct store_disk *store, struct memtable *memtable, struct err *err)
{
	struct part_info part = { 0 };
	int rc = write_generation(store, memtable, &part, err);

	lock_assert_held(&store->seal_lock);
	if (rc)
		return rc;
	set_damaged_log_aside(store, memtable);
	store_bucket_note_sealed(store, memtable->generation, memtable->created_ns);
	swap_in(store, memtable, &part);
	remove_old_files(store);
	metric_add(&store_seals, 1);
	return 0;
}

static int seal_ended(struct store_disk *store, struct err *err)
{
	struct memtable *memtable;
	int rc = 0;

	while (!rc && !throttle_check(&store->throttle, NULL) && (memtable = oldest_ended(store)))
		rc = seal_oldest(store, memtable, err);
	return rc;
}

static int set_damaged_parts_aside(struct store_disk *store, struct err *err)
{
	uint64_t generation;
	int rc = 0;

	lock_assert_held(&store->seal_lock);
	while (!rc && (generation = part_cache_take_damaged(&store->cache))) {
		struct manifest_edit edit = { 0 };

		manifest_edit_damage_part(&edit, generation);
		rc = manifest_commit(&store->manifest, &edit, err);
		manifest_edit_free(&edit);
		if (!rc)
			rc = layout_quarantine(store->vfs, store->path,
					       (struct layout_name){ LAYOUT_PART, generation, 0 },
					       err);
	}
	return rc;
}

/*
 * Every run begins a segment, however little is written to it: a server that dies again and again
 * would fill the disk with them, and read all of them back each time.
 */
static bool log_is_long(const struct store_disk *store)
{
	uint64_t segments = store->wal.segment_next;

	store_assert_owns_log(store);
	return segments >= LONG_LOG &&
	       segments >= LONG_LOG * store->options.seal_bytes / store->options.segment_bytes;
}

/* Ends the active generation if it is due, or has anything in it when `now`. */
static void rotate_if_due(struct store_disk *store, bool now)
{
	const struct memtable *active;
	int64_t age;

	store_take_log(store);
	active = store->active;
	age = active->created_ns ? store_now_ns(store) - active->created_ns : 0;
	if (active->created_ns && store_may_rotate(store) &&
	    (now || age >= store->options.seal_age_ns || log_is_long(store) ||
	     memtable_bytes(active) >= store->options.seal_bytes))
		store_rotate(store);
	store_give_log(store);
}

/* Appends tell it when there is no room for them. */
static void note_sealed(struct store_disk *store, int rc, const struct err *err)
{
	lock_take(&store->lock);
	store->seal_err = rc ? *err : (struct err){ 0 };
	lock_give(&store->lock);
	metric_add(&store_seal_errors, rc != 0);
}

/* Besides sealing. */
static int keep_house(struct store_disk *store, struct err *err)
{
	int rc = set_damaged_parts_aside(store, err);

	lock_assert_held(&store->seal_lock);
	if (rc)
		return err_wrap(err, "set damaged parts aside"), rc;
	rc = store_apply_retention(store, err);
	return rc ? (err_wrap(err, "apply retention"), rc) : 0;
}

/* On a full disk it is old parts that make room for new ones. Tells the worst failure. */
static int seal_and_keep_house(struct store_disk *store, struct err *err)
{
	struct err later;
	int rc = seal_ended(store, err), kept;

	note_sealed(store, rc, err);
	if (!rc)
		return keep_house(store, err);
	err_wrap(err, "write a part");
	if (rc != -ERR_NO_SPACE)
		return rc;
	kept = keep_house(store, &later);
	if (!vfs_is_fault(kept))
		return rc;
	*err = later;
	return kept;
}

static int work(struct store_disk *store, bool seal_now, struct err *err)
{
	struct err cause = { 0 };
	int rc = store_check_writable(store, err);

	if (rc)
		return rc;
	lock_take(&store->seal_lock);
	rotate_if_due(store, seal_now);
	rc = seal_and_keep_house(store, &cause);
	store_publish_parts(store);
	store_watch_disk(store);
	if (store->manifest.poisoned || vfs_is_fault(rc))
		store_poison(store, &cause);
	lock_give(&store->seal_lock);
	if (rc && err)
		*err = cause;
	return rc;
}

int store_disk_seal(struct store_disk *store, struct err *err)
{
	return work(store, true, err);
}

int store_seal_due(struct store_disk *store, struct err *err)
{
	return work(store, false, err);
}
