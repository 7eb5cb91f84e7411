/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: consistent sets of views, and the numbers of `firn store stat`. */
#include "base/idmap.h"
#include "base/mem.h"
#include "server/persist/store_int.h"

struct pins {
	struct memtable *memtables[STORE_MEMTABLES_MAX];
	struct tables_view views[STORE_MEMTABLES_MAX]; /* of the memtables, taken under the lock */
	size_t memtables_count;
	struct part **parts;
	size_t parts_count;
};

/* One moment of the store: every report is in exactly one of the memtables and parts. */
static struct pins *pin(struct store *store, int64_t from_ns, int64_t to_ns)
{
	struct pins *pins = mem_new(struct pins);

	pthread_mutex_lock(&store->lock);
	for (size_t i = 0; i < store->memtables_count; i++) {
		struct memtable *memtable = store->memtables[i];

		if (memtable->max_start_ns < from_ns || memtable->min_start_ns >= to_ns)
			continue;
		memtable->references++;
		pins->views[pins->memtables_count] = tables_view_of(&memtable->tables);
		pins->memtables[pins->memtables_count++] = memtable;
	}
	pins->parts_count = part_cache_select(&store->cache, from_ns, to_ns, &pins->parts);
	pthread_mutex_unlock(&store->lock);
	return pins;
}

static void unpin(struct store *store, struct pins *pins)
{
	pthread_mutex_lock(&store->lock);
	for (size_t i = 0; i < pins->memtables_count; i++)
		store_unref_memtable(pins->memtables[i]);
	pthread_mutex_unlock(&store->lock);
	for (size_t i = 0; i < pins->parts_count; i++)
		part_cache_unpin(&store->cache, pins->parts[i]);
	free(pins->parts);
	free(pins);
}

/* Loads the pinned parts; what cannot be read is counted, unless memory is what is lacking. */
static int load_parts(struct store *store, const struct pins *pins, struct store_snapshot *ret,
		      struct err *err)
{
	uint64_t limit = store->options.cache_bytes * PART_CACHE_PINNED_FACTOR;
	uint64_t bytes = 0;

	for (size_t i = 0; i < pins->parts_count; i++) {
		struct part *part = pins->parts[i];

		if (part_cache_load(&store->cache, part, NULL)) {
			ret->parts_unreadable++;
			continue;
		}
		bytes += part->image.bytes;
		if (bytes > limit)
			return err_set(err, ERR_NO_MEMORY,
				       "the time range needs more than %llu MiB of decoded parts; "
				       "narrow it",
				       (unsigned long long)(limit >> 20));
		segment_of_tables(&ret->segments[ret->count++], &part->image.view);
	}
	return 0;
}

/* Segments answer for the range and no more. */
static void limit_range(struct store_snapshot *snapshot, const struct store_question *question)
{
	for (size_t i = 0; i < snapshot->count; i++) {
		snapshot->segments[i].from_ns = question->from_ns;
		snapshot->segments[i].to_ns = question->to_ns;
	}
}

int store_snapshot(struct store *store, const struct store_question *question,
		   struct store_snapshot *ret, struct err *err)
{
	struct pins *pins = pin(store, question->from_ns, question->to_ns);
	struct store_snapshot snapshot = { .pins = pins };
	int rc;

	snapshot.segments =
		mem_new_array(struct segment, pins->parts_count + pins->memtables_count);
	rc = load_parts(store, pins, &snapshot, err);
	for (size_t i = 0; i < pins->memtables_count; i++)
		segment_of_tables(&snapshot.segments[snapshot.count++], &pins->views[i]);
	limit_range(&snapshot, question);
	if (snapshot.parts_unreadable)
		store_wake_background(store); /* sets damaged ones aside */
	if (rc) {
		store_snapshot_release(store, &snapshot);
		return rc;
	}
	*ret = snapshot;
	return 0;
}

void store_snapshot_release(struct store *store, struct store_snapshot *snapshot)
{
	unpin(store, snapshot->pins);
	free(snapshot->segments);
	*snapshot = (struct store_snapshot){ 0 };
}

/* Stat. */

struct series_set {
	struct idmap map;
	struct identity *items;
	uint32_t count, capacity;
};

static bool series_equal(const void *context, uint32_t id, const void *key)
{
	const struct series_set *set = context;
	const struct identity *series = key;

	return identity_equal(set->items[id], *series);
}

static void add_series(struct series_set *set, const struct tables_view *view)
{
	for (uint32_t i = 0; i < view->series_count; i++) {
		struct identity series = identity_of_series(view, i);

		if (idmap_find(&set->map, series.low, series_equal, set, &series) != IDMAP_NONE)
			continue;
		mem_grow(set->items, set->count, set->capacity);
		set->items[set->count] = series;
		idmap_add(&set->map, series.low, set->count++);
	}
}

static void add_span(struct store_stat *stat, int64_t min_start_ns, int64_t max_start_ns)
{
	if (!stat->reports || min_start_ns < stat->oldest_ns)
		stat->oldest_ns = min_start_ns;
	if (!stat->reports || max_start_ns > stat->newest_ns)
		stat->newest_ns = max_start_ns;
}

static void add_part(struct store *store, struct part *part, struct store_stat *stat,
		     struct series_set *series)
{
	const struct part_info *info = &part->info;

	stat->parts++;
	if (part_cache_load(&store->cache, part, NULL)) {
		stat->parts_quarantined++;
		return;
	}
	add_span(stat, info->min_start_ns, info->max_start_ns);
	stat->rows += info->rows;
	stat->reports += info->reports;
	stat->stacks += info->stacks;
	stat->bytes_samples += info->bytes_samples;
	stat->bytes_stacks += info->bytes_stacks;
	stat->bytes_symbols += info->bytes_symbols;
	add_series(series, &part->image.view);
}

static void add_memtable(const struct tables_view *view, struct store_stat *stat,
			 struct series_set *series)
{
	stat->memtables++;
	for (uint32_t i = 0; i < view->reports_count; i++) {
		add_span(stat, view->reports[i].start_ns, view->reports[i].start_ns);
		stat->reports++;
	}
	stat->rows += view->rows_count;
	stat->stacks += view->nodes_count - 1;
	add_series(series, view);
}

static int add_files(struct store *store, struct store_stat *stat, struct err *err)
{
	struct layout_list list;
	int rc = layout_list(store->vfs, store->path, &list, err);

	for (size_t i = 0; !rc && i < list.count; i++) {
		struct layout_path path = layout_join(store->path, list.entries[i].text);
		struct vfs_file *file;
		uint64_t bytes = 0;

		if (list.entries[i].name.kind == LAYOUT_QUARANTINE_DIR ||
		    list.entries[i].name.kind == LAYOUT_SYSTEM ||
		    vfs_open(store->vfs, path.text, VFS_READ, &file, NULL))
			continue; /* it went meanwhile */
		if (!store->vfs->size(file, &bytes)) {
			stat->bytes_total += bytes;
			stat->bytes_wal += list.entries[i].name.kind == LAYOUT_WAL ? bytes : 0;
		}
		vfs_close(file);
	}
	if (!rc)
		free(list.entries);
	return rc;
}

int store_stat(struct store *store, struct store_stat *ret, struct err *err)
{
	struct pins *pins = pin(store, INT64_MIN, INT64_MAX);
	struct series_set series = { 0 };
	struct store_stat stat = { 0 };
	int rc;

	/* One at a time: what was counted may leave the cache. */
	for (size_t i = 0; i < pins->parts_count; i++) {
		add_part(store, pins->parts[i], &stat, &series);
		part_cache_unpin(&store->cache, pins->parts[i]);
	}
	pins->parts_count = 0;
	for (size_t i = 0; i < pins->memtables_count; i++)
		add_memtable(&pins->views[i], &stat, &series);
	unpin(store, pins);
	stat.series = series.count;
	idmap_free(&series.map);
	free(series.items);
	pthread_mutex_lock(&store->lock);
	stat.poisoned = store->poisoned;
	pthread_mutex_unlock(&store->lock);
	rc = add_files(store, &stat, err);
	if (!rc)
		*ret = stat;
	return rc;
}
