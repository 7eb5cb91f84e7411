/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/accumulate.h"

#define ROWS_PER_TICK 8192u
#define ROWS_AHEAD 16u

/* One of the two kinds of counters, per group; NULL until the group occurs. */
struct counters {
	struct arena arena;
	int64_t **plain;
	mean_wide **weighted;
	size_t groups_capacity;
	uint32_t nodes_count;
};

struct adding {
	struct selection *selection;
	struct select_view *view;
	struct counters *counters;
	uint64_t rows;
	struct err *err;
};

static int over_budget(const struct adding *adding)
{
	const struct selection *selection = adding->selection;

	return err_set(adding->err, ERR_NO_MEMORY,
		       "query: counters for %zu groups of %u stacks need more than %zu MiB of "
		       "memory; group by fewer labels, or narrow the matchers",
		       selection->groups.count, adding->counters->nodes_count,
		       selection->work->limit_bytes >> 20);
}

/* Rows may bring new groups. */
static bool room_for_group(struct adding *adding, uint32_t group)
{
	struct counters *counters = adding->counters;
	size_t capacity = counters->groups_capacity;

	while (capacity <= group) {
		size_t plain_capacity = capacity, weighted_capacity = capacity;

		counters->plain = work_grown(&counters->arena, counters->plain,
					     sizeof(*counters->plain), capacity, &plain_capacity);
		counters->weighted =
			work_grown(&counters->arena, counters->weighted,
				   sizeof(*counters->weighted), capacity, &weighted_capacity);
		if (!counters->plain || !counters->weighted)
			return false;
		capacity = plain_capacity;
	}
	counters->groups_capacity = capacity;
	return true;
}

static int counter_of(struct adding *adding, uint32_t group)
{
	struct counters *counters = adding->counters;
	bool weighted = adding->selection->weighted;

	if (!room_for_group(adding, group))
		return over_budget(adding);
	if (weighted && !counters->weighted[group])
		counters->weighted[group] =
			arena_new_array(&counters->arena, mean_wide, counters->nodes_count);
	if (!weighted && !counters->plain[group])
		counters->plain[group] =
			arena_new_array(&counters->arena, int64_t, counters->nodes_count);
	return counters->arena.over_budget ? over_budget(adding) : 0;
}

/*
 * The loop that queries spend their time in; `values` is the column of the first row. Counters are
 * hit at random and may be far away, so they are called for a few rows ahead.
 */
static void add_plain(int64_t *restrict counters, const struct row *restrict rows,
		      const int64_t *restrict values, uint32_t columns, uint32_t count)
{
	uint32_t ahead = count > ROWS_AHEAD ? count - ROWS_AHEAD : 0;

	for (uint32_t i = 0; i < count; i++) {
		int64_t *counter = &counters[rows[i].stack];

		if (i < ahead)
			__builtin_prefetch(&counters[rows[i + ROWS_AHEAD].stack], 1);
		if (__builtin_add_overflow(*counter, values[(size_t)i * columns], counter))
			*counter = *counter < 0 ? INT64_MAX : INT64_MIN;
	}
}

static void add_weighted(mean_wide *restrict counters, const struct row *restrict rows,
			 const int64_t *restrict values, uint32_t columns, uint32_t count,
			 int64_t weight)
{
	for (uint32_t i = 0; i < count; i++) {
		mean_wide *counter = &counters[rows[i].stack];

		*counter = mean_add(*counter, (mean_wide)values[(size_t)i * columns] * weight);
	}
}

static void add_rows(struct adding *adding, uint32_t group, int64_t weight, const struct row *rows,
		     const int64_t *values, uint32_t columns, uint32_t count)
{
	if (adding->selection->weighted)
		add_weighted(adding->counters->weighted[group], rows, values, columns, count,
			     weight);
	else
		add_plain(adding->counters->plain[group], rows, values, columns, count);
	adding->rows += count;
}

/* Rows of a series whose labels leave it to each row whether it counts, or where. */
static int add_one_by_one(struct adding *adding, const struct select_series *series, int64_t weight,
			  const struct row *rows, const int64_t *values, uint32_t columns,
			  uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t group;
		int rc = select_row(adding->selection, adding->view, series, rows[i].label_set,
				    &group, adding->err);

		if (!rc && group != SELECT_NONE)
			rc = counter_of(adding, group);
		if (rc)
			return rc;
		if (group != SELECT_NONE)
			add_rows(adding, group, weight, &rows[i], &values[(size_t)i * columns],
				 columns, 1);
	}
	return 0;
}

static int add_report(struct adding *adding, const struct report *report)
{
	const struct tables_view *view = adding->view->view;
	const struct select_series *series = &adding->view->series[report->series];
	uint32_t columns = tables_series_columns(view, report->series);
	int64_t weight = adding->selection->series[series->id].weight;
	bool whole = select_whole(series);
	int rc = whole ? counter_of(adding, series->group) : 0;

	for (uint32_t first = 0; !rc && first < report->row_count; first += ROWS_PER_TICK) {
		const struct row *rows = &view->rows[report->row_first + first];
		const int64_t *values =
			&view->values[report->value_first + (uint64_t)first * columns] +
			series->column;
		uint32_t count = report->row_count - first < ROWS_PER_TICK
					 ? report->row_count - first
					 : ROWS_PER_TICK;

		rc = work_tick(adding->selection->work, count, adding->err);
		if (!rc && whole)
			add_rows(adding, series->group, weight, rows, values, columns, count);
		else if (!rc)
			rc = add_one_by_one(adding, series, weight, rows, values, columns, count);
	}
	return rc;
}

static mean_wide counted(const struct counters *counters, uint32_t group, uint32_t node)
{
	if (counters->weighted[group])
		return counters->weighted[group][node];
	return counters->plain[group] ? counters->plain[group][node] : 0;
}

/* Calls for each counter that is not zero; with `into` NULL it only counts them. */
static size_t take_sums(const struct counters *counters, struct accumulate_sum *into)
{
	size_t count = 0;

	for (uint32_t group = 0; group < counters->groups_capacity; group++) {
		if (!counters->plain[group] && !counters->weighted[group])
			continue;
		for (uint32_t node = 0; node < counters->nodes_count; node++) {
			mean_wide value = counted(counters, group, node);

			if (!value)
				continue;
			if (into)
				into[count] = (struct accumulate_sum){ value, node, group };
			count++;
		}
	}
	return count;
}

int accumulate_view(struct selection *selection, struct select_view *view,
		    struct accumulate_sums *ret, struct err *err)
{
	struct work *work = selection->work;
	struct counters counters = { .nodes_count = view->view->nodes_count };
	struct adding adding = { selection, view, &counters, 0, err };
	int rc = work_check(work, err);

	if (rc)
		return rc;
	arena_init(&counters.arena, work->limit_bytes - work->arena.used_bytes + 1);
	for (size_t i = 0; !rc && i < view->reports_count; i++)
		rc = add_report(&adding, &view->view->reports[view->reports[i]]);
	if (!rc) {
		size_t count = take_sums(&counters, NULL);
		struct accumulate_sum *list =
			arena_new_array(&work->arena, struct accumulate_sum, count);

		if (list) {
			take_sums(&counters, list);
			*ret = (struct accumulate_sums){ list, count, adding.rows };
		} else {
			rc = work_over_budget(work, err);
		}
	}
	arena_free(&counters.arena);
	return rc;
}
