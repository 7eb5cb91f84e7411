/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range - time series: one event per report and line, sorted by (line, bucket, series), folded.
 *
 * A report's value is its total; only series whose labels leave it to their rows whether they
 * count, or on which line, are summed row by row. There a report without a row for some line is
 * no event on that line.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "server/query/mean.h"
#include "server/query/query.h"
#include "server/query/select.h"

#define STEP_NS_MIN CLOCK_NS_PER_MS

struct event {
	uint32_t line;
	uint32_t series;
	int64_t bucket_ns; /* its start */
	int64_t value;
};

/* Sums of one report per group, for series that are read row by row. */
struct group_sums {
	int64_t *values;
	uint8_t *used;
	uint32_t *touched;
	size_t capacity, touched_count;
};

struct ranging {
	struct selection *selection;
	const struct query_range_params *params;
	bool line_per_series;
	struct event *events;
	size_t events_count, events_capacity;
	struct group_sums sums;
	struct err *err;
};

static int64_t bucket_of(int64_t at_ns, int64_t step_ns)
{
	int64_t rest = at_ns % step_ns;

	return at_ns - (rest < 0 ? rest + step_ns : rest);
}

static int add_event(struct ranging *ranging, const struct report *report, uint32_t series,
		     uint32_t group, int64_t value)
{
	struct selection *selection = ranging->selection;

	if (!WORK_GROW(&selection->work->arena, ranging->events, ranging->events_count,
		       ranging->events_capacity))
		return work_over_budget(selection->work, ranging->err);
	if (selection->by_period)
		value = work_multiply(value, selection->series[series].period);
	ranging->events[ranging->events_count++] = (struct event){
		.line = ranging->line_per_series ? series : group,
		.series = series,
		.bucket_ns = bucket_of(report->start_ns, ranging->params->step_ns),
		.value = value,
	};
	return 0;
}

static bool room_for_group(struct ranging *ranging, uint32_t group)
{
	struct arena *arena = &ranging->selection->work->arena;
	struct group_sums *sums = &ranging->sums;

	while (sums->capacity <= group) {
		size_t capacities[3] = { sums->capacity, sums->capacity, sums->capacity };

		sums->values = work_grown(arena, sums->values, sizeof(*sums->values),
					  sums->capacity, &capacities[0]);
		sums->used = work_grown(arena, sums->used, sizeof(*sums->used), sums->capacity,
					&capacities[1]);
		sums->touched = work_grown(arena, sums->touched, sizeof(*sums->touched),
					   sums->capacity, &capacities[2]);
		if (!sums->values || !sums->used || !sums->touched)
			return false;
		sums->capacity = capacities[0];
	}
	return true;
}

static int touch_group(struct ranging *ranging, uint32_t group)
{
	struct group_sums *sums = &ranging->sums;

	if (!room_for_group(ranging, group))
		return work_over_budget(ranging->selection->work, ranging->err);
	if (!sums->used[group]) {
		sums->used[group] = true;
		sums->values[group] = 0;
		sums->touched[sums->touched_count++] = group;
	}
	return 0;
}

static int sum_rows(struct ranging *ranging, struct select_view *in, const struct report *report)
{
	const struct tables_view *view = in->view;
	const struct select_series *series = &in->series[report->series];
	uint32_t columns = tables_series_columns(view, report->series);
	const struct row *rows = &view->rows[report->row_first];
	const int64_t *values = &view->values[report->value_first] + series->column;
	int rc = 0;

	ranging->sums.touched_count = 0;
	if (series->group != SELECT_NONE)
		rc = touch_group(ranging, series->group);
	for (uint32_t i = 0; !rc && i < report->row_count; i++) {
		uint32_t group;

		rc = select_row(ranging->selection, in, series, rows[i].label_set, &group,
				ranging->err);
		if (rc || group == SELECT_NONE)
			continue;
		rc = touch_group(ranging, group);
		if (!rc)
			ranging->sums.values[group] =
				work_add(ranging->sums.values[group], values[(size_t)i * columns]);
	}
	for (size_t i = 0; i < ranging->sums.touched_count; i++) {
		uint32_t group = ranging->sums.touched[i];

		ranging->sums.used[group] = false;
		if (!rc)
			rc = add_event(ranging, report, series->id, group,
				       ranging->sums.values[group]);
	}
	return rc;
}

static int collect_events(struct ranging *ranging)
{
	struct selection *selection = ranging->selection;

	for (size_t v = 0; v < selection->views_count; v++) {
		struct select_view *in = &selection->views[v];

		for (size_t i = 0; i < in->reports_count; i++) {
			const struct report *report = &in->view->reports[in->reports[i]];
			const struct select_series *series = &in->series[report->series];
			bool whole = select_whole(series);
			int rc = work_tick(selection->work, whole ? 1 : report->row_count + 1,
					   ranging->err);

			if (!rc && whole)
				rc = add_event(
					ranging, report, series->id, series->group,
					in->view->totals[report->total_first + series->column]);
			else if (!rc)
				rc = sum_rows(ranging, in, report);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static int event_order(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->bucket_ns != b->bucket_ns)
		return a->bucket_ns < b->bucket_ns ? -1 : 1;
	return (a->series > b->series) - (a->series < b->series);
}

static size_t end_of_series(const struct event *events, size_t first, size_t end)
{
	size_t next = first;

	while (next < end && events[next].series == events[first].series)
		next++;
	return next;
}

/* The sum over series of the mean of each one's reports. */
static int64_t gauge_value(const struct event *events, size_t first, size_t end)
{
	mean_wide numerator = 0;
	int64_t denominator = 1;

	for (size_t at = first, next; at < end; at = next) {
		next = end_of_series(events, at, end);
		denominator = mean_denominator(denominator, (uint32_t)(next - at));
	}
	for (size_t at = first, next; at < end; at = next) {
		next = end_of_series(events, at, end);
		for (size_t i = at; i < next; i++)
			numerator = mean_add(
				numerator, (mean_wide)events[i].value *
						   mean_weight(denominator, (uint32_t)(next - at)));
	}
	return mean_round(numerator, denominator);
}

static double shown_seconds(const struct query_range_params *params, int64_t bucket_ns)
{
	int64_t from_ns = bucket_ns > params->base.from_ns ? bucket_ns : params->base.from_ns;
	int64_t to_ns = work_add(bucket_ns, params->step_ns);

	if (to_ns > params->base.to_ns)
		to_ns = params->base.to_ns;
	return (double)(to_ns - from_ns) / CLOCK_NS_PER_S;
}

static struct query_point point_of(const struct ranging *ranging, size_t first, size_t end)
{
	const struct event *events = ranging->events;
	struct query_point point = { .at_ns = events[first].bucket_ns,
				     .reports = (uint32_t)(end - first) };

	if (!ranging->selection->type.delta) {
		point.value = gauge_value(events, first, end);
		point.per_second = (double)point.value;
		return point;
	}
	for (size_t i = first; i < end; i++)
		point.value = work_add(point.value, events[i].value);
	point.per_second =
		(double)point.value / shown_seconds(ranging->params, events[first].bucket_ns);
	return point;
}

static bool label_line(const struct ranging *ranging, uint32_t line, struct arena *arena,
		       struct query_series *into)
{
	const struct selection *selection = ranging->selection;
	const struct query_params *base = selection->params;
	const struct select_totals *series = &selection->series[line];
	const struct label_set *set = NULL;
	size_t count = base->group_by_count;

	if (ranging->line_per_series) {
		set = &series->view->label_sets[series->view->series[series->series].label_set];
		count = set->label_count;
	}
	into->labels = arena_new_array(arena, struct query_label, count);
	if (!into->labels)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct query_label label;

		if (set) {
			const struct label *from = &series->view->labels[set->label_first + i];

			label.name = tables_text(series->view, from->name);
			label.value = tables_text(series->view, from->value);
		} else {
			label.name = base->group_by[i];
			label.value = selection->groups.list[line].values[i];
		}
		if (label.value.len)
			into->labels[into->labels_count++] =
				(struct query_label){ arena_copy(arena, label.name),
						      arena_copy(arena, label.value) };
	}
	return true;
}

static size_t end_of_line(const struct ranging *ranging, size_t first)
{
	size_t next = first;

	while (next < ranging->events_count &&
	       ranging->events[next].line == ranging->events[first].line)
		next++;
	return next;
}

static size_t end_of_bucket(const struct ranging *ranging, size_t first, size_t end)
{
	size_t next = first;

	while (next < end && ranging->events[next].bucket_ns == ranging->events[first].bucket_ns)
		next++;
	return next;
}

static int fold_line(struct ranging *ranging, size_t first, size_t end,
		     struct query_series_set *set)
{
	struct query_series *line = &set->series[set->series_count++];
	size_t count = 0;

	for (size_t at = first; at < end; at = end_of_bucket(ranging, at, end))
		count++;
	line->points = arena_new_array(&set->arena, struct query_point, count);
	if (!line->points || !label_line(ranging, ranging->events[first].line, &set->arena, line))
		return work_over_budget(ranging->selection->work, ranging->err);
	for (size_t at = first, next; at < end; at = next) {
		next = end_of_bucket(ranging, at, end);
		line->points[line->points_count++] = point_of(ranging, at, next);
	}
	return work_tick(ranging->selection->work, (uint32_t)(end - first), ranging->err);
}

static int line_order(const void *left, const void *right)
{
	const struct query_series *a = left, *b = right;

	for (size_t i = 0; i < a->labels_count && i < b->labels_count; i++) {
		int order = slice_compare(a->labels[i].name, b->labels[i].name);

		if (!order)
			order = slice_compare(a->labels[i].value, b->labels[i].value);
		if (order)
			return order;
	}
	return (a->labels_count > b->labels_count) - (a->labels_count < b->labels_count);
}

static int fold(struct ranging *ranging, struct query_series_set *set)
{
	size_t lines = 0;
	int rc = 0;

	if (ranging->events_count)
		qsort(ranging->events, ranging->events_count, sizeof(*ranging->events),
		      event_order);
	for (size_t at = 0; at < ranging->events_count; at = end_of_line(ranging, at))
		lines++;
	if (lines > QUERY_SERIES_MAX)
		return err_set(ranging->err, ERR_LIMIT,
			       "query: %zu time series are more than %d; narrow the matchers, or "
			       "sum by fewer labels",
			       lines, QUERY_SERIES_MAX);
	set->series = arena_new_array(&set->arena, struct query_series, lines);
	if (!set->series)
		return work_over_budget(ranging->selection->work, ranging->err);
	for (size_t at = 0, next; !rc && at < ranging->events_count; at = next) {
		next = end_of_line(ranging, at);
		rc = fold_line(ranging, at, next, set);
	}
	if (set->series_count)
		qsort(set->series, set->series_count, sizeof(*set->series), line_order);
	return rc ? rc : work_check(ranging->selection->work, ranging->err);
}

static int check_params(const struct query_range_params *params, struct err *err)
{
	uint64_t range_ns = (uint64_t)params->base.to_ns - (uint64_t)params->base.from_ns;

	if (!params->base.selector->has_type)
		return err_set(err, ERR_INVALID, "query: the selector names no profile type");
	if (params->base.group_by_count > QUERY_GROUP_BY_MAX)
		return err_set(err, ERR_LIMIT, "query: sum by at most %d labels",
			       QUERY_GROUP_BY_MAX);
	if (params->step_ns < STEP_NS_MIN)
		return err_set(err, ERR_INVALID, "query: a step is at least 1 ms");
	if (params->base.to_ns > params->base.from_ns &&
	    range_ns / (uint64_t)params->step_ns > QUERY_STEPS_MAX)
		return err_set(err, ERR_LIMIT,
			       "query: the range has more than %d steps; take a larger step",
			       QUERY_STEPS_MAX);
	return 0;
}

int query_series(const struct query_source *source, const struct query_range_params *params,
		 struct query_series_set *ret, struct err *err)
{
	struct query_params base = params->base;
	struct query_series_set set = { .step_ns = params->step_ns };
	struct selection selection;
	struct ranging ranging = { &selection, params, false, NULL, 0, 0, { 0 }, err };
	struct work work;
	int rc = check_params(params, err);

	if (rc)
		return rc;
	base.at_moment = false;
	if (params->sum_all)
		base.group_by_count = 0;
	ranging.line_per_series = !params->sum_all && !base.group_by_count;
	work_begin(&work, &base.limits);
	arena_init(&set.arena, work.limit_bytes);
	rc = select_make(&selection, &work, source, &base, err);
	if (!rc)
		rc = collect_events(&ranging);
	if (!rc)
		rc = fold(&ranging, &set);
	if (!rc) {
		set.type = profile_type_copy(&selection.type, &set.arena);
		set.period = selection.period;
		if (set.arena.over_budget)
			rc = work_over_budget(&work, err);
	}
	work_end(&work);
	if (rc)
		query_series_free(&set);
	else
		*ret = set;
	return rc;
}

void query_series_free(struct query_series_set *set)
{
	arena_free(&set->arena);
	*set = (struct query_series_set){ 0 };
}
