/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/select.h"

#include "base/hash.h"
#include "server/query/mean.h"
#include "server/query/types.h"

struct select_row_group { /* the group of a (template, label set) pair */
	const struct select_view *view;
	uint32_t template_id;
	uint32_t label_set;
	uint32_t group;
};

/* What the labels of one series leave open, and which of these names its rows carry. */
struct select_open {
	uint64_t matchers;    /* not among its labels */
	uint64_t unsatisfied; /* of these, those that "" does not satisfy */
	uint64_t row_matchers;
	uint32_t group_names; /* not among its labels */
	uint32_t row_group_names;
	bool reported; /* it has a report in time */
};

static uint64_t distance_ns(const struct query_params *params, int64_t start_ns)
{
	return start_ns > params->moment_ns ? (uint64_t)start_ns - (uint64_t)params->moment_ns
					    : (uint64_t)params->moment_ns - (uint64_t)start_ns;
}

static bool report_in_time(const struct query_params *params, int64_t start_ns)
{
	if (params->at_moment)
		return distance_ns(params, start_ns) <= (uint64_t)params->moment_window_ns;
	return params->from_ns <= start_ns && start_ns < params->to_ns;
}

/* The column of each group, or SELECT_NONE. */
static uint32_t *group_columns(struct selection *selection, const struct tables_view *view)
{
	const struct selector *selector = selection->params->selector;
	uint32_t *columns = arena_new_array(&selection->work->arena, uint32_t, view->groups_count);

	for (uint32_t i = 0; columns && i < view->groups_count; i++)
		columns[i] = selector && selector->has_type
				     ? types_column(view, i, &selection->stored)
				     : 0;
	return columns;
}

static uint32_t open_group_names(const struct query_params *params, const struct tables_view *view,
				 uint32_t label_set)
{
	uint32_t names = 0;

	for (size_t i = 0; i < params->group_by_count; i++)
		if (!tables_label_value(view, label_set, params->group_by[i]).len)
			names |= 1u << i;
	return names;
}

/* Selects series by their own labels; what they leave open goes to `open`. */
static int select_by_labels(struct selection *selection, struct select_view *into, struct err *err)
{
	struct select_open *open = into->open;
	const struct tables_view *view = into->view;
	uint32_t *columns = group_columns(selection, view);
	uint64_t all = into->match.matchers_count == 64 ? UINT64_MAX
							: (1ull << into->match.matchers_count) - 1;

	if (!columns)
		return work_over_budget(selection->work, err);
	for (uint32_t i = 0; i < view->series_count; i++) {
		const struct series *series = &view->series[i];
		struct match_result result;
		int rc = work_tick(selection->work, 16, err);

		if (rc)
			return rc;
		into->series[i] = (struct select_series){ .id = SELECT_NONE,
							  .template_id = SELECT_NONE,
							  .column = columns[series->group] };
		if (into->series[i].column == TYPES_NO_COLUMN)
			continue;
		result = match_label_set(&into->match, series->label_set);
		if (result.present & ~result.passes)
			continue;
		open[i].matchers = all & ~result.present;
		open[i].unsatisfied = open[i].matchers & ~into->match.passes_empty;
		open[i].group_names = open_group_names(selection->params, view, series->label_set);
		into->series[i].id = 0;
	}
	return 0;
}

static int select_by_time(struct selection *selection, struct select_view *into, struct err *err)
{
	const struct tables_view *view = into->view;

	into->reports = arena_new_array(&selection->work->arena, uint32_t, view->reports_count);
	if (!into->reports)
		return work_over_budget(selection->work, err);
	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];
		int rc = work_tick(selection->work, 1, err);

		if (rc)
			return rc;
		if (into->series[report->series].id == SELECT_NONE ||
		    !report_in_time(selection->params, report->start_ns))
			continue;
		into->reports[into->reports_count++] = i;
		into->open[report->series].reported = true;
	}
	return 0;
}

/* What one label set of rows has to say; the group-by names in a bit mask. */
static void note_label_set(struct selection *selection, struct select_view *into,
			   uint32_t label_set)
{
	const struct query_params *params = selection->params;
	const struct label_set *set = &into->view->label_sets[label_set];
	struct select_row_labels *labels = &into->row_labels[label_set];

	labels->known = true;
	labels->result = match_label_set(&into->match, label_set);
	for (uint32_t at = 0; at < set->label_count; at++) {
		const struct label *label = &into->view->labels[set->label_first + at];
		struct slice name = tables_text(into->view, label->name);

		for (size_t i = 0; i < params->group_by_count; i++)
			if (slice_equal(name, params->group_by[i]))
				labels->group_names |= 1u << i;
	}
}

static bool is_open(const struct select_open *open)
{
	return open->matchers || open->group_names;
}

/* Looks through the rows of series with something open: are the names among their sample labels? */
static int scan_rows(struct selection *selection, struct select_view *into, struct err *err)
{
	const struct tables_view *view = into->view;

	into->row_labels = arena_new_array(&selection->work->arena, struct select_row_labels,
					   view->label_sets_count);
	if (!into->row_labels)
		return work_over_budget(selection->work, err);
	into->row_labels[0].known = true; /* the empty set carries nothing */
	for (size_t i = 0; i < into->reports_count; i++) {
		const struct report *report = &view->reports[into->reports[i]];
		const struct row *rows = &view->rows[report->row_first];
		struct select_open *open = &into->open[report->series];
		int rc = work_tick(selection->work, report->row_count / 8 + 1, err);

		if (rc)
			return rc;
		for (uint32_t at = 0; is_open(open) && at < report->row_count; at++) {
			const struct select_row_labels *labels =
				&into->row_labels[rows[at].label_set];

			if (!labels->known)
				note_label_set(selection, into, rows[at].label_set);
			open->row_matchers |= labels->result.present;
			open->row_group_names |= labels->group_names;
		}
	}
	return 0;
}

static int choose_group(struct selection *selection, const struct select_view *into,
			const struct series *series, uint32_t from_rows,
			struct select_series *chosen, struct err *err)
{
	const struct query_params *params = selection->params;
	struct groups_tuple tuple = { .from_rows = from_rows };
	uint32_t id;

	for (size_t i = 0; i < params->group_by_count; i++)
		tuple.values[i] =
			tables_label_value(into->view, series->label_set, params->group_by[i]);
	id = groups_intern(tuple.from_rows ? &selection->templates : &selection->groups, &tuple);
	if (id == IDMAP_NONE)
		return work_over_budget(selection->work, err);
	chosen->group = tuple.from_rows ? SELECT_NONE : id;
	chosen->template_id = tuple.from_rows ? id : SELECT_NONE;
	return 0;
}

static struct slice series_key(const struct tables_view *view, const struct series *series,
			       struct strbuf *key)
{
	const struct label_set *set = &view->label_sets[series->label_set];
	const struct group *group = &view->groups[series->group];
	const uint32_t texts[] = { group->name, group->period_type, group->period_unit };

	strbuf_clear(key);
	strbuf_add_u64(key, (uint64_t)group->period);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		strbuf_add_varint(key, view->strings[texts[i]].len);
		strbuf_add_slice(key, tables_text(view, texts[i]));
	}
	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];

		strbuf_add_varint(key, view->strings[label->name].len);
		strbuf_add_slice(key, tables_text(view, label->name));
		strbuf_add_varint(key, view->strings[label->value].len);
		strbuf_add_slice(key, tables_text(view, label->value));
	}
	return strbuf_slice(key);
}

struct series_query {
	const struct tables_view *view;
	const struct series *series;
	struct strbuf *key, *other;
};

static bool series_same(const void *context, uint32_t id, const void *wanted)
{
	const struct selection *selection = context;
	const struct series_query *query = wanted;
	const struct select_totals *have = &selection->series[id];

	return slice_equal(strbuf_slice(query->key),
			   series_key(have->view, &have->view->series[have->series], query->other));
}

static uint32_t add_series(struct selection *selection, const struct tables_view *view,
			   uint32_t series)
{
	if (!WORK_GROW(&selection->work->arena, selection->series, selection->series_count,
		       selection->series_capacity))
		return SELECT_NONE;
	selection->series[selection->series_count] = (struct select_totals){
		.view = view,
		.series = series,
		.period = view->groups[view->series[series].group].period,
		.weight = 1,
	};
	return (uint32_t)selection->series_count++;
}

/* The id across views. With one view nothing can be the same twice. */
static uint32_t series_id(struct selection *selection, const struct tables_view *view,
			  uint32_t series, struct strbuf *key, struct strbuf *other)
{
	struct series_query query = { view, &view->series[series], key, other };
	struct slice text;
	uint64_t hash;
	uint32_t id;

	if (selection->views_count == 1)
		return add_series(selection, view, series);
	text = series_key(view, query.series, key);
	hash = hash_bytes(text.data, text.len);
	id = idmap_find(&selection->series_map, hash, series_same, selection, &query);
	if (id != IDMAP_NONE)
		return id;
	id = add_series(selection, view, series);
	if (id != SELECT_NONE)
		idmap_add(&selection->series_map, hash, id);
	return id;
}

/* Gives the series of a view ids, and gathers what the rows of each carry in all views. */
static int identify_series(struct selection *selection, struct select_view *into, struct err *err)
{
	struct strbuf key = { 0 }, other = { 0 };
	int rc = 0;

	for (uint32_t i = 0; !rc && i < into->view->series_count; i++) {
		struct select_series *series = &into->series[i];
		const struct select_open *open = &into->open[i];

		if (!open->reported) {
			series->id = SELECT_NONE;
			continue;
		}
		series->id = series_id(selection, into->view, i, &key, &other);
		if (series->id == SELECT_NONE) {
			rc = work_over_budget(selection->work, err);
			continue;
		}
		selection->series[series->id].row_matchers |= open->row_matchers;
		selection->series[series->id].row_group_names |= open->row_group_names;
		rc = work_tick(selection->work, 16, err);
	}
	strbuf_free(&key);
	strbuf_free(&other);
	return rc;
}

/* Closes what is open, now that it is known what rows carry. */
static int close_series(struct selection *selection, struct select_view *into, struct err *err)
{
	for (uint32_t i = 0; i < into->view->series_count; i++) {
		struct select_series *series = &into->series[i];
		const struct select_open *open = &into->open[i];
		const struct select_totals *totals;
		int rc;

		if (series->id == SELECT_NONE)
			continue;
		totals = &selection->series[series->id];
		series->row_matchers = open->matchers & totals->row_matchers;
		if (open->unsatisfied & ~totals->row_matchers) {
			series->id = SELECT_NONE;
			continue;
		}
		rc = choose_group(selection, into, &into->view->series[i],
				  open->group_names & totals->row_group_names, series, err);
		if (!rc)
			rc = work_tick(selection->work, 16, err);
		if (rc)
			return rc;
	}
	return 0;
}

static bool anything_open(const struct select_view *into)
{
	for (uint32_t i = 0; i < into->view->series_count; i++)
		if (into->open[i].reported && is_open(&into->open[i]))
			return true;
	return false;
}

static int select_in_view(struct selection *selection, struct select_view *into, struct err *err)
{
	struct arena *arena = &selection->work->arena;
	int rc;

	into->open = arena_new_array(arena, struct select_open, into->view->series_count);
	into->series = arena_new_array(arena, struct select_series, into->view->series_count);
	if (!into->open || !into->series ||
	    !match_init(&into->match, selection->params->selector, into->view, arena))
		return work_over_budget(selection->work, err);
	rc = select_by_labels(selection, into, err);
	if (!rc)
		rc = select_by_time(selection, into, err);
	if (!rc && anything_open(into))
		rc = scan_rows(selection, into, err);
	return rc ? rc : identify_series(selection, into, err);
}

/* Keeps the reports of selected series; with a moment, only the nearest of each. */
static void keep_reports(struct selection *selection, struct select_view *into)
{
	const struct query_params *params = selection->params;
	size_t kept = 0;

	for (size_t i = 0; i < into->reports_count; i++) {
		const struct report *report = &into->view->reports[into->reports[i]];
		uint32_t id = into->series[report->series].id;

		if (id == SELECT_NONE ||
		    (params->at_moment && report->start_ns != selection->series[id].nearest_ns))
			continue;
		into->reports[kept++] = into->reports[i];
	}
	into->reports_count = kept;
}

/* Of two at the same distance the earlier one. */
static bool is_nearer(const struct query_params *params, int64_t start_ns, int64_t than_ns)
{
	uint64_t a = distance_ns(params, start_ns), b = distance_ns(params, than_ns);

	return a < b || (a == b && start_ns < than_ns);
}

static void find_nearest(struct selection *selection, const struct select_view *in)
{
	for (size_t i = 0; i < in->reports_count; i++) {
		const struct report *report = &in->view->reports[in->reports[i]];
		uint32_t id = in->series[report->series].id;
		struct select_totals *series;

		if (id == SELECT_NONE)
			continue;
		series = &selection->series[id];
		if (series->has_nearest &&
		    !is_nearer(selection->params, report->start_ns, series->nearest_ns))
			continue;
		series->has_nearest = true;
		series->nearest_ns = report->start_ns;
	}
}

static void sum_up_reports(struct selection *selection, const struct select_view *in)
{
	for (size_t i = 0; i < in->reports_count; i++) {
		const struct report *report = &in->view->reports[in->reports[i]];
		struct select_totals *series = &selection->series[in->series[report->series].id];
		int64_t end_ns = work_add(report->start_ns, report->duration_ns);

		if (!selection->reports_count || report->start_ns < selection->start_ns)
			selection->start_ns = report->start_ns;
		if (!selection->reports_count || end_ns > selection->end_ns)
			selection->end_ns = end_ns;
		if (series->period > selection->period)
			selection->period = series->period;
		series->reports_count++;
		selection->reports_count++;
	}
}

static void weigh_series(struct selection *selection)
{
	bool gauge = !selection->type.delta;

	for (size_t i = 0; gauge && i < selection->series_count; i++)
		if (selection->series[i].reports_count)
			selection->denominator = mean_denominator(
				selection->denominator, selection->series[i].reports_count);
	for (size_t i = 0; i < selection->series_count; i++) {
		struct select_totals *series = &selection->series[i];

		if (gauge && series->reports_count)
			series->weight = mean_weight(selection->denominator, series->reports_count);
		else if (selection->by_period)
			series->weight = series->period;
		selection->weighted |= series->weight != 1;
	}
	selection->weighted |= selection->denominator != 1;
}

int select_make(struct selection *selection, struct work *work, const struct query_source *source,
		const struct query_params *params, struct err *err)
{
	int rc = 0;

	*selection = (struct selection){ .work = work, .params = params, .denominator = 1 };
	if (params->selector && params->selector->has_type) {
		struct types_answer answer = types_find(source, &params->selector->type);

		selection->stored = answer.stored;
		selection->type = params->selector->type;
		selection->type.delta = answer.stored.delta;
		selection->by_period = answer.by_period;
	}
	groups_init(&selection->groups, work, params->group_by_count);
	groups_init(&selection->templates, work, params->group_by_count);
	work_add_map(work, &selection->series_map);
	work_add_map(work, &selection->row_group_map);
	selection->views = arena_new_array(&work->arena, struct select_view, source->views_count);
	if (!selection->views)
		return work_over_budget(work, err);
	selection->views_count = source->views_count;
	for (size_t i = 0; !rc && i < source->views_count; i++) {
		selection->views[i].view = source->views[i];
		rc = select_in_view(selection, &selection->views[i], err);
	}
	for (size_t i = 0; !rc && i < source->views_count; i++)
		rc = close_series(selection, &selection->views[i], err);
	if (rc)
		return rc;
	for (size_t i = 0; params->at_moment && i < source->views_count; i++)
		find_nearest(selection, &selection->views[i]);
	for (size_t i = 0; i < source->views_count; i++) {
		keep_reports(selection, &selection->views[i]);
		sum_up_reports(selection, &selection->views[i]);
	}
	if (__builtin_sub_overflow(selection->end_ns, selection->start_ns, &selection->duration_ns))
		selection->duration_ns = INT64_MAX;
	weigh_series(selection);
	return 0;
}

static bool row_group_same(const void *context, uint32_t id, const void *key)
{
	const struct selection *selection = context;
	const struct select_row_group *have = &selection->row_group_list[id], *want = key;

	return have->view == want->view && have->template_id == want->template_id &&
	       have->label_set == want->label_set;
}

/* Fills in what the template leaves to the row's labels. */
static uint32_t group_of_labels(struct selection *selection, const struct select_row_group *key)
{
	const struct query_params *params = selection->params;
	const struct tables_view *view = key->view->view;
	const struct label_set *set = &view->label_sets[key->label_set];
	struct groups_tuple tuple = selection->templates.list[key->template_id];
	char digits[MATCH_NUMBER_BYTES];

	for (size_t i = 0; i < params->group_by_count; i++) {
		for (uint32_t at = 0; at < set->label_count; at++) {
			const struct label *label = &view->labels[set->label_first + at];

			if (!(tuple.from_rows >> i & 1) || tuple.values[i].len ||
			    !slice_equal(tables_text(view, label->name), params->group_by[i]))
				continue;
			tuple.values[i] = match_label_text(view, label, digits);
			if (label->numeric)
				tuple.values[i] =
					arena_copy(&selection->work->arena, tuple.values[i]);
		}
	}
	tuple.from_rows = 0;
	return groups_intern(&selection->groups, &tuple);
}

static int row_group(struct selection *selection, const struct select_row_group *wanted,
		     uint32_t *ret, struct err *err)
{
	struct select_row_group key = *wanted;
	uint64_t hash = hash_mix(hash_mix((uintptr_t)key.view, key.template_id), key.label_set);
	uint32_t id = idmap_find(&selection->row_group_map, hash, row_group_same, selection, &key);

	if (id == IDMAP_NONE) {
		key.group = group_of_labels(selection, &key);
		if (key.group == IDMAP_NONE ||
		    !WORK_GROW(&selection->work->arena, selection->row_group_list,
			       selection->row_group_count, selection->row_group_capacity))
			return work_over_budget(selection->work, err);
		id = (uint32_t)selection->row_group_count++;
		selection->row_group_list[id] = key;
		idmap_add(&selection->row_group_map, hash, id);
	}
	*ret = selection->row_group_list[id].group;
	return 0;
}

int select_row(struct selection *selection, struct select_view *view,
	       const struct select_series *series, uint32_t label_set, uint32_t *ret_group,
	       struct err *err)
{
	if (series->row_matchers) {
		struct match_result result = view->row_labels[label_set].result;
		uint64_t satisfied = result.passes | (~result.present & view->match.passes_empty);

		if (series->row_matchers & ~satisfied) {
			*ret_group = SELECT_NONE;
			return 0;
		}
	}
	if (series->group != SELECT_NONE) {
		*ret_group = series->group;
		return 0;
	}
	return row_group(selection,
			 &(struct select_row_group){ .view = view,
						     .template_id = series->template_id,
						     .label_set = label_set },
			 ret_group, err);
}
