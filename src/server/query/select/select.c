/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In steps, because labels may be at a series or at its rows: each segment says which names the
 * matchers and groups of a series leave open, and which of these its rows carry; this is united
 * over all segments; then series are closed. Only those with open names are read row by row.
 *
 * Invariant: what is decided of a series depends on the union over all segments alone, never on one
 * segment, so an answer is the same however compaction has spread the reports.
 *
 * Reports are selected by their headers: a block's zone, then runs of one series; where a run is in
 * the order of time, two bisections find the stretch that is in range. What is returned is a list
 * of blocks, not of reports: whoever sums reads them anyway, and select_takes costs a comparison.
 */
#include "server/query/select/select.h"

#include <assert.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/order/bisect.h"
#include "model/service.h"
#include "server/query/team.h"
#include "server/query/select/types.h"

#define HEADER_COST 20u	 /* ns, roughly, to look at a report */
#define SERIES_COST 200u /* to match a series */

/* Roll-ups may answer such steps: they know no single report. */
#define WHOLE_STEP_NS (3600 * CLOCK_NS_PER_S)

/* What the labels of one series leave open, and which of these names its rows carry. */
struct select_open {
	uint64_t matchers;    /* not among its labels */
	uint64_t unsatisfied; /* of these, those that "" does not satisfy */
	uint64_t row_matchers;
	uint32_t group_names; /* not among its labels */
	uint32_t row_group_names;
	uint64_t reports;	  /* in time, */
	int64_t start_ns, end_ns; /* from the first one's start to the last one's end */
	int64_t longest_ns;	  /* of those that are no roll-ups */
	int64_t nearest_ns;	  /* with a moment: the start of the nearest one */
	bool lasts;		  /* some has a duration, or may have */
	size_t bucket;		  /* with steps: index + 1 of its last one */
};

static uint64_t distance_ns(const struct query_params *params, int64_t start_ns)
{
	return start_ns > params->moment_ns ? (uint64_t)start_ns - (uint64_t)params->moment_ns
					    : (uint64_t)params->moment_ns - (uint64_t)start_ns;
}

/* The column of each group, or SELECT_NONE. */
static uint32_t *group_columns(const struct selection *selection, const struct tables_view *view,
			       struct arena *arena)
{
	const struct selector *selector = selection->params->selector;
	uint32_t *columns = arena_new_array(arena, uint32_t, view->groups_count);

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
		if (!service_label_value(view, label_set, params->group_by[i]).len)
			names |= 1u << i;
	return names;
}

/* Selects series by their own labels; what they leave open goes to `open`. */
static int select_by_labels(const struct selection *selection, struct select_segment *into,
			    struct work *work, struct err *err)
{
	const struct series_part *part = selection->params->part;
	struct select_open *open = into->open;
	const struct tables_view *view = into->view;
	uint32_t *columns = group_columns(selection, view, &work->arena);
	uint64_t all = into->match.matchers_count == 64 ? UINT64_MAX
							: (1ull << into->match.matchers_count) - 1;

	if (!columns)
		return work_over_budget(work, err);
	for (uint32_t i = 0; i < view->series_count; i++) {
		const struct series *series = &view->series[i];
		struct match_result result;
		int rc = work_tick(work, 16, err);

		if (rc)
			return rc;
		into->series[i] = (struct select_series){ .id = SELECT_NONE,
							  .template_id = SELECT_NONE,
							  .column = columns[series->group] };
		if (into->series[i].column == TYPES_NO_COLUMN)
			continue;
		result = match_series(&into->match, series->label_set);
		work_note(work, match_take_steps(&into->match));
		if (result.present & ~result.passes ||
		    (part && !series_part_has(part, view, series->label_set)))
			continue;
		open[i].matchers = all & ~result.present;
		open[i].unsatisfied = open[i].matchers & ~into->match.passes_empty;
		open[i].group_names = open_group_names(selection->params, view, series->label_set);
		into->series[i].id = 0;
	}
	return 0;
}

/* How many selected series have a smaller id; one more element than series. */
static uint32_t *count_selected(const struct select_segment *in, struct arena *arena)
{
	uint32_t count = in->view->series_count;
	uint32_t *before = arena_new_array(arena, uint32_t, (size_t)count + 1);

	assert(in->series);
	for (uint32_t i = 0; before && i < count; i++)
		before[i + 1] = before[i] + (in->series[i].id != SELECT_NONE);
	return before;
}

/* True if the block may hold reports of the selection. */
static bool zone_matters(const struct select_segment *in, const struct segment_zone *zone,
			 const uint32_t *selected_before)
{
	uint32_t end = in->view->series_count;

	if (zone->start_max_ns < in->from_ns || zone->start_min_ns >= in->to_ns ||
	    segment_hole_has(in->segment, zone->start_min_ns, zone->start_max_ns) ||
	    zone->series_min >= end)
		return false;
	if (zone->series_max < end)
		end = zone->series_max + 1;
	return selected_before[end] > selected_before[zone->series_min];
}

/* If two are at the same distance, the earlier one. */
static bool is_nearer(const struct query_params *params, int64_t start_ns, int64_t than_ns)
{
	uint64_t a = distance_ns(params, start_ns), b = distance_ns(params, than_ns);

	return a < b || (a == b && start_ns < than_ns);
}

static int64_t bucket_start(int64_t at_ns, int64_t step_ns)
{
	int64_t rest = at_ns % step_ns;

	assert(step_ns > 0);
	if (rest < 0)
		rest += step_ns;
	return (int64_t)((uint64_t)at_ns - (uint64_t)rest);
}

/* Selected reports of a run, one behind the other. */
struct stretch {
	const struct segment_heads *heads;
	const struct segment_run *run;
	uint32_t at, end; /* in the run */
};

/* Among ascending times, the first from `at` on that is not before `time_ns`. */
static uint32_t find_time(const int64_t *times_ns, uint32_t at, uint32_t end, int64_t time_ns)
{
	assert(at <= end);
	return bisect(at, end, i, times_ns[i] < time_ns);
}

/* The next in the segment's range: before its hole, or behind it. */
static void find_ordered(const struct select_segment *in, const int64_t *starts_ns, uint32_t count,
			 struct stretch *ret)
{
	const struct segment_hole *hole = &in->segment->hole;
	int64_t to_ns = in->to_ns;

	ret->at = find_time(starts_ns, ret->at, count, in->from_ns);
	if (ret->at < count && segment_in_hole(in->segment, starts_ns[ret->at]))
		ret->at = find_time(starts_ns, ret->at, count, hole->to_ns);
	else if (ret->at < count && starts_ns[ret->at] < hole->from_ns && hole->from_ns < to_ns)
		to_ns = hole->from_ns;
	ret->end = find_time(starts_ns, ret->at, count, to_ns);
}

/* From `at` on; false: there is none. */
static bool next_stretch(const struct selection *selection, const struct select_segment *in,
			 const struct segment_heads *heads, const struct segment_run *run,
			 uint32_t at, struct stretch *ret)
{
	const int64_t *starts_ns = heads->starts_ns + run->times;
	const int64_t *ends_ns = heads->ends_ns + run->times;
	uint32_t id = in->series[run->series].id, end;

	assert(at <= run->count);
	*ret = (struct stretch){ heads, run, at, at };
	if (run->ordered && !select_beyond_range(selection)) {
		find_ordered(in, starts_ns, run->count, ret);
		return ret->at < ret->end;
	}
	while (at < run->count &&
	       !select_takes_times(selection, in, id, starts_ns[at], ends_ns[at]))
		at++;
	for (end = at; end < run->count &&
		       select_takes_times(selection, in, id, starts_ns[end], ends_ns[end]);)
		end++;
	ret->at = at;
	ret->end = end;
	return at < end;
}

static void note_times(const struct stretch *stretch, const struct query_params *params,
		       struct select_open *open)
{
	const int64_t *starts_ns = stretch->heads->starts_ns + stretch->run->times;
	const int64_t *ends_ns = stretch->heads->ends_ns + stretch->run->times;
	int64_t start_ns = starts_ns[stretch->at], end_ns = ends_ns[stretch->end - 1];
	int64_t nearest_ns = start_ns;

	for (uint32_t i = stretch->at; !stretch->run->ordered && i < stretch->end; i++) {
		start_ns = starts_ns[i] < start_ns ? starts_ns[i] : start_ns;
		end_ns = ends_ns[i] > end_ns ? ends_ns[i] : end_ns;
	}
	for (uint32_t i = stretch->at; params->at_moment && i < stretch->end; i++)
		if (is_nearer(params, starts_ns[i], nearest_ns))
			nearest_ns = starts_ns[i];
	if (!open->reports || start_ns < open->start_ns)
		open->start_ns = start_ns;
	if (!open->reports || end_ns > open->end_ns)
		open->end_ns = end_ns;
	if (!open->reports ||
	    (params->at_moment && is_nearer(params, nearest_ns, open->nearest_ns)))
		open->nearest_ns = nearest_ns;
}

static void note_durations(const struct stretch *stretch, struct select_open *open)
{
	const int64_t *durations_ns = stretch->heads->durations_ns + stretch->run->times;
	const uint32_t *counts = stretch->heads->reports_counts;
	int64_t bound_ns = stretch->heads->longest_ns;

	for (uint32_t i = stretch->at; i < stretch->end && open->longest_ns < bound_ns; i++)
		if (durations_ns[i] > open->longest_ns &&
		    (!counts || counts[stretch->run->first + i] == 1))
			open->longest_ns = durations_ns[i];
}

static void note_lasting(const struct stretch *stretch, struct select_open *open)
{
	const int64_t *durations_ns = stretch->heads->durations_ns + stretch->run->times;
	const uint32_t *counts = stretch->heads->reports_counts;

	for (uint32_t i = stretch->at; i < stretch->end && !open->lasts; i++)
		open->lasts =
			durations_ns[i] > 0 || (counts && counts[stretch->run->first + i] > 1);
}

/* How many reports those from `at` to `end` stand for. */
static uint64_t count_reports(const struct stretch *stretch, uint32_t at, uint32_t end)
{
	const uint32_t *counts = stretch->heads->reports_counts;
	uint64_t reports = 0;

	assert(at <= end && end <= stretch->heads->reports_count);
	if (!counts)
		return end - at;
	for (uint32_t i = at; i < end; i++)
		reports += counts[stretch->run->first + i];
	return reports;
}

static void note_stretch(const struct stretch *stretch, const struct query_params *params,
			 struct select_segment *in)
{
	const uint32_t *row_counts = stretch->heads->row_counts + stretch->run->first;
	struct select_open *open = &in->open[stretch->run->series];
	uint64_t rows = 0;

	note_times(stretch, params, open);
	note_durations(stretch, open);
	note_lasting(stretch, open);
	open->reports += count_reports(stretch, stretch->at, stretch->end);
	for (uint32_t i = stretch->at; i < stretch->end; i++)
		rows += row_counts[i];
	in->rows_count += rows;
}

/* The end of the step in which a report starts, `guess` being where it may be. */
static uint32_t end_of_step(const struct stretch *stretch, uint32_t at, uint32_t guess,
			    int64_t at_ns, int64_t step_ns)
{
	const int64_t *starts_ns = stretch->heads->starts_ns + stretch->run->times;
	int64_t last_ns = work_add(at_ns, step_ns - 1);

	if (stretch->run->ordered && guess > at && guess < stretch->end &&
	    starts_ns[guess - 1] <= last_ns)
		at = guess;
	else
		at++;
	while (at < stretch->end && starts_ns[at] >= at_ns && starts_ns[at] <= last_ns)
		at++;
	return at;
}

static mean_wide sum_totals(const struct stretch *stretch, uint32_t column, uint32_t at,
			    uint32_t end)
{
	const struct segment_heads *heads = stretch->heads;
	const int64_t *totals = heads->totals + column;
	mean_wide sum = 0;

	assert(at <= end);
	assert(column < TABLES_COLUMNS_PER_GROUP_MAX);
	at += stretch->run->first;
	end += stretch->run->first;
	if (heads->total_firsts)
		for (; at < end; at++)
			sum += totals[heads->total_firsts[at]];
	else
		for (; at < end; at++)
			sum += totals[at * heads->total_stride];
	return sum;
}

bool select_shares_next(struct select_shares *shares)
{
	int64_t until_ns = work_add(shares->start_ns, shares->duration_ns);
	int64_t at_ns = shares->count ? work_add(shares->at_ns, shares->step_ns)
				      : bucket_start(shares->start_ns, shares->step_ns);
	int64_t end_ns = work_add(at_ns, shares->step_ns), before = shares->value;

	assert(shares->step_ns > 0);
	if (shares->count && (at_ns >= until_ns || shares->count == QUERY_STEPS_MAX))
		return false;
	shares->count++;
	if (end_ns < until_ns && shares->count < QUERY_STEPS_MAX)
		before = (int64_t)((mean_wide)shares->value * (end_ns - shares->start_ns) /
				   shares->duration_ns);
	shares->at_ns = at_ns;
	shares->share = before - shares->before;
	shares->before = before;
	return true;
}

/* The bucket of a step: the last one of the series, or a new one. NULL when over budget. */
static struct select_bucket *bucket_at(struct select_segment *in, uint32_t series, int64_t at_ns,
				       struct arena *arena)
{
	struct select_open *open = &in->open[series];
	struct select_bucket *bucket = open->bucket ? &in->buckets[open->bucket - 1] : NULL;

	assert(in->buckets_count <= in->buckets_capacity);
	assert(series < in->view->series_count);
	if (bucket && bucket->at_ns == at_ns)
		return bucket;
	if (!WORK_GROW(arena, in->buckets, in->buckets_count, in->buckets_capacity))
		return NULL;
	bucket = &in->buckets[in->buckets_count++];
	*bucket = (struct select_bucket){ .series = series, .at_ns = at_ns };
	open->bucket = in->buckets_count;
	return bucket;
}

/* Report by report, each by its shares. False when over budget. */
static bool spread_to_buckets(const struct stretch *stretch, const struct selection *selection,
			      struct select_segment *in, struct arena *arena)
{
	const struct segment_heads *heads = stretch->heads;
	uint32_t series = stretch->run->series, times = stretch->run->times;

	assert(selection->step_ns > 0);
	for (uint32_t at = stretch->at; at < stretch->end; at++) {
		struct select_shares shares = { .value = (int64_t)sum_totals(
							stretch, in->series[series].column, at,
							at + 1),
						.start_ns = heads->starts_ns[times + at],
						.duration_ns = heads->durations_ns[times + at],
						.step_ns = selection->step_ns };
		uint64_t reports = count_reports(stretch, at, at + 1);

		while (select_shares_next(&shares)) {
			struct select_bucket *bucket = bucket_at(in, series, shares.at_ns, arena);

			if (!bucket)
				return false;
			bucket->reports += reports;
			bucket->total = mean_add(bucket->total, shares.share);
			reports = 0; /* it starts in the first */
		}
	}
	return true;
}

/* False when over budget. */
static bool add_to_buckets(const struct stretch *stretch, const struct selection *selection,
			   struct select_segment *in, struct arena *arena)
{
	const struct select_series *series = &in->series[stretch->run->series];

	assert(selection->step_ns > 0);
	if (select_is_spread(selection))
		return spread_to_buckets(stretch, selection, in, arena);
	for (uint32_t at = stretch->at, end, guess = at; at < stretch->end; at = end) {
		struct select_bucket *bucket;
		int64_t at_ns = bucket_start(stretch->heads->starts_ns[stretch->run->times + at],
					     selection->step_ns);

		end = end_of_step(stretch, at, guess, at_ns, selection->step_ns);
		guess = 2 * end - at;
		bucket = bucket_at(in, stretch->run->series, at_ns, arena);
		if (!bucket)
			return false;
		bucket->reports += count_reports(stretch, at, end);
		bucket->total =
			mean_add(bucket->total, sum_totals(stretch, series->column, at, end));
	}
	return true;
}

/* Notes the reports of the block that are selected; *ret says whether any is. */
static bool note_reports(const struct selection *selection, struct select_segment *in,
			 struct arena *arena, const struct segment_heads *heads, bool *ret)
{
	assert(heads->runs || !heads->runs_count);
	*ret = false;
	for (uint32_t i = 0; i < heads->runs_count; i++) {
		const struct segment_run *run = &heads->runs[i];
		struct stretch stretch = { .end = 0 };

		if (in->series[run->series].id == SELECT_NONE)
			continue;
		while (next_stretch(selection, in, heads, run, stretch.end, &stretch)) {
			*ret = true;
			note_stretch(&stretch, selection->params, in);
			if (selection->step_ns && !selection->by_times &&
			    !add_to_buckets(&stretch, selection, in, arena))
				return false;
		}
	}
	return true;
}

/*
 * True if the zone alone says which series have reports in time: its bounds are met, so up to two
 * neighbours are known.
 */
static bool note_zone(const struct selection *selection, struct select_segment *in,
		      const struct segment_zone *zone)
{
	if (!selection->series_only || !in->segment->zones || in->segment->deletions_count ||
	    zone->series_max - zone->series_min > 1 || zone->series_max >= in->view->series_count ||
	    zone->start_min_ns < in->from_ns || zone->start_max_ns >= in->to_ns ||
	    segment_hole_meets(in->segment, zone->start_min_ns, zone->start_max_ns))
		return false;
	for (uint32_t i = zone->series_min; i <= zone->series_max; i++) {
		in->open[i].reports += in->series[i].id != SELECT_NONE;
		in->open[i].lasts = true;
	}
	in->rows_count += zone->rows;
	return true;
}

static int read_headers(const struct selection *selection, struct select_segment *in,
			struct work *work, struct err *err)
{
	const uint32_t *selected_before = count_selected(in, &work->arena);

	in->blocks = arena_new_array(&work->arena, uint32_t, in->segment->blocks_count);
	if (!in->blocks || !selected_before)
		return work_over_budget(work, err);
	for (uint32_t i = 0; i < in->segment->blocks_count; i++) {
		struct segment_zone zone = segment_zone(in->segment, i);
		struct segment_heads heads;
		bool any;
		int rc;

		work->stats.blocks++;
		work->stats.blocks_bytes += zone.bytes;
		if (!zone_matters(in, &zone, selected_before))
			continue;
		if (note_zone(selection, in, &zone)) {
			in->blocks[in->blocks_count++] = i;
			continue;
		}
		work->stats.blocks_touched++;
		rc = work_read_heads(work, in->segment, i, &heads, err);
		if (!rc)
			rc = work_tick(work, heads.reports_count, err);
		if (rc)
			return rc;
		if (!note_reports(selection, in, &work->arena, &heads, &any))
			return work_over_budget(work, err);
		if (any)
			in->blocks[in->blocks_count++] = i;
	}
	return 0;
}

/* What is known of series begins anew, for the nearest reports alone. */
static int read_nearest(const struct selection *selection, struct select_segment *in,
			struct work *work, struct err *err)
{
	size_t kept = 0;

	assert(selection->params->at_moment);
	in->rows_count = 0;
	for (uint32_t i = 0; i < in->view->series_count; i++)
		in->open[i].reports = 0;
	for (size_t i = 0; i < in->blocks_count; i++) {
		struct segment_heads heads;
		bool any;
		int rc = work_read_heads(work, in->segment, in->blocks[i], &heads, err);

		if (!rc)
			rc = work_tick(work, heads.reports_count, err);
		if (rc)
			return rc;
		if (!note_reports(selection, in, &work->arena, &heads, &any))
			return work_over_budget(work, err);
		if (any)
			in->blocks[kept++] = in->blocks[i];
	}
	in->blocks_count = kept;
	return 0;
}

/* What one label set of rows has to say; the group-by names in a bit mask. */
static void note_label_set(const struct selection *selection, struct select_segment *into,
			   uint32_t label_set)
{
	const struct query_params *params = selection->params;
	const struct label_set *set = &into->view->label_sets[label_set];
	struct select_row_labels *labels = &into->row_labels[label_set];

	assert(label_set < into->view->label_sets_count);
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

/* Whether rows may carry any of the names that series with reports leave open. */
static int rows_may_say(const struct selection *selection, struct select_segment *in,
			struct work *work, bool *ret, struct err *err)
{
	const struct tables_view *view = in->view;
	struct select_open all = { 0 };
	struct select_open names = { 0 };

	for (uint32_t i = 1; i < view->label_sets_count; i++) {
		int rc;

		note_label_set(selection, in, i);
		rc = work_tick(work, match_take_steps(&in->match), err);
		if (rc)
			return rc;
		names.matchers |= in->row_labels[i].result.present;
		names.group_names |= in->row_labels[i].group_names;
	}
	for (uint32_t i = 0; i < view->series_count; i++) {
		if (!in->open[i].reports)
			continue;
		all.matchers |= in->open[i].matchers;
		all.group_names |= in->open[i].group_names;
	}
	*ret = (all.matchers & names.matchers) || (all.group_names & names.group_names);
	return 0;
}

static void scan_report(const struct select_segment *in, const struct segment_block *block,
			const struct segment_report *report)
{
	struct select_open *open = &in->open[report->series];

	for (uint32_t i = 0; is_open(open) && i < report->row_count; i++) {
		uint32_t set = block->label_sets[(report->row_first + i) * block->row_stride];

		open->row_matchers |= in->row_labels[set].result.present;
		open->row_group_names |= in->row_labels[set].group_names;
	}
}

/* Looks through the rows of series with something open: are the names among their sample labels? */
static int scan_rows(const struct selection *selection, struct select_segment *in,
		     struct work *work, struct err *err)
{
	for (size_t i = 0; i < in->blocks_count; i++) {
		struct segment_block block;
		int rc = work_read(work, in->segment, in->blocks[i], SEGMENT_ROWS, &block, err);

		if (rc)
			return rc;
		for (uint32_t r = 0; block.label_sets && r < block.reports_count; r++) {
			const struct segment_report *report = &block.reports[r];

			if (!select_takes(selection, in, report))
				continue;
			scan_report(in, &block, report);
			rc = work_tick(work, report->row_count / 8 + 1, err);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static bool anything_open(const struct select_segment *in)
{
	for (uint32_t i = 0; i < in->view->series_count; i++)
		if (in->open[i].reports && is_open(&in->open[i]))
			return true;
	return false;
}

static int ask_rows(const struct selection *selection, struct select_segment *in, struct work *work,
		    struct err *err)
{
	bool may_say;
	int rc;

	in->row_labels =
		arena_new_array(&work->arena, struct select_row_labels, in->view->label_sets_count);
	if (!in->row_labels)
		return work_over_budget(work, err);
	rc = rows_may_say(selection, in, work, &may_say, err);
	return rc || !may_say ? rc : scan_rows(selection, in, work, err);
}

static int choose_group(struct selection *selection, const struct select_segment *into,
			const struct series *series, uint32_t from_rows,
			struct select_series *chosen, struct err *err)
{
	const struct query_params *params = selection->params;
	struct groups_tuple tuple = { .from_rows = from_rows,
				      .series = params->series_apart ? chosen->id : 0 };
	uint32_t id;

	for (size_t i = 0; i < params->group_by_count; i++)
		tuple.values[i] =
			service_label_value(into->view, series->label_set, params->group_by[i]);
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

	assert(series->group < view->groups_count && series->label_set < view->label_sets_count);
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
	assert(series < view->series_count);
	assert(selection->series_count <= selection->series_capacity);
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

/* The id across segments. With one nothing can be the same twice. */
static uint32_t series_id(struct selection *selection, const struct tables_view *view,
			  uint32_t series, struct strbuf *key, struct strbuf *other)
{
	struct series_query query = { view, &view->series[series], key, other };
	struct slice text;
	uint64_t hash;
	uint32_t id;

	assert(series < view->series_count);
	if (selection->segments_count == 1)
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

/* Gives the series of a segment ids, and gathers what the rows of each carry in all segments. */
static int identify_series(struct selection *selection, struct select_segment *into,
			   struct err *err)
{
	struct strbuf key = { 0 }, other = { 0 };
	int rc = 0;

	for (uint32_t i = 0; !rc && i < into->view->series_count; i++) {
		struct select_series *series = &into->series[i];
		const struct select_open *open = &into->open[i];

		if (!open->reports) {
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
static int close_series(struct selection *selection, struct select_segment *into, struct err *err)
{
	assert(into->open && into->series);
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
		into->by_rows |= !select_whole(series);
	}
	return 0;
}

/* A step for a team: one segment. */
static int select_in_segment(void *context, struct work *work, size_t index, struct err *err)
{
	const struct selection *selection = context;
	struct select_segment *in = &selection->segments[index];
	struct arena *arena = &work->arena;
	int rc;

	in->open = arena_new_array(arena, struct select_open, in->view->series_count);
	in->series = arena_new_array(arena, struct select_series, in->view->series_count);
	if (!in->open || !in->series ||
	    !match_init(&in->match, selection->params->selector, in->view, arena))
		return work_over_budget(work, err);
	rc = select_by_labels(selection, in, work, err);
	if (!rc)
		rc = read_headers(selection, in, work, err);
	if (!rc && in->segment->has_sample_labels && anything_open(in))
		rc = ask_rows(selection, in, work, err);
	return work_spare(in->segment, rc);
}

static int settle_in_segment(void *context, struct work *work, size_t index, struct err *err)
{
	const struct selection *selection = context;
	struct select_segment *in = &selection->segments[index];

	return work_spare(in->segment, read_nearest(selection, in, work, err));
}

/* The nearest report of each series, of all segments. */
static int settle_nearest(struct selection *selection, uint64_t cost, struct err *err)
{
	int rc;

	for (size_t v = 0; v < selection->segments_count; v++) {
		const struct select_segment *in = &selection->segments[v];

		for (uint32_t i = 0; i < in->view->series_count; i++) {
			struct select_totals *series;

			if (in->series[i].id == SELECT_NONE)
				continue;
			series = &selection->series[in->series[i].id];
			if (series->has_nearest &&
			    !is_nearer(selection->params, in->open[i].nearest_ns,
				       series->nearest_ns))
				continue;
			series->has_nearest = true;
			series->nearest_ns = in->open[i].nearest_ns;
		}
	}
	selection->settled = true;
	rc = team_run(selection->work, selection->segments_count, cost, settle_in_segment,
		      selection, err);
	return rc ? rc : work_lost(selection->work, err);
}

static void sum_up_reports(struct selection *selection, const struct select_segment *in)
{
	for (uint32_t i = 0; i < in->view->series_count; i++) {
		const struct select_open *open = &in->open[i];
		struct select_totals *series;

		if (in->series[i].id == SELECT_NONE || !open->reports)
			continue;
		series = &selection->series[in->series[i].id];
		if (!selection->reports_count || open->start_ns < selection->start_ns)
			selection->start_ns = open->start_ns;
		if (!selection->reports_count || open->end_ns > selection->end_ns)
			selection->end_ns = open->end_ns;
		if (series->period > selection->period)
			selection->period = series->period;
		if (open->longest_ns > selection->report_ns)
			selection->report_ns = open->longest_ns;
		selection->lasts |= open->lasts;
		series->reports_count += open->reports;
		selection->reports_count += open->reports;
	}
}

static uint32_t mean_count(const struct select_totals *series)
{
	return series->reports_count < UINT32_MAX ? (uint32_t)series->reports_count : UINT32_MAX;
}

static void weigh_series(struct selection *selection)
{
	bool gauge = !selection->type.delta;

	assert(selection->denominator > 0);
	for (size_t i = 0; gauge && i < selection->series_count; i++)
		if (selection->series[i].reports_count)
			selection->denominator = mean_denominator(
				selection->denominator, mean_count(&selection->series[i]));
	for (size_t i = 0; i < selection->series_count; i++) {
		struct select_totals *series = &selection->series[i];

		if (gauge && series->reports_count)
			series->weight = mean_weight(selection->denominator, mean_count(series));
		else if (selection->by_period)
			series->weight = series->period;
		selection->weighted |= series->weight != 1;
	}
	selection->weighted |= selection->denominator != 1;
}

static void set_range(const struct selection *selection, struct select_segment *in)
{
	const struct query_params *params = selection->params;

	in->from_ns = params->from_ns;
	if (selection->by_times)
		in->from_ns = work_add(params->from_ns, -QUERY_TIMES_BACK_NS);
	in->to_ns = params->to_ns;
	if (params->at_moment) {
		in->from_ns = work_add(params->moment_ns, -params->moment_window_ns);
		in->to_ns = work_add(work_add(params->moment_ns, params->moment_window_ns), 1);
	}
	if (in->segment->from_ns > in->from_ns)
		in->from_ns = in->segment->from_ns;
	if (in->segment->to_ns < in->to_ns)
		in->to_ns = in->segment->to_ns;
}

/* The segments that can be read; returns roughly what it costs to look at all. */
static uint64_t take_segments(struct selection *selection, const struct query_source *source)
{
	uint64_t cost = 0;

	for (size_t i = 0; i < source->segments_count; i++) {
		struct segment *segment = &source->segments[i];
		struct select_segment *in = &selection->segments[selection->segments_count];

		if (atomic_load(&segment->unreadable))
			continue;
		selection->segments_count++;
		selection->work->stats.segments[segment->level]++;
		in->segment = segment;
		in->view = &segment->view;
		set_range(selection, in);
		cost += (uint64_t)segment->view.series_count * SERIES_COST;
		for (uint32_t b = 0; b < segment->blocks_count; b++)
			cost += (uint64_t)segment_zone(segment, b).reports * HEADER_COST;
	}
	return cost;
}

static void choose_type(struct selection *selection, const struct types_answer *answer)
{
	selection->stored = answer->stored;
	selection->type = selection->params->selector->type;
	selection->type.delta = answer->stored.delta;
	selection->by_period = answer->by_period || selection->params->by_period;
	selection->by_times = selection->params->by_times && answer->stored.delta;
}

/* A partition's segments stand side by side. */
static bool is_new_partition(const struct selection *selection, size_t at)
{
	uint64_t id = selection->segments[at].segment->id;

	assert(at < selection->segments_count);
	for (size_t i = at; id && i-- > 0 && selection->segments[i].segment->id == id;)
		if (selection->segments[i].blocks_count)
			return false;
	return true;
}

/* What is to be read, before it is. */
static void announce(const struct selection *selection, const struct select_segment *in)
{
	struct query_progress *progress = selection->work->shared->progress;
	uint64_t bytes = 0;

	if (!progress)
		return;
	for (size_t i = 0; i < in->blocks_count; i++)
		bytes += segment_zone(in->segment, in->blocks[i]).bytes;
	atomic_fetch_add(&progress->blocks_all, in->blocks_count);
	atomic_fetch_add(&progress->bytes_all, bytes);
}

static void sum_up(struct selection *selection)
{
	for (size_t i = 0; i < selection->segments_count; i++)
		sum_up_reports(selection, &selection->segments[i]);
	if (__builtin_sub_overflow(selection->end_ns, selection->start_ns, &selection->duration_ns))
		selection->duration_ns = INT64_MAX;
	selection->work->shared->range_ns = selection->duration_ns;
	weigh_series(selection);
}

/* Once it is certain what is selected. */
static void announce_all(struct selection *selection)
{
	struct query_stats *stats = &selection->work->stats;

	for (size_t i = 0; i < selection->segments_count; i++) {
		const struct select_segment *in = &selection->segments[i];

		if (!in->blocks_count)
			continue;
		stats->segments_used[in->segment->level]++;
		selection->has_times |= selection->by_times && in->segment->has_moments;
		stats->partitions_used += is_new_partition(selection, i);
		announce(selection, in);
	}
	selection->work->shared->announced = true;
}

static int begin_selection(struct selection *selection, const struct query_source *source,
			   struct err *err)
{
	struct work *work = selection->work;

	work->shared->announced = false;
	groups_init(&selection->groups, work, selection->params->group_by_count);
	groups_init(&selection->templates, work, selection->params->group_by_count);
	work_add_map(work, &selection->series_map);
	work_add_map(work, &selection->row_group_map);
	selection->segments =
		arena_new_array(&work->arena, struct select_segment, source->segments_count);
	return selection->segments ? 0 : work_over_budget(work, err);
}

/* Nothing was selected: as after begin_selection, for another type. */
static void begin_again(struct selection *selection)
{
	struct query_stats *stats = &selection->work->stats;

	memset(selection->segments, 0, selection->segments_count * sizeof(*selection->segments));
	selection->segments_count = 0;
	selection->series_count = 0;
	selection->settled = false;
	selection->lasts = selection->weighted = false;
	selection->reports_count = 0;
	selection->report_ns = selection->period = 0;
	selection->denominator = 1;
	idmap_clear(&selection->series_map);
	groups_clear(&selection->groups);
	groups_clear(&selection->templates);
	memset(stats->segments, 0, sizeof(stats->segments));
}

/* What the selected series have of the type that was chosen. */
static int select_chosen(struct selection *selection, const struct query_source *source,
			 struct err *err)
{
	uint64_t cost = take_segments(selection, source);
	int rc = team_run(selection->work, selection->segments_count, cost, select_in_segment,
			  selection, err);

	if (!rc)
		rc = work_lost(selection->work, err);
	for (size_t i = 0; !rc && i < selection->segments_count; i++)
		rc = identify_series(selection, &selection->segments[i], err);
	for (size_t i = 0; !rc && i < selection->segments_count; i++)
		rc = close_series(selection, &selection->segments[i], err);
	if (!rc && selection->params->at_moment)
		rc = settle_nearest(selection, cost, err);
	if (!rc)
		sum_up(selection);
	return rc;
}

/* What is selected of the type that this answer stores, in place of what was. */
static int select_answer(struct selection *selection, const struct query_source *source,
			 const struct types_answer *answer, struct err *err)
{
	if (selection->segments_count)
		begin_again(selection);
	choose_type(selection, answer);
	return select_chosen(selection, source, err);
}

/* A delta over no time is where counting began: others may have more to say (types.h). */
static bool says_enough(const struct selection *selection)
{
	return selection->reports_count && (!selection->stored.delta || selection->lasts);
}

static int select_typed(struct selection *selection, const struct query_source *source,
			struct err *err)
{
	const struct query_params *params = selection->params;
	struct types_answer answers[TYPES_ANSWERS_MAX];
	size_t count = types_find(source, &params->selector->type, params->deltas_first, answers);
	size_t chosen = count, last = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < count && !says_enough(selection); i++) {
		rc = select_answer(selection, source, &answers[i], err);
		last = i;
		if (chosen == count && selection->reports_count)
			chosen = i;
	}
	if (rc || says_enough(selection))
		return rc;
	if (chosen != count && chosen != last)
		return select_answer(selection, source, &answers[chosen], err);
	if (chosen == count)
		choose_type(selection, &answers[0]);
	return 0;
}

/* What later phases rely on. */
static void selection_check(const struct selection *selection)
{
	assert(selection->denominator > 0);
	assert(selection->series_count <= selection->series_capacity);
	assert(selection->segments || !selection->segments_count);
	for (size_t i = 0; i < selection->segments_count; i++) {
		const struct select_segment *in = &selection->segments[i];

		assert(in->view == &in->segment->view);
		assert(in->blocks_count <= in->segment->blocks_count);
		assert(in->buckets_count <= in->buckets_capacity);
		assert(in->blocks || !in->blocks_count);
	}
}

int select_make(struct selection *selection, struct work *work, const struct query_source *source,
		const struct query_params *params, struct select_use use, struct err *err)
{
	bool typed = params->selector && params->selector->has_type;
	int rc;

	assert(params->group_by_count <= QUERY_GROUP_BY_MAX);
	assert(use.step_ns >= 0);
	assert(work->shared == &work->own_shared);
	*selection = (struct selection){ .work = work,
					 .params = params,
					 .step_ns = use.step_ns,
					 .spread = use.spread && use.step_ns % WHOLE_STEP_NS != 0,
					 .series_only = use.series_only,
					 .denominator = 1 };
	rc = begin_selection(selection, source, err);
	if (!rc)
		rc = typed ? select_typed(selection, source, err)
			   : select_chosen(selection, source, err);
	if (!rc)
		announce_all(selection);
	if (!rc)
		selection_check(selection);
	return rc;
}
