/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery: the manifest, then the state it names, then the log behind it, in the order in which
 * it was written. Every step may be repeated: nothing is changed before what was read is known to
 * be on disk, and only files that nothing refers to are removed.
 */
#include "base/log.h"
#include "base/mem.h"
#include "server/persist/store_int.h"
#include "server/persist/store_replay.h"

struct replay {
	struct store_disk *store;
	struct wal_chain chain;
	uint64_t generation;				   /* of the segment being read */
	struct store_replay *fillers[STORE_MEMTABLES_MAX]; /* of the memtables, oldest first */
	size_t fillers_count;
};

static int begin_fresh(struct store_disk *store, struct err *err)
{
	struct manifest_edit edit = { 0 };
	int rc;

	lock_assert_held(&store->seal_lock);
	manifest_init(&store->manifest, store->vfs, store->path);
	manifest_edit_log_from(&edit, 1, (struct wal_position){ 0 }, 0);
	rc = manifest_commit(&store->manifest, &edit, err);
	manifest_edit_free(&edit);
	return rc ? (err_wrap(err, "make a new store in \"%s\"", store->path), rc) : 0;
}

static bool is_orphan(const struct manifest *manifest, const struct layout_name *name)
{
	const struct manifest_state *state = &manifest->state;

	switch (name->kind) {
	case LAYOUT_TEMPORARY:
		return true;
	case LAYOUT_MANIFEST:
		return name->number != manifest->number;
	case LAYOUT_WAL:
		return name->number < state->log_generation;
	case LAYOUT_STATE:
		return name->number != state->state_generation;
	case LAYOUT_PART:
		for (size_t i = 0; i < state->parts_count; i++)
			if (state->parts[i].number == name->number)
				return false;
		return true;
	default:
		return false;
	}
}

/* Removes what an earlier run left behind between two steps. We hold the lock. */
static void remove_orphans(struct store_disk *store, const struct layout_list *list)
{
	lock_assert_held(&store->seal_lock);
	for (size_t i = 0; i < list->count; i++) {
		struct layout_path path = layout_join(store->path, list->entries[i].text);

		if (is_orphan(&store->manifest, &list->entries[i].name))
			store->vfs->unlink(store->vfs, path.text); /* else the next open does */
	}
}

/* Damaged parts whose move was cut off, or that were damaged in an earlier run. */
static void set_aside_damaged(struct store_disk *store)
{
	const struct manifest_state *state = &store->manifest.state;
	struct err err;

	lock_assert_held(&store->seal_lock);
	for (size_t i = 0; i < state->parts_count; i++) {
		struct layout_name name = { LAYOUT_PART, state->parts[i].number, 0 };

		if (state->parts[i].damaged &&
		    layout_quarantine(store->vfs, store->path, name, &err))
			log_warn("store", "cannot set a damaged part aside", "error=\"%s\"",
				 err.message);
	}
}

static void add_parts(struct store_disk *store)
{
	const struct manifest_state *state = &store->manifest.state;
	uint64_t bytes = 0, damaged = 0;

	for (size_t i = 0; i < state->parts_count; i++) {
		part_cache_add(&store->cache, &state->parts[i]);
		bytes += state->parts[i].bytes;
		damaged += state->parts[i].damaged;
	}
	if (store->options.read_only)
		return;
	metric_set(&store_parts, (int64_t)state->parts_count);
	metric_set(&store_part_bytes, (int64_t)bytes);
	metric_set(&store_parts_quarantined, (int64_t)damaged);
}

/* What cannot be moved is told, and found again by the next open. */
static void set_state_aside(const struct store_disk *store, uint64_t generation)
{
	struct layout_name name = { LAYOUT_STATE, generation, 0 };
	struct err err;

	if (layout_quarantine(store->vfs, store->path, name, &err))
		log_warn("store", "cannot set a damaged state aside", "error=\"%s\"", err.message);
}

/* Without its state the store still has all data, but a retry of the last day may count twice. */
static int load_state(struct store_disk *store, struct err *err)
{
	uint64_t generation = store->manifest.state.state_generation;
	struct layout_path path = layout_path(store->path, LAYOUT_STATE, generation);
	struct strbuf bytes = { 0 };
	int rc;

	lock_assert_held(&store->seal_lock);
	if (!generation)
		return 0;
	rc = vfs_read_whole(store->vfs, path.text, LEDGER_FILE_BYTES_MAX, &bytes, err);
	if (!rc)
		rc = ledger_decode_file(strbuf_slice(&bytes), generation, &store->ledger, err);
	strbuf_free(&bytes);
	if (rc == -ERR_NOT_FOUND && store->options.read_only)
		return rc; /* the server has gone on: try again */
	if (rc == -ERR_CORRUPT || rc == -ERR_NOT_FOUND) {
		log_error("store",
			  "identities of reports and baselines are lost; retries may count twice",
			  "path=\"%s\" error=\"%s\"", path.text, err->message);
		metric_add(&store_wal_damages, 1);
		if (!store->options.read_only)
			set_state_aside(store, generation);
		return 0;
	}
	return rc;
}

static void add_memtable(struct replay *replay, uint64_t generation)
{
	struct store_disk *store = replay->store;

	assert(store->memtables_count < STORE_MEMTABLES_MAX);
	assert(replay->fillers_count == store->memtables_count);
	store->active = memtable_new(generation);
	store->memtables[store->memtables_count++] = store->active;
	replay->fillers[replay->fillers_count++] =
		store_replay_new(store->active, STORE_REPLAY_BYTES_MAX);
}

/* The replay that fills the active memtable. */
static struct store_replay *filler_of(const struct replay *replay)
{
	assert(replay->fillers_count);
	return replay->fillers[replay->fillers_count - 1];
}

/* The memtable of an older generation is complete: what store_rotate does while running. */
static void end_memtable(struct replay *replay)
{
	struct memtable *memtable = replay->store->active;

	assert(!memtable->ended && !memtable->state.len);
	memtable->ended = true;
	memtable->end = replay->chain.last;
	ledger_capture(&replay->store->ledger, memtable->newest_receipt_ns, &memtable->state);
}

static bool is_stopping(const struct store_disk *store)
{
	return store->options.is_stopping && store->options.is_stopping();
}

static int replay_record(void *context, const struct wal_record *record, struct err *err)
{
	struct replay *replay = context;
	struct store_disk *store = replay->store;
	struct append_result result = { 0 };
	struct memtable_verdict verdict;
	struct memtable_window window;
	struct tables_image batch;
	int rc;

	if (is_stopping(store))
		return 0; /* the store is not going to open */
	if (record->type != WAL_RECORD_BATCH)
		return err_set(err, ERR_UNSUPPORTED, "record has type %u, newer than this firn",
			       record->type);
	rc = memtable_decode_batch(record->payload, &window, &batch, err);
	if (rc)
		return rc;
	verdict = memtable_judge(store->active, &store->ledger, &batch.view, &window, &result);
	if (verdict.needs_ledger) {
		store_replay_wait(filler_of(replay));
		memtable_store(store->active, &store->ledger, &batch.view, &verdict, &result);
		free(verdict.outcomes);
	} else {
		store_replay_give(filler_of(replay), record->payload, &batch, &verdict);
	}
	tables_image_free(&batch);
	metric_add(&store_recovered, 1);
	return 0;
}

/* Bytes that a killed process wrote but did not sync may be acted upon only once they are. */
static int read_segment(struct store_disk *store, const char *path, struct strbuf *out,
			struct err *err)
{
	struct vfs_file *file;
	int rc = 0;

	if (!store->options.read_only) {
		rc = vfs_open(store->vfs, path, VFS_WRITE, &file, err);
		if (rc)
			return rc;
		rc = vfs_sync(file, err);
		if (!rc)
			store->vfs->drop_cache(file); /* a hint */
		vfs_close(file);
	}
	return rc ? rc : vfs_read_whole(store->vfs, path, WAL_SEGMENT_BYTES_MAX, out, err);
}

static void note_damaged_segment(struct memtable *memtable, const struct layout_name *name)
{
	mem_grow(memtable->damaged, memtable->damaged_count, memtable->damaged_capacity);
	memtable->damaged[memtable->damaged_count++] = *name;
}

static int replay_segment(struct replay *replay, const struct layout_entry *entry, struct err *err)
{
	struct store_disk *store = replay->store;
	struct layout_path path = layout_join(store->path, entry->text);
	struct strbuf bytes = { 0 };
	int rc = read_segment(store, path.text, &bytes, err);

	if (!rc && !wal_is_begun(&replay->chain, strbuf_slice(&bytes))) {
		if (!store->options.read_only)
			store->vfs->unlink(store->vfs, path.text); /* else the next open does */
		strbuf_free(&bytes);
		return 0;
	}
	if (!rc && entry->name.number != store->active->generation) {
		end_memtable(replay);
		if (store->memtables_count == STORE_MEMTABLES_MAX)
			rc = err_set(err, ERR_CORRUPT,
				     "store \"%s\" has a log of too many generations", store->path);
		else
			add_memtable(replay, entry->name.number);
	}
	replay->generation = entry->name.number;
	if (!rc && !wal_read_segment(&replay->chain, &entry->name, strbuf_slice(&bytes),
				     replay_record, replay))
		note_damaged_segment(store->active, &entry->name);
	store_replay_keep(filler_of(replay), &bytes);
	return rc;
}

static void tell(const struct store_disk *store, const struct wal_chain *chain)
{
	metric_add(&store_wal_damages, (int64_t)chain->damages);
	metric_add(&store_wal_lost, (int64_t)chain->lost);
	if (chain->damages)
		log_error("store", "the log is damaged: acknowledged batches may be missing",
			  "path=\"%s\" places=%llu lost_batches=%llu detail=\"%s\"", store->path,
			  (unsigned long long)chain->damages, (unsigned long long)chain->lost,
			  strbuf_text(chain->report));
	else if (chain->records && !store->options.read_only)
		log_info("store", "log replayed", "path=\"%s\" batches=%llu torn_tails=%llu",
			 store->path, (unsigned long long)chain->records,
			 (unsigned long long)chain->torn);
}

/* All memtables are as the log says then, unless cancelled. */
static void end_fillers(struct replay *replay, bool cancelled)
{
	for (size_t i = 0; cancelled && i < replay->fillers_count; i++)
		store_replay_cancel(replay->fillers[i]);
	for (size_t i = 0; i < replay->fillers_count; i++) {
		if (store_replay_end(replay->fillers[i]))
			continue;
		replay->chain.damages++;
		strbuf_addf(replay->chain.report,
			    "generation %llu is larger than firn writes them\n",
			    (unsigned long long)replay->store->memtables[i]->generation);
	}
	replay->fillers_count = 0;
}

static int replay_log(struct store_disk *store, const struct layout_list *list, struct err *err)
{
	const struct manifest_state *state = &store->manifest.state;
	struct strbuf report = { 0 };
	struct replay replay = {
		.store = store,
		.chain = { .last = state->log_from, .report = &report },
		.generation = state->log_generation,
	};
	uint64_t segment_next = 0; /* of the last generation that was begun */
	int rc = 0;

	lock_assert_held(&store->seal_lock);
	add_memtable(&replay, state->log_generation);
	for (size_t i = 0; !rc && i < list->count; i++) {
		const struct layout_entry *entry = &list->entries[i];

		if (entry->name.kind != LAYOUT_WAL || entry->name.number < state->log_generation)
			continue;
		rc = replay_segment(&replay, entry, err);
		if (!rc && is_stopping(store))
			rc = err_set(err, ERR_CANCELLED, "stopped while the log was replayed");
		if (entry->name.number == store->active->generation)
			segment_next = entry->name.segment + 1;
	}
	end_fillers(&replay, rc != 0);
	if (!rc) {
		tell(store, &replay.chain);
		wal_init(&store->wal, store->vfs, store->path, store->options.segment_bytes,
			 store->active->generation, segment_next, replay.chain.last);
	}
	strbuf_free(&report);
	return rc;
}

static int recover(struct store_disk *store, bool fresh, struct err *err)
{
	bool writable = !store->options.read_only;
	struct layout_list list = { 0 };
	int rc;

	if (fresh)
		rc = begin_fresh(store, err);
	else
		rc = manifest_load(&store->manifest, store->vfs, store->path, writable, err);
	if (!rc)
		rc = layout_list(store->vfs, store->path, &list, err);
	if (rc)
		return rc;
	if (writable) {
		remove_orphans(store, &list);
		set_aside_damaged(store);
	}
	add_parts(store);
	rc = store_load_tombstones(store, err);
	if (!rc)
		rc = load_state(store, err);
	if (!rc)
		rc = replay_log(store, &list, err);
	free(list.entries);
	return rc;
}

int store_recover(struct store_disk *store, bool fresh, struct err *err)
{
	int rc;

	lock_take(&store->seal_lock);
	rc = recover(store, fresh, err);
	lock_give(&store->seal_lock);
	return rc;
}
