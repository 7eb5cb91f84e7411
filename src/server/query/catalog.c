/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog - what there is to ask for: types, label names and values of the reports in a range.
 *
 * Sample labels are looked for only in views that have label sets which no series uses: the
 * lists are asked for while people type, and reading every row for them would not be worth it.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "server/query/query.h"
#include "server/query/select.h"
#include "server/query/types.h"

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

	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];
		struct slice name = tables_text(view, label->name);
		struct slice value = match_label_text(view, label, digits);

		if (!value.len || (listing->label && !slice_equal(*listing->label, name)))
			continue;
		if (!add_text(listing->texts, listing->label ? value : name))
			return work_over_budget(listing->selection->work, listing->err);
	}
	return 0;
}

static bool has_sample_labels(const struct tables_view *view, uint8_t *of_series)
{
	uint32_t used = 1; /* the empty set */

	of_series[0] = true;
	for (uint32_t i = 0; i < view->series_count; i++) {
		used += !of_series[view->series[i].label_set];
		of_series[view->series[i].label_set] = true;
	}
	return used < view->label_sets_count;
}

/* Notes the label sets of the rows that count, and whether any does. */
static int note_rows(struct listing *listing, struct select_view *in, const struct report *report,
		     uint8_t *noted, bool *ret_any)
{
	const struct select_series *series = &in->series[report->series];
	const struct row *rows = &in->view->rows[report->row_first];

	*ret_any = !series->row_matchers;
	for (uint32_t i = 0; i < report->row_count; i++) {
		uint32_t group;
		int rc = select_row(listing->selection, in, series, rows[i].label_set, &group,
				    listing->err);

		if (rc)
			return rc;
		if (group == SELECT_NONE)
			continue;
		*ret_any = true;
		noted[rows[i].label_set] = true;
	}
	return 0;
}

static int list_view(struct listing *listing, struct select_view *in)
{
	const struct tables_view *view = in->view;
	struct work *work = listing->selection->work;
	uint8_t *of_series = arena_new_array(&work->arena, uint8_t, view->label_sets_count);
	uint8_t *noted = arena_new_array(&work->arena, uint8_t, view->label_sets_count);
	bool sample_labels;
	int rc = 0;

	if (!of_series || !noted)
		return work_over_budget(work, listing->err);
	sample_labels = has_sample_labels(view, of_series);
	for (size_t i = 0; !rc && i < in->reports_count; i++) {
		const struct report *report = &in->view->reports[in->reports[i]];
		const struct select_series *series = &in->series[report->series];
		bool any = true;

		if (sample_labels || series->row_matchers) {
			rc = note_rows(listing, in, report, noted, &any);
			if (!rc)
				rc = work_tick(work, report->row_count / 8, listing->err);
		}
		if (any)
			noted[view->series[report->series].label_set] = true;
		if (!rc)
			rc = work_tick(work, 1, listing->err);
	}
	for (uint32_t i = 0; !rc && i < view->label_sets_count; i++)
		if (noted[i])
			rc = list_set(listing, view, i);
	return rc;
}

static int list(const struct query_source *source, const struct selector *selector,
		const struct slice *label, int64_t from_ns, int64_t to_ns, struct arena *arena,
		struct slice **ret, size_t *ret_count, struct err *err)
{
	const struct query_params params = { .selector = selector,
					     .from_ns = from_ns,
					     .to_ns = to_ns };
	struct texts texts = { .arena = arena };
	struct selection selection;
	struct listing listing = { &selection, &texts, label, err };
	struct work work;
	int rc;

	work_begin(&work, &params.limits);
	work_add_map(&work, &texts.map);
	rc = select_make(&selection, &work, source, &params, err);
	for (size_t i = 0; !rc && i < selection.views_count; i++)
		rc = list_view(&listing, &selection.views[i]);
	work_end(&work);
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

/* The newest report in range of each group. */
static bool find_newest(const struct tables_view *view, int64_t from_ns, int64_t to_ns,
			uint8_t *seen, int64_t *newest_ns)
{
	bool any = false;

	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];
		uint32_t group = view->series[report->series].group;

		if (report->start_ns < from_ns || report->start_ns >= to_ns)
			continue;
		if (!seen[group] || report->start_ns > newest_ns[group])
			newest_ns[group] = report->start_ns;
		seen[group] = true;
		any = true;
	}
	return any;
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
	for (size_t v = 0; !rc && v < source->views_count; v++) {
		const struct tables_view *view = source->views[v];
		uint8_t *seen = arena_new_array(&work.arena, uint8_t, view->groups_count);
		int64_t *newest_ns = arena_new_array(&work.arena, int64_t, view->groups_count);

		if (!seen || !newest_ns)
			rc = work_over_budget(&work, err);
		else if (!find_newest(view, from_ns, to_ns, seen, newest_ns))
			continue;
		for (uint32_t group = 0; !rc && group < view->groups_count; group++)
			for (uint32_t i = 0; seen[group] && i < view->groups[group].column_count;
			     i++)
				if (!note_type(&found, arena, view, group, i, newest_ns[group]))
					rc = work_over_budget(&work, err);
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
