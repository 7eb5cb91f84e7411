/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog - what there is to ask for: types, label names and values of the reports in a range.
 *
 * Sample labels are looked for only in views that have label sets which no series uses: the
 * lists are asked for while people type, and reading every row for them would not be worth it.
 * service_name is listed by the rule (service.h), of series alone.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "model/service.h"
#include "server/query/query.h"
#include "server/query/select/select.h"
#include "server/query/select/types.h"

/* Distinct texts, copied into the caller's arena. */
struct texts {
	struct arena *arena;
	struct slice *list;
	size_t count, capacity;
	struct idmap map;
};

struct listing {
	struct selection *selection;
	struct texts *texts;
	const struct slice *label; /* whose values are listed; NULL: the names are */
	struct err *err;
};

static bool text_equal(const void *context, uint32_t id, const void *key)
{
	return slice_equal(((const struct texts *)context)->list[id], *(const struct slice *)key);
}

static bool add_text(struct texts *texts, struct slice text)
{
	uint64_t hash = hash_bytes(text.data, text.len);

	assert(texts->count <= texts->capacity);
	if (idmap_find(&texts->map, hash, text_equal, texts, &text) != IDMAP_NONE)
		return true;
	if (!WORK_GROW(texts->arena, texts->list, texts->count, texts->capacity))
		return false;
	idmap_add(&texts->map, hash, (uint32_t)texts->count);
	texts->list[texts->count++] = arena_copy(texts->arena, text);
	return !texts->arena->over_budget;
}

static int text_order(const void *left, const void *right)
{
	return slice_compare(*(const struct slice *)left, *(const struct slice *)right);
}

static int list_set(struct listing *listing, const struct tables_view *view, uint32_t label_set)
{
	const struct label_set *set = &view->label_sets[label_set];
	char digits[MATCH_NUMBER_BYTES];

	assert(label_set < view->label_sets_count);
	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];
		struct slice name = tables_text(view, label->name);
		struct slice value = match_label_text(view, label, digits);

		if (!value.len || (listing->label && !slice_equal(*listing->label, name)) ||
		    slice_is(name, SERVICE_LABEL) || slice_starts_with(name, SLICE_LITERAL("__")))
			continue; /* reserved ones are the server's own */
		if (!add_text(listing->texts, listing->label ? value : name))
			return work_over_budget(listing->selection->work, listing->err);
	}
	return 0;
}

static int list_service(struct listing *listing, const struct tables_view *view, uint32_t label_set)
{
	struct slice text = SLICE_LITERAL(SERVICE_LABEL);

	if (listing->label && !slice_is(*listing->label, SERVICE_LABEL))
		return 0;
	if (listing->label)
		text = service_of(view, label_set).name;
	return add_text(listing->texts, text)
		       ? 0
		       : work_over_budget(listing->selection->work, listing->err);
}

/* In tables, whether there are label sets that no series uses. */
static bool has_sample_labels(const struct select_segment *in, uint8_t *of_series)
{
	const struct tables_view *view = in->view;
	uint32_t used = 1; /* the empty set */

	if (in->segment->ops)
		return in->segment->has_sample_labels;
	of_series[0] = true;
	for (uint32_t i = 0; i < view->series_count; i++) {
		used += !of_series[view->series[i].label_set];
		of_series[view->series[i].label_set] = true;
	}
	return used < view->label_sets_count;
}

/* Notes the label sets of the rows that count, and whether any does. */
static int note_rows(struct listing *listing, struct select_segment *in,
		     const struct segment_block *block, const struct segment_report *report,
		     uint8_t *noted, bool *ret_any)
{
	const struct select_series *series = &in->series[report->series];

	assert(report->series < in->view->series_count);
	*ret_any = !series->row_matchers;
	for (uint32_t i = 0; i < report->row_count; i++) {
		uint32_t set = 0, group;
		int rc;

		if (block->label_sets)
			set = block->label_sets[(report->row_first + i) * block->row_stride];
		rc = select_row(listing->selection, in, series, set, &group, listing->err);
		if (rc)
			return rc;
		if (group == SELECT_NONE)
			continue;
		*ret_any = true;
		noted[set] = true;
	}
	return 0;
}

static int note_block(struct listing *listing, struct select_segment *in, uint32_t number,
		      uint8_t *noted)
{
	struct work *work = listing->selection->work;
	struct segment_block block;
	int rc = work_read(work, in->segment, number, SEGMENT_ROWS, &block, listing->err);

	assert(number < in->segment->blocks_count);
	for (uint32_t i = 0; !rc && i < block.reports_count; i++) {
		const struct segment_report *report = &block.reports[i];
		bool any;

		if (!select_takes(listing->selection, in, report))
			continue;
		rc = note_rows(listing, in, &block, report, noted, &any);
		if (any)
			noted[in->view->series[report->series].label_set] = true;
		if (!rc)
			rc = work_tick(work, report->row_count / 8 + 1, listing->err);
	}
	return rc;
}

static int list_segment(struct listing *listing, struct select_segment *in)
{
	const struct tables_view *view = in->view;
	struct work *work = listing->selection->work;
	uint8_t *of_series = arena_new_array(&work->arena, uint8_t, view->label_sets_count);
	uint8_t *noted = arena_new_array(&work->arena, uint8_t, view->label_sets_count);
	int rc = 0;

	if (!of_series || !noted)
		return work_over_budget(work, listing->err);
	if (in->by_rows || has_sample_labels(in, of_series)) {
		for (size_t i = 0; !rc && i < in->blocks_count; i++)
			rc = note_block(listing, in, in->blocks[i], noted);
	} else {
		for (uint32_t i = 0; i < view->series_count; i++)
			if (in->series[i].id != SELECT_NONE)
				noted[view->series[i].label_set] = true;
	}
	for (uint32_t i = 0; !rc && i < view->label_sets_count; i++)
		if (noted[i])
			rc = list_set(listing, view, i);
	for (uint32_t i = 0; !rc && i < view->series_count; i++)
		if (in->series[i].id != SELECT_NONE && noted[view->series[i].label_set])
			rc = list_service(listing, view, view->series[i].label_set);
	return rc;
}

static int try_list(const struct query_source *source, const struct query_params *params,
		    const struct slice *label, struct texts *texts, struct err *err)
{
	struct selection selection;
	struct listing listing = { &selection, texts, label, err };
	struct work work;
	int rc;

	work_begin(&work, &params->limits);
	work_add_map(&work, &texts->map);
	rc = select_make(&selection, &work, source, params,
			 (struct select_use){ .series_only = true }, err);
	for (size_t i = 0; !rc && i < selection.segments_count; i++)
		rc = list_segment(&listing, &selection.segments[i]);
	work_end(&work);
	return rc;
}

static int list(const struct query_source *source, const struct selector *selector,
		const struct slice *label, int64_t from_ns, int64_t to_ns, struct arena *arena,
		struct slice **ret, size_t *ret_count, struct err *err)
{
	const struct query_params params = { .selector = selector,
					     .from_ns = from_ns,
					     .to_ns = to_ns };
	struct texts texts;
	size_t unreadable = 0;
	int rc;

	do {
		texts = (struct texts){ .arena = arena };
		rc = try_list(source, &params, label, &texts, err);
	} while (work_again(source, rc, &unreadable));
	if (rc)
		return rc;
	if (texts.count)
		qsort(texts.list, texts.count, sizeof(*texts.list), text_order);
	*ret = texts.list;
	*ret_count = texts.count;
	return 0;
}

int query_labels(const struct query_source *source, const struct selector *selector,
		 int64_t from_ns, int64_t to_ns, struct arena *arena, struct slice **ret,
		 size_t *ret_count, struct err *err)
{
	return list(source, selector, NULL, from_ns, to_ns, arena, ret, ret_count, err);
}

int query_label_values(const struct query_source *source, const struct selector *selector,
		       struct slice label, int64_t from_ns, int64_t to_ns, struct arena *arena,
		       struct slice **ret, size_t *ret_count, struct err *err)
{
	return list(source, selector, &label, from_ns, to_ns, arena, ret, ret_count, err);
}

struct types_found {
	struct query_type *list;
	size_t count, capacity;
};

static bool note_type(struct types_found *found, struct arena *arena,
		      const struct tables_view *view, uint32_t group, uint32_t column,
		      int64_t newest_ns)
{
	struct profile_type type = profile_type_of(view, group, column);
	int64_t period = view->groups[group].period;
	struct query_type *entry = NULL;

	assert(group < view->groups_count);
	assert(column < view->groups[group].column_count);
	assert(found->count <= found->capacity);
	for (size_t i = 0; !entry && i < found->count; i++)
		if (profile_type_equal(&found->list[i].type, &type))
			entry = &found->list[i];
	if (!entry) {
		if (!WORK_GROW(arena, found->list, found->count, found->capacity))
			return false;
		entry = &found->list[found->count++];
		*entry = (struct query_type){ .type = profile_type_copy(&type, arena),
					      .newest_ns = newest_ns };
	}
	if (newest_ns > entry->newest_ns)
		entry->newest_ns = newest_ns;
	if (period > entry->period)
		entry->period = period;
	return true;
}

struct newest { /* report in range, by group */
	uint8_t *seen;
	int64_t *start_ns;
};

static void note_newest(const struct segment *segment, const struct segment_block *block,
			int64_t from_ns, int64_t to_ns, struct newest *newest)
{
	for (uint32_t i = 0; i < block->reports_count; i++) {
		const struct segment_report *report = &block->reports[i];
		uint32_t group = segment->view.series[report->series].group;

		if (report->start_ns < from_ns || report->start_ns >= to_ns ||
		    segment_in_hole(segment, report->start_ns))
			continue;
		if (!newest->seen[group] || report->start_ns > newest->start_ns[group])
			newest->start_ns[group] = report->start_ns;
		newest->seen[group] = true;
	}
}

/* With one group, blocks that lie within the range need not be read: their zone says it all. */
static bool note_zone(const struct segment *segment, const struct segment_zone *zone,
		      int64_t from_ns, int64_t to_ns, struct newest *newest)
{
	assert(newest->seen && newest->start_ns);
	if (!segment->zones || segment->deletions_count || segment->view.groups_count != 1 ||
	    zone->start_min_ns < from_ns || zone->start_max_ns >= to_ns ||
	    segment_hole_meets(segment, zone->start_min_ns, zone->start_max_ns))
		return false;
	if (!newest->seen[0] || zone->start_max_ns > newest->start_ns[0])
		newest->start_ns[0] = zone->start_max_ns;
	newest->seen[0] = true;
	return true;
}

static int find_newest(struct work *work, struct segment *segment, int64_t from_ns, int64_t to_ns,
		       struct newest *newest, struct err *err)
{
	if (segment->from_ns > from_ns)
		from_ns = segment->from_ns;
	if (segment->to_ns < to_ns)
		to_ns = segment->to_ns;
	for (uint32_t i = 0; i < segment->blocks_count; i++) {
		struct segment_zone zone = segment_zone(segment, i);
		struct segment_block block;
		int rc;

		if (zone.start_max_ns < from_ns || zone.start_min_ns >= to_ns ||
		    segment_hole_has(segment, zone.start_min_ns, zone.start_max_ns) ||
		    note_zone(segment, &zone, from_ns, to_ns, newest))
			continue;
		rc = work_read(work, segment, i, SEGMENT_HEADERS, &block, err);
		if (rc)
			return rc;
		note_newest(segment, &block, from_ns, to_ns, newest);
	}
	return 0;
}

static int list_types(struct work *work, struct segment *segment, int64_t from_ns, int64_t to_ns,
		      struct types_found *found, struct arena *arena, struct err *err)
{
	const struct tables_view *view = &segment->view;
	struct newest newest = { arena_new_array(&work->arena, uint8_t, view->groups_count),
				 arena_new_array(&work->arena, int64_t, view->groups_count) };
	int rc;

	if (!newest.seen || !newest.start_ns)
		return work_over_budget(work, err);
	rc = find_newest(work, segment, from_ns, to_ns, &newest, err);
	for (uint32_t group = 0; !rc && group < view->groups_count; group++)
		for (uint32_t i = 0; newest.seen[group] && i < view->groups[group].column_count;
		     i++)
			if (!note_type(found, arena, view, group, i, newest.start_ns[group]))
				return work_over_budget(work, err);
	return rc;
}

static int type_order(const void *left, const void *right)
{
	const struct profile_type *a = &((const struct query_type *)left)->type;
	const struct profile_type *b = &((const struct query_type *)right)->type;
	int order = slice_compare(a->name, b->name);

	order = order ? order : slice_compare(a->sample_type, b->sample_type);
	order = order ? order : slice_compare(a->sample_unit, b->sample_unit);
	order = order ? order : slice_compare(a->period_type, b->period_type);
	order = order ? order : slice_compare(a->period_unit, b->period_unit);
	return order ? order : a->delta - b->delta;
}

int query_types(const struct query_source *source, int64_t from_ns, int64_t to_ns,
		struct arena *arena, struct query_type **ret, size_t *ret_count, struct err *err)
{
	const struct query_limits limits = { 0 };
	struct types_found found = { 0 };
	struct work work;
	int rc = 0;

	work_begin(&work, &limits);
	for (size_t i = 0; !rc && i < source->segments_count; i++) {
		struct segment *segment = &source->segments[i];

		if (!atomic_load(&segment->unreadable))
			rc = work_spare(segment, list_types(&work, segment, from_ns, to_ns, &found,
							    arena, err));
	}
	work_end(&work);
	if (rc)
		return rc;
	if (found.count)
		qsort(found.list, found.count, sizeof(*found.list), type_order);
	*ret = found.list;
	*ret_count = found.count;
	return 0;
}
