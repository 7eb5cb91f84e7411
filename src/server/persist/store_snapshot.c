/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: consistent sets of views, and the numbers of `firn store stat`. */
#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "model/service.h"
#include "server/persist/part/decode/part_ahead.h"
#include "server/persist/store_int.h"
#include "server/persist/store_plan.h"

#define COUNT_QUICK_NS (100 * CLOCK_NS_PER_MS) /* series are counted each time then */
#define SHOWN_STEP_NS (60 * CLOCK_NS_PER_S)
#define COUNT_REST 20		      /* else again after that many times as long */
#define COUNT_BYTES ((size_t)8 << 20) /* of series, in memory at once */

struct pins {
	struct memtable *memtables[STORE_MEMTABLES_MAX];
	struct tables_view views[STORE_MEMTABLES_MAX]; /* of the memtables, taken under the lock */
	uint64_t absent[STORE_MEMTABLES_MAX];	       /* matchers whose values these do not have */
	uint64_t carried;			       /* matchers whose names rows carry, or may */
	size_t memtables_count;
	struct part **parts;
	size_t parts_count;
	struct tombstones *tombstones;	       /* in force at that moment */
	struct tombstone_deletions *deletions; /* that segments point to */
	size_t deletions_count, deletions_capacity;
};

/* A label's value that is a number is no text of the tables. Nor is the name of no service. */
static bool may_be_number(struct slice value)
{
	for (size_t i = value.data[0] == '-'; i < value.len; i++)
		if (value.data[i] < '0' || value.data[i] > '9')
			return false;
	return true;
}

/* Matchers of the selector whose values are nowhere among the texts. With the store's `lock`. */
static uint64_t absent_values(const struct memtable *memtable, const struct selector *selector)
{
	uint64_t absent = 0;

	for (size_t i = 0; selector && i < selector->matchers_count; i++) {
		const struct matcher *matcher = &selector->matchers[i];

		if (matcher->op == MATCH_EQUAL && matcher->value.len &&
		    !may_be_number(matcher->value) && !service_is_unknown(matcher->value) &&
		    tables_find_string(&memtable->tables, matcher->value) == TABLES_FULL)
			absent |= 1ull << i;
	}
	return absent;
}

/* Matchers of names that its rows carry. With the store's `lock`. */
static uint64_t carried_names(const struct memtable *memtable, const struct selector *selector)
{
	uint64_t carried = 0;

	for (size_t i = 0; selector && i < selector->matchers_count; i++)
		if (memtable_rows_may_carry(memtable, selector->matchers[i].name))
			carried |= 1ull << i;
	return carried;
}

/*
 * However many series a memtable holds, a query about others does not look at them: those without a
 * value that the query asks for go. But where rows somewhere carry the name, reports without such a
 * row count, too (means are over all reports of a series), so they have to be seen.
 */
static void drop_others(struct store_disk *store, struct pins *pins)
{
	size_t kept = 0;

	for (size_t i = 0; i < pins->memtables_count; i++) {
		if (pins->absent[i] & ~pins->carried) {
			store_unref_memtable(store, pins->memtables[i]);
			continue;
		}
		pins->memtables[kept] = pins->memtables[i];
		pins->views[kept++] = pins->views[i];
	}
	pins->memtables_count = kept;
}

/* One moment of the store: every report is in exactly one of the memtables and parts. */
static struct pins *pin(struct store_disk *store, int64_t from_ns, int64_t to_ns,
			const struct selector *selector)
{
	struct pins *pins = mem_new(struct pins);

	lock_take(&store->lock);
	for (size_t i = 0; i < store->memtables_count; i++) {
		struct memtable *memtable = store->memtables[i];

		if (memtable->max_start_ns < from_ns || memtable->min_start_ns >= to_ns)
			continue;
		assert(memtable->references && pins->memtables_count < STORE_MEMTABLES_MAX);
		memtable->references++;
		pins->views[pins->memtables_count] = tables_view_of(&memtable->tables);
		pins->absent[pins->memtables_count] = absent_values(memtable, selector);
		pins->carried |= carried_names(memtable, selector);
		pins->memtables[pins->memtables_count++] = memtable;
	}
	pins->tombstones = tombstones_ref(store->tombstones);
	pins->parts_count = part_cache_select(&store->cache, from_ns, to_ns, &pins->parts);
	lock_give(&store->lock);
	return pins;
}

static void unpin(struct store_disk *store, struct pins *pins)
{
	for (size_t i = 0; i < pins->memtables_count; i++)
		store_unref_memtable(store, pins->memtables[i]);
	for (size_t i = 0; i < pins->parts_count; i++)
		part_cache_unpin(&store->cache, pins->parts[i]);
	for (size_t i = 0; i < pins->deletions_count; i++)
		tombstone_deletions_free(&pins->deletions[i]);
	tombstones_unref(pins->tombstones);
	free(pins->deletions);
	free(pins->parts);
	free(pins);
}

/* The segments as they are found. */
struct finding {
	const struct store_query *query;
	struct store_snapshot *snapshot;
	size_t capacity;
	struct pins *pins;
};

static struct segment *add_segment(struct finding *finding)
{
	struct store_snapshot *snapshot = finding->snapshot;

	mem_grow(snapshot->segments, snapshot->count, finding->capacity);
	return &snapshot->segments[snapshot->count++];
}

/* Decided by the part's directory alone. */
static bool may_match(const struct store_query *query, const struct part_partition *partition)
{
	const struct selector *selector = query->selector;

	if (query->one_tenant && !slice_equal(partition->key.tenant, query->tenant))
		return false;

	if (partition->start_max_ns < query->from_ns || partition->start_min_ns >= query->to_ns)
		return false;
	if (!selector)
		return true;
	return (!selector->has_type ||
		profile_type_may_be(&selector->type, partition->group_name)) &&
	       part_key_may_match(&partition->key, partition->service_label,
				  partition->sample_label_names,
				  partition->sample_label_names_count, selector);
}

/* What of the partition is deleted, kept as long as the pins. Count 0: nothing. */
static struct tombstone_deletions find_deletions(struct pins *pins, const struct part *part,
						 const struct tables_view *series)
{
	struct tombstone_deletions deletions;

	tombstones_apply(pins->tombstones, &part->info, series, &deletions);
	assert(!deletions.count || pins->tombstones);
	if (!deletions.count)
		return deletions;
	mem_grow(pins->deletions, pins->deletions_count, pins->deletions_capacity);
	pins->deletions[pins->deletions_count++] = deletions;
	return deletions;
}

static void note_carried(struct pins *pins, const struct selector *selector,
			 const struct part_partition *partition)
{
	for (size_t i = 0; selector && i < selector->matchers_count; i++)
		for (uint32_t at = 0; at < partition->sample_label_names_count; at++)
			if (slice_equal(selector->matchers[i].name,
					partition->sample_label_names[at]))
				pins->carried |= 1ull << i;
}

/* Whether the query is about the partition as a whole: nothing else tells its series apart. */
static bool reads_all(const struct store_query *query, const struct part_partition *partition)
{
	const struct selector *selector = query->selector;

	if (query->reads == STORE_LISTS)
		return false;
	for (size_t i = 0; selector && i < selector->matchers_count; i++)
		if (!slice_equal(selector->matchers[i].name, partition->service_label))
			return false;
	return true;
}

/* The levels of a partition that answer; the first segment is of any, for its labels. */
static int add_partition(struct finding *finding, const struct part *part, uint32_t number,
			 struct err *err)
{
	struct part_reader *reader = part->reader;
	const struct part_partition *partition = part_reader_partition(reader, number);
	const struct store_query *query = finding->query;
	struct store_plan_partition plan = {
		.start_min_ns = partition->start_min_ns,
		.start_max_ns = partition->start_max_ns,
		.levels = partition->levels,
		.raw_only = store_plan_names(query, partition->sample_label_names,
					     partition->sample_label_names_count),
	};
	struct store_plan_piece pieces[STORE_PLAN_PIECES_MAX];
	struct tombstone_deletions deletions;
	struct segment series;
	size_t count;
	int rc = part_reader_segment(reader, number, SEGMENT_RAW, 0, 0, &series, err);

	assert(number < part_reader_partitions(reader));
	if (rc)
		return rc;
	deletions = find_deletions(finding->pins, part, &series.view);
	plan.raw_only |= deletions.count > 0;
	plan.alike = store_plan_alike(query, &series.view);
	count = store_plan(query, &plan, pieces);
	assert(count <= STORE_PLAN_PIECES_MAX);
	for (size_t i = 0; i < count && !rc; i++) {
		struct segment *segment = add_segment(finding);

		rc = part_reader_segment(reader, number, pieces[i].level, pieces[i].from_ns,
					 pieces[i].to_ns, segment, err);
		segment->hole = pieces[i].hole;
		segment->deletions = deletions.items;
		segment->deletions_count = deletions.count;
		finding->snapshot->count -= rc != 0;
		if (!rc && reads_all(query, partition))
			part_ahead_blocks(segment, query->reads == STORE_TOTALS);
	}
	part_reader_drop_segment(&series);
	return rc;
}

/*
 * Hints for parts that come from afar: first what opens each, then the series of what may match.
 * Else each part would wait for the one before.
 */
static void expect_parts(struct store_disk *store, const struct pins *pins,
			 const struct store_query *query)
{
	if (!store->vfs->will_read)
		return;
	for (size_t i = 0; i < pins->parts_count; i++)
		part_cache_expect(&store->cache, pins->parts[i]);
	for (size_t i = 0; i < pins->parts_count; i++) {
		struct part *part = pins->parts[i];
		uint32_t at = 0;

		if (part_cache_load(&store->cache, part, NULL))
			continue; /* add_part_segments counts it */
		while ((at = part_reader_next(part->reader, at, query->selector)) <
		       part_reader_partitions(part->reader)) {
			if (may_match(query, part_reader_partition(part->reader, at)))
				part_ahead_series(part->reader, at);
			at++;
		}
	}
}

/* What cannot be read is counted, once per part. */
static void add_part_segments(struct store_disk *store, struct part *part, struct finding *finding)
{
	const struct selector *selector = finding->query->selector;
	int rc = part_cache_load(&store->cache, part, NULL);
	uint32_t i = rc ? 0 : part_reader_next(part->reader, 0, selector);

	assert(rc || part->reader);
	while (!rc && i < part_reader_partitions(part->reader)) {
		const struct part_partition *partition = part_reader_partition(part->reader, i);

		if (may_match(finding->query, partition)) {
			note_carried(finding->pins, selector, partition);
			rc = add_partition(finding, part, i, NULL);
		}
		i = part_reader_next(part->reader, i + 1, selector);
	}
	finding->snapshot->parts_unreadable += rc != 0;
}

/* What of a memtable, which holds all tenants, is not the query's. Kept like deletions. */
static struct tombstone_deletions find_others(struct pins *pins, const struct tables_view *view,
					      struct slice tenant)
{
	struct tombstone_deletions others = { mem_new(struct segment_deletion), 1 };
	uint8_t *series = mem_new_array(uint8_t, view->series_count);

	for (uint32_t i = 0; i < view->series_count; i++) {
		struct part_key key = part_key_of(view, view->series[i].label_set, NULL);

		series[i] = !slice_equal(key.tenant, tenant);
	}
	others.items[0] = (struct segment_deletion){ series, INT64_MIN, INT64_MAX };
	mem_grow(pins->deletions, pins->deletions_count, pins->deletions_capacity);
	pins->deletions[pins->deletions_count++] = others;
	return others;
}

static uint64_t version_of(const struct store_snapshot *snapshot, const struct pins *pins)
{
	uint64_t version = 1;

	if (pins->memtables_count || pins->deletions_count || snapshot->parts_unreadable)
		return 0;
	for (size_t i = 0; i < snapshot->count; i++) {
		const struct segment *segment = &snapshot->segments[i];

		version = hash_mix(version, segment->id);
		version = hash_mix(version, segment->level);
		version = hash_mix(version, (uint64_t)segment->from_ns);
		version = hash_mix(version, (uint64_t)segment->to_ns);
		version = hash_mix(version, (uint64_t)segment->hole.from_ns);
		version = hash_mix(version, (uint64_t)segment->hole.to_ns);
	}
	return version ? version : 1;
}

/*
 * What is older is not shown, though its part may be there still, because it has younger reports
 * too. Whole minutes, so that answers which were kept are found again.
 */
static int64_t shown_from_ns(const struct store_disk *store, const struct store_query *query)
{
	const struct store_options *options = &store->options;
	int64_t retention_ns = options->retention_ns, now_ns = store_now_ns(store);

	for (size_t i = 0; query->one_tenant && i < options->tenant_limits_count; i++) {
		const struct store_tenant_limit *limit = &options->tenant_limits[i];

		if (limit->retention_ns && slice_is(query->tenant, limit->tenant) &&
		    (!retention_ns || limit->retention_ns < retention_ns))
			retention_ns = limit->retention_ns;
	}
	if (!retention_ns || now_ns < retention_ns)
		return INT64_MIN;
	return (now_ns - retention_ns) / SHOWN_STEP_NS * SHOWN_STEP_NS;
}

static struct store_query shown(const struct store_disk *store, const struct store_query *query)
{
	struct store_query part = *query;
	int64_t from_ns = shown_from_ns(store, query);

	if (part.from_ns < from_ns)
		part.from_ns = from_ns < part.to_ns ? from_ns : part.to_ns;
	return part;
}

int store_disk_snapshot(struct store *base, const struct store_query *asked,
			struct store_snapshot *ret, struct err *err)
{
	struct store_disk *store = store_disk_of(base);
	const struct store_query part = shown(store, asked), *query = &part;
	struct pins *pins = pin(store, query->from_ns, query->to_ns, query->selector);
	struct store_snapshot snapshot = { .pins = pins };
	struct finding finding = { query, &snapshot, 0, pins };

	(void)err;
	expect_parts(store, pins, query);
	for (size_t i = 0; i < pins->parts_count; i++)
		add_part_segments(store, pins->parts[i], &finding);
	drop_others(store, pins);
	for (size_t i = 0; i < pins->memtables_count; i++) {
		struct segment *segment = add_segment(&finding);

		segment_of_tables(segment, &pins->views[i]);
		segment->from_ns = query->from_ns;
		segment->to_ns = query->to_ns;
		if (query->one_tenant) {
			struct tombstone_deletions others =
				find_others(pins, &pins->views[i], query->tenant);

			segment->deletions = others.items;
			segment->deletions_count = others.count;
		}
	}
	if (snapshot.parts_unreadable)
		store_wake_background(store); /* sets damaged ones aside */
	snapshot.version = version_of(&snapshot, pins);
	*ret = snapshot;
	return 0;
}

void store_disk_snapshot_release(struct store *base, struct store_snapshot *snapshot)
{
	struct store_disk *store = store_disk_of(base);
	for (size_t i = 0; i < snapshot->count; i++)
		if (snapshot->segments[i].ops)
			part_reader_drop_segment(&snapshot->segments[i]);
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

/* Reads series and their labels, nothing else; they go again, however many there are. */
static int add_part_series(struct part_reader *reader, struct series_set *series)
{
	size_t bytes = part_reader_bytes(reader);
	int rc = 0;

	for (uint32_t i = 0; i < part_reader_partitions(reader) && !rc; i++) {
		struct segment segment;

		rc = part_reader_segment(reader, i, SEGMENT_RAW, 0, 0, &segment, NULL);
		if (rc)
			break;
		add_series(series, &segment.view);
		part_reader_drop_segment(&segment);
		if (part_reader_bytes(reader) > bytes + COUNT_BYTES)
			part_reader_trim(reader);
	}
	return rc;
}

/* Parts never change and memtables only grow: the same number means the same series. */
static uint64_t counted_of(const struct pins *pins)
{
	uint64_t of = 1;

	for (size_t i = 0; i < pins->parts_count; i++)
		of = hash_mix(of, pins->parts[i]->info.number);
	for (size_t i = 0; i < pins->memtables_count; i++)
		of = hash_mix(hash_mix(of, pins->memtables[i]->generation),
			      pins->views[i].series_count);
	return of;
}

/*
 * True if the series need not be counted: nothing changed; or counting takes long, and was done
 * not long ago (a store of a million series is asked for its status every second, too).
 */
static bool are_counted(struct store_disk *store, uint64_t of, uint64_t *ret)
{
	struct store_counted counted;

	lock_take(&store->lock);
	counted = store->counted;
	lock_give(&store->lock);
	if (!counted.of || (counted.of != of &&
			    (counted.took_ns < COUNT_QUICK_NS ||
			     clock_monotonic_ns() - counted.at_ns > COUNT_REST * counted.took_ns)))
		return false;
	*ret = counted.series;
	return true;
}

/* Began to count at `begin_ns`. */
static void note_counted(struct store_disk *store, uint64_t of, uint64_t series, int64_t begin_ns)
{
	int64_t now_ns = clock_monotonic_ns();

	lock_take(&store->lock);
	store->counted = (struct store_counted){ of, series, now_ns, now_ns - begin_ns };
	lock_give(&store->lock);
}

/* `series` may be NULL: they are not to be counted. */
static void add_part(struct store_disk *store, struct part *part, struct store_stat *stat,
		     struct series_set *series)
{
	const struct part_info *info = &part->info;

	stat->parts++;
	if (part_cache_load(&store->cache, part, NULL) ||
	    (series && add_part_series(part->reader, series))) {
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
	stat->bytes_rollups += info->bytes_rollups;
	stat->bytes_moments += info->bytes_moments;
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
	if (series)
		add_series(series, view);
}

static int add_files(struct store_disk *store, struct store_stat *stat, struct err *err)
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

int store_disk_stat(struct store *base, struct store_stat *ret, struct err *err)
{
	struct store_disk *store = store_disk_of(base);
	struct pins *pins = pin(store, INT64_MIN, INT64_MAX, NULL);
	struct series_set series = { 0 };
	struct store_stat stat = { 0 };
	int64_t begin_ns = clock_monotonic_ns();
	uint64_t of = counted_of(pins);
	bool counted = are_counted(store, of, &stat.series);
	int rc;

	/* One at a time: what was counted may leave the cache. */
	for (size_t i = 0; i < pins->parts_count; i++) {
		add_part(store, pins->parts[i], &stat, counted ? NULL : &series);
		part_cache_unpin(&store->cache, pins->parts[i]);
	}
	pins->parts_count = 0;
	for (size_t i = 0; i < pins->memtables_count; i++)
		add_memtable(&pins->views[i], &stat, counted ? NULL : &series);
	unpin(store, pins);
	if (!counted) {
		stat.series = series.count;
		note_counted(store, stat.parts_quarantined ? 0 : of, stat.series, begin_ns);
	}
	idmap_free(&series.map);
	free(series.items);
	lock_take(&store->lock);
	stat.poisoned = store->poisoned;
	lock_give(&store->lock);
	rc = add_files(store, &stat, err);
	if (!rc)
		*ret = stat;
	return rc;
}
