/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/sum/accumulate.h"

#include <assert.h>
#include <stdlib.h>

#include "server/query/sum/dense_sums.h"
#include "server/query/team.h"
#include "server/query/select/times.h"

#define ROWS_AHEAD 16u
#define FAR_BYTES ((size_t)1 << 19)    /* counters beyond this are called for ahead of time */
#define PIECE_ROWS ((uint64_t)1 << 19) /* that are worth a thread */
#define PIECES_MAX 64u
#define DENSE_BYTES_MAX ((size_t)32 << 20) /* of a piece's counters, if others would do */

/* Rows behind one another that go to the same counters in the same way. */
struct run {
	const uint32_t *slots;
	const int64_t *values; /* of the first row; NULL: all are 1 */
	uint64_t count;
	uint64_t value_stride;
	uint32_t row_stride;
	uint32_t group;
	int64_t weight;
};

struct adding {
	struct selection *selection;
	struct select_segment *in;
	struct work *work;
	struct dense_sums_piece *piece;
	struct run run;
	bool mixed; /* weights differ: they are applied row by row */
	bool wide;
	struct err *err;
};

static int over_budget(const struct adding *adding)
{
	const struct selection *selection = adding->selection;

	return err_set(adding->err, ERR_NO_MEMORY,
		       "query: counters for %zu groups of %u stacks need more than %zu MiB of "
		       "memory; group by fewer labels, or narrow the matchers",
		       selection->groups.count, adding->piece->counters.slots_count,
		       selection->work->limit_bytes >> 20);
}

/* Rows may bring new groups. */
static bool room_for_group(struct dense_sums_counters *counters, uint32_t group)
{
	size_t capacity = counters->groups_capacity;

	while (capacity <= group) {
		size_t ones = capacity, plain = capacity, wide = capacity;

		counters->ones = work_grown(&counters->arena, counters->ones,
					    sizeof(*counters->ones), capacity, &ones);
		counters->plain = work_grown(&counters->arena, counters->plain,
					     sizeof(*counters->plain), capacity, &plain);
		counters->wide = work_grown(&counters->arena, counters->wide,
					    sizeof(*counters->wide), capacity, &wide);
		if (!counters->ones || !counters->plain || !counters->wide)
			return false;
		capacity = ones;
	}
	counters->groups_capacity = capacity;
	return true;
}

/* True if further counters for all slots are too many for the rows that there are, or at all. */
static bool is_too_dense(const struct adding *adding)
{
	const struct dense_sums_counters *counters = &adding->piece->counters;
	size_t bytes = counters->arena.used_bytes + counters->slots_count * sizeof(int64_t);

	if (bytes > adding->work->limit_bytes / 4)
		return true;
	return bytes > DENSE_BYTES_MAX && adding->in->rows_count <= bytes / SPARSE_PAIR_BYTES;
}

static bool has_counters(const struct adding *adding, const struct run *run)
{
	const struct dense_sums_counters *counters = &adding->piece->counters;

	if (adding->wide)
		return counters->wide[run->group];
	return run->values ? counters->plain[run->group] != NULL
			   : counters->ones[run->group] != NULL;
}

/* The counters that the run needs. */
static int counters_for(struct adding *adding, const struct run *run)
{
	struct dense_sums_counters *counters = &adding->piece->counters;
	size_t before = counters->arena.used_bytes;

	assert(run->group < adding->selection->groups.count);
	if (!room_for_group(counters, run->group))
		return over_budget(adding);
	if (has_counters(adding, run))
		return 0;
	if (is_too_dense(adding)) {
		adding->piece->too_many = true;
		return 0;
	}
	if (adding->wide)
		counters->wide[run->group] =
			arena_new_array(&counters->arena, mean_wide, counters->slots_count);
	else if (run->values)
		counters->plain[run->group] =
			arena_new_array(&counters->arena, int64_t, counters->slots_count);
	else
		counters->ones[run->group] =
			arena_new_array(&counters->arena, uint32_t, counters->slots_count);
	if (counters->arena.over_budget)
		return over_budget(adding);
	adding->work->other_bytes += counters->arena.used_bytes - before;
	return work_check(adding->work, adding->err);
}

/* The loops that queries spend their time in. Counters far away are called for some rows ahead. */
static void add_ones(uint32_t *restrict counters, const uint32_t *restrict slots, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		counters[slots[i]]++;
}

static void add_far_ones(uint32_t *restrict counters, const uint32_t *restrict slots,
			 uint32_t stride, uint64_t count)
{
	uint64_t ahead = count > ROWS_AHEAD ? count - ROWS_AHEAD : 0;

	for (uint64_t i = 0; i < count; i++) {
		if (i < ahead)
			__builtin_prefetch(&counters[slots[(i + ROWS_AHEAD) * stride]], 1);
		counters[slots[i * stride]]++;
	}
}

/* True if a sum left 64 bits. */
static bool add_plain(int64_t *restrict counters, const struct run *run)
{
	const uint32_t *restrict slots = run->slots;
	const int64_t *restrict values = run->values;
	uint64_t ahead = run->count > ROWS_AHEAD ? run->count - ROWS_AHEAD : 0;
	uint64_t value_stride = run->value_stride;
	uint32_t stride = run->row_stride;
	bool overflowed = false;

	for (uint64_t i = 0; i < run->count; i++) {
		int64_t *counter = &counters[slots[i * stride]];

		if (i < ahead)
			__builtin_prefetch(&counters[slots[(i + ROWS_AHEAD) * stride]], 1);
		overflowed |= __builtin_add_overflow(*counter, values[i * value_stride], counter);
	}
	return overflowed;
}

static void add_wide(mean_wide *restrict counters, const struct run *run, int64_t weight)
{
	for (uint64_t i = 0; i < run->count; i++) {
		mean_wide *counter = &counters[run->slots[i * run->row_stride]];
		int64_t value = run->values ? run->values[i * run->value_stride] : 1;

		*counter = mean_add(*counter, (mean_wide)value * weight);
	}
}

static int add_sparse(struct adding *adding, const struct run *run)
{
	struct sparse *sparse = &adding->piece->sparse;
	size_t before = sparse_bytes(sparse);

	assert(run->count > 0);
	for (uint64_t i = 0; i < run->count; i++) {
		int64_t value = run->values ? run->values[i * run->value_stride] : 1;
		int64_t weight = adding->mixed ? run->weight : 1;

		if (!sparse_add(sparse, run->group, run->slots[i * run->row_stride],
				(mean_wide)value * weight))
			return over_budget(adding);
	}
	adding->work->other_bytes += sparse_bytes(sparse) - before;
	return 0;
}

static void add_dense(struct adding *adding, const struct run *run)
{
	const struct dense_sums_counters *counters = &adding->piece->counters;

	if (adding->wide)
		add_wide(counters->wide[run->group], run, adding->mixed ? run->weight : 1);
	else if (run->values)
		adding->piece->overflowed |= add_plain(counters->plain[run->group], run);
	else if (run->row_stride == 1 && counters->slots_count * sizeof(uint32_t) < FAR_BYTES)
		add_ones(counters->ones[run->group], run->slots, run->count);
	else
		add_far_ones(counters->ones[run->group], run->slots, run->row_stride, run->count);
}

static int flush_run(struct adding *adding)
{
	struct run *run = &adding->run;
	int rc = 0;

	assert(adding->piece && adding->work);
	if (!run->count)
		return 0;
	if (!adding->piece->is_sparse)
		rc = counters_for(adding, run);
	if (!rc)
		rc = work_tick(adding->work,
			       run->count < WORK_TICKS_PER_CHECK ? (uint32_t)run->count
								 : WORK_TICKS_PER_CHECK,
			       adding->err);
	if (!rc && adding->piece->is_sparse)
		rc = add_sparse(adding, run);
	else if (!rc && !adding->piece->too_many)
		add_dense(adding, run);
	adding->piece->rows += run->count;
	run->count = 0;
	return rc;
}

/* Rows first .. first + count - 1 of a report, to that group. */
static int add_rows(struct adding *adding, const struct segment_block *block,
		    const struct segment_report *report, uint32_t group, uint32_t first,
		    uint32_t count)
{
	const struct select_series *series = &adding->in->series[report->series];
	const struct tables_view *view = adding->in->view;
	uint64_t value_stride = block->value_stride ? block->value_stride
						    : tables_series_columns(view, report->series);
	struct run next = {
		.slots = &block->slots[(report->row_first + first) * block->row_stride],
		.count = count,
		.value_stride = value_stride,
		.row_stride = block->row_stride,
		.group = group,
		.weight = adding->selection->series[series->id].weight,
	};
	struct run *run = &adding->run;
	int rc;

	assert(group < adding->selection->groups.count);
	assert((uint64_t)first + count <= report->row_count);
	if (block->values)
		next.values = &block->values[report->value_first + first * value_stride +
					     series->column * block->column_stride];
	if (run->count && run->group == next.group && run->weight == next.weight &&
	    run->value_stride == next.value_stride &&
	    next.slots == run->slots + run->count * run->row_stride &&
	    (next.values ? run->values + run->count * value_stride == next.values : !run->values)) {
		run->count += count;
		return 0;
	}
	rc = flush_run(adding);
	*run = next;
	return rc;
}

/* Rows of a series whose labels leave it to each row whether it counts, or where. */
static int add_one_by_one(struct adding *adding, const struct segment_block *block,
			  const struct segment_report *report)
{
	const struct select_series *series = &adding->in->series[report->series];

	for (uint32_t i = 0; i < report->row_count; i++) {
		uint32_t set = 0, group;
		int rc;

		if (block->label_sets)
			set = block->label_sets[(report->row_first + i) * block->row_stride];
		rc = select_row(adding->selection, adding->in, series, set, &group, adding->err);
		if (!rc && group != SELECT_NONE)
			rc = add_rows(adding, block, report, group, i, 1);
		if (rc)
			return rc;
	}
	return 0;
}

/* What of a report's rows the times of their samples leave. */
static int add_by_times(struct adding *adding, const struct segment_block *block,
			const struct segment_report *report)
{
	const struct select_series *series = &adding->in->series[report->series];
	struct times_row row;
	struct times times;
	int rc = flush_run(adding);

	assert(adding->selection->by_times);
	times_begin(&times, adding->in, block, report);
	times.for_links = adding->selection->params->links_count > 0;
	while (!rc && times_next(&times, &row)) {
		int64_t value = times_within(adding->selection->params, &row);
		uint32_t group = series->group;

		if (value && !select_whole(series))
			rc = select_row(adding->selection, adding->in, series, row.label_set,
					&group, adding->err);
		if (rc || !value || group == SELECT_NONE)
			continue;
		adding->run = (struct run){
			.slots =
				&block->slots[(report->row_first + row.number) * block->row_stride],
			.values = &value,
			.count = 1,
			.row_stride = 1,
			.group = group,
			.weight = adding->selection->series[series->id].weight,
		};
		rc = flush_run(adding);
	}
	return rc;
}

static int add_block(struct adding *adding, uint32_t number)
{
	struct select_segment *in = adding->in;
	bool timed = adding->selection->by_times;
	enum segment_want want = timed && in->segment->has_moments ? SEGMENT_MOMENTS : SEGMENT_ROWS;
	struct segment_block block;
	int rc = work_read(adding->work, in->segment, number, want, &block, adding->err);

	assert(number < adding->in->segment->blocks_count);
	for (uint32_t i = 0; !rc && i < block.reports_count; i++) {
		const struct segment_report *report = &block.reports[i];
		const struct select_series *series = &in->series[report->series];

		if (!select_takes(adding->selection, in, report) || !report->row_count ||
		    (!timed && adding->selection->params->links_count))
			continue;
		if (timed)
			rc = add_by_times(adding, &block, report);
		else if (select_whole(series))
			rc = add_rows(adding, &block, report, series->group, 0, report->row_count);
		else
			rc = add_one_by_one(adding, &block, report);
	}
	return rc ? rc : flush_run(adding);
}

struct adding_together {
	struct selection *selection;
	struct select_segment *in;
	struct dense_sums_piece *pieces;
	bool mixed;
};

static int add_blocks(struct adding *adding)
{
	struct dense_sums_piece *piece = adding->piece;
	int rc = 0;

	assert(adding->piece->block_first <= adding->piece->block_end);
	assert(adding->piece->block_end <= adding->in->blocks_count);
	arena_init(&piece->counters.arena, adding->work->limit_bytes);
	piece->counters.slots_count = adding->in->segment->slots_count;
	for (size_t i = piece->block_first; !rc && i < piece->block_end; i++) {
		rc = add_block(adding, adding->in->blocks[i]);
		if (piece->overflowed || piece->too_many)
			break;
	}
	return rc;
}

/* A step for a team. */
static int add_piece(void *context, struct work *work, size_t index, struct err *err)
{
	const struct adding_together *all = context;
	struct adding adding = { .selection = all->selection,
				 .in = all->in,
				 .work = work,
				 .piece = &all->pieces[index],
				 .mixed = all->mixed,
				 .wide = all->mixed,
				 .err = err };
	int rc = add_blocks(&adding);

	/* At most twice: wider counters, then sparse ones, which take any value. */
	while (!rc && (adding.piece->overflowed || adding.piece->too_many)) {
		adding.wide = true;
		adding.piece->is_sparse |= adding.piece->too_many;
		work->other_bytes -= dense_sums_bytes(adding.piece);
		dense_sums_drop(adding.piece);
		adding.run.count = 0;
		rc = add_blocks(&adding);
	}
	work->other_bytes -= dense_sums_bytes(adding.piece);
	return rc;
}

/* Sums of one group into the order of their nodes: place by place, or by comparing if few. */
static void order_by_node(struct accumulate_sum *sums, size_t count, uint32_t *places,
			  uint32_t nodes_count, struct accumulate_sum *copy)
{
	size_t kept = 0;

	assert(nodes_count > 0);
	for (size_t i = 0; i < count; i++)
		places[sums[i].stack] = (uint32_t)i + 1;
	for (uint32_t node = 0; node < nodes_count; node++) {
		if (!places[node])
			continue;
		copy[kept++] = sums[places[node] - 1];
		places[node] = 0;
	}
	memcpy(sums, copy, count * sizeof(*sums));
}

static int node_order(const void *left, const void *right)
{
	const struct accumulate_sum *a = left, *b = right;

	return (a->stack > b->stack) - (a->stack < b->stack);
}

void accumulate_rename(const struct segment *segment, struct accumulate_sums *sums)
{
	for (size_t i = 0; segment->node_of_slot && i < sums->count; i++)
		sums->list[i].stack = segment->node_of_slot[sums->list[i].stack];
}

bool accumulate_find_nodes(const struct segment *segment, struct arena *scratch,
			   struct accumulate_sums *sums)
{
	uint32_t nodes_count = segment->view.nodes_count;
	struct accumulate_sum *list = sums->list, *copy;
	uint32_t *places;

	assert(sums->list || !sums->count);
	if (!segment->node_of_slot || !sums->count)
		return true;
	places = arena_new_array(scratch, uint32_t, nodes_count);
	copy = arena_new_array(scratch, struct accumulate_sum, sums->count);
	if (!places || !copy)
		return false;
	accumulate_rename(segment, sums);
	for (size_t first = 0, end; first < sums->count; first = end) {
		for (end = first; end < sums->count && list[end].group == list[first].group;)
			end++;
		if ((end - first) * 32 < nodes_count)
			qsort(&list[first], end - first, sizeof(*list), node_order);
		else
			order_by_node(&list[first], end - first, places, nodes_count, copy);
	}
	return true;
}

/* True if selected series of the segment have different weights; else the one that all have. */
static bool weights_differ(const struct selection *selection, const struct select_segment *in,
			   int64_t *ret_weight)
{
	bool any = false;

	assert(in->series);
	*ret_weight = 1;
	for (uint32_t i = 0; selection->weighted && i < in->view->series_count; i++) {
		int64_t weight;

		if (in->series[i].id == SELECT_NONE)
			continue;
		weight = selection->series[in->series[i].id].weight;
		if (any && weight != *ret_weight)
			return true;
		*ret_weight = weight;
		any = true;
	}
	return false;
}

/* Blocks are dealt out evenly; they have about the same number of rows. */
static size_t cut_pieces(const struct work *work, const struct select_segment *in, bool together,
			 struct dense_sums_piece pieces[static PIECES_MAX])
{
	size_t count = 1;

	assert(in->blocks || !in->blocks_count);
	if (together && !in->by_rows) {
		count = team_size(work);
		if (count > in->rows_count / PIECE_ROWS)
			count = in->rows_count / PIECE_ROWS;
		if (count > in->blocks_count)
			count = in->blocks_count;
		if (count > PIECES_MAX)
			count = PIECES_MAX;
		if (!count)
			count = 1;
	}
	for (size_t i = 0; i < count; i++)
		pieces[i] = (struct dense_sums_piece){ .block_first = in->blocks_count * i / count,
						       .block_end =
							       in->blocks_count * (i + 1) / count };
	return count;
}

/* The counters of the only group; false when there are others, or of other kinds. */
static bool are_plain(const struct dense_sums_piece *pieces, size_t count,
		      struct accumulate_counters counters[static PIECES_MAX])
{
	assert(count >= 1 && count <= PIECES_MAX);
	for (size_t i = 0; i < count; i++) {
		const struct dense_sums_counters *of = &pieces[i].counters;

		if (pieces[i].is_sparse)
			return false;
		for (size_t group = 0; group < of->groups_capacity; group++)
			if (of->wide[group] || (group && (of->ones[group] || of->plain[group])))
				return false;
		counters[i] = (struct accumulate_counters){ 0 };
		if (of->groups_capacity)
			counters[i] = (struct accumulate_counters){ of->ones[0], of->plain[0] };
	}
	return true;
}

int accumulate_counts(struct selection *selection, struct work *work, struct select_segment *in,
		      bool together, accumulate_take_f *take, void *context, struct arena *into,
		      struct accumulate_sums *ret, struct err *err)
{
	struct accumulate_counters counters[PIECES_MAX];
	struct dense_sums_piece pieces[PIECES_MAX];
	struct adding_together all = { .selection = selection, .in = in, .pieces = pieces };
	struct accumulate_sums sums = { 0 };
	int64_t weight;
	size_t count;
	int rc;

	count = cut_pieces(work, in, together, pieces);
	all.mixed = weights_differ(selection, in, &weight);
	rc = team_run(work, count, count > 1 ? in->rows_count : 0, add_piece, &all, err);
	if (!rc && take && !all.mixed && are_plain(pieces, count, counters)) {
		rc = take(context, work, counters, count, weight, err);
		for (size_t i = 0; i < count; i++)
			sums.rows += pieces[i].rows;
	} else if (!rc && !dense_sums_collect(pieces, count, all.mixed ? 1 : weight,
					      selection->work->limit_bytes, into, &sums)) {
		rc = work_over_budget(selection->work, err);
	}
	work->stats.rows_read += sums.rows;
	for (size_t i = 0; i < count; i++)
		dense_sums_drop(&pieces[i]);
	if (!rc)
		*ret = sums;
	return rc;
}

int accumulate_segment(struct selection *selection, struct work *work, struct select_segment *in,
		       bool together, struct arena *into, struct accumulate_sums *ret,
		       struct err *err)
{
	return accumulate_counts(selection, work, in, together, NULL, NULL, into, ret, err);
}
