/* SPDX-License-Identifier: Apache-2.0 */
/* A table's share of the segments whose functions are indexed: neither nodes nor names are met. */
#include "server/query/shape/table_int.h"

#include <assert.h>

/* What the stacks of an occurrence have. */
static int64_t value_of(const struct indexed_sums *sums, const struct function_occurrence *at)
{
	return sums->before[at->end] - sums->before[at->first];
}

int table_indexed_bounds(struct table *table, struct err *err)
{
	for (size_t i = 0; i < table->indexed_count; i++) {
		const struct indexed_sums *sums = &table->indexed[i];
		int rc = work_tick(table->work, sums->index->flat_rows_count, err);

		for (uint32_t row = 0; !rc && row < sums->index->flat_rows_count; row++) {
			int64_t *counter;
			struct row_key key;
			uint64_t hash;

			if (!sums->flats[row])
				continue;
			key = function_index_key(sums->index, row, &hash);
			counter = bounds_counter(&table->bounds, hash);
			*counter = work_add(*counter, sums->flats[row]);
			if (!bounds_note(table, &key, hash, sums->flats[row]))
				return work_over_budget(table->work, err);
		}
		if (rc)
			return rc;
	}
	return 0;
}

/* A row that can be shown. When all are, those without a flat value too, if they have any. */
static bool take_row(struct table *table, const struct indexed_sums *sums, uint32_t row)
{
	struct function_occurrences list = function_index_of_row(sums->index, row);
	struct function_occurrence at;
	struct row_key key;
	uint64_t hash;
	int64_t flat = 0;
	bool any;
	uint32_t id;

	assert(row < sums->index->rows_count);
	if (row < sums->index->flat_rows_count)
		flat = sums->flats[row];
	any = flat;
	while (!any && !table->bounds.least && function_occurrences_next(&list, &at))
		any = value_of(sums, &at);
	if (!any)
		return true;
	key = function_index_key(sums->index, row, &hash);
	id = table_find_row(table, &key, hash);
	if (id == NO_ROW)
		return false;
	table->rows[id].flat = work_add(table->rows[id].flat, flat);
	return true;
}

/* The rows of an index whose hash falls into one counter: they are neighbours. */
static bool take_bucket(struct table *table, const struct indexed_sums *sums, uint64_t bucket)
{
	uint64_t hash = bucket << (64 - table->bounds.bits);
	uint32_t row = function_index_from(sums->index, hash);

	for (; row < sums->index->flat_rows_count; row++) {
		function_index_key(sums->index, row, &hash);
		if (hash >> (64 - table->bounds.bits) != bucket)
			break;
		if (!take_row(table, sums, row))
			return false;
	}
	return true;
}

/*
 * A row may have a little in each of many segments. What those have in all of them that are ahead
 * by what they have in one is a better bound.
 */
int table_indexed_refine(struct table *table, struct err *err)
{
	size_t left = 2 * table->bounds.largest_count;

	for (size_t i = 0; table->bounds.least && left && i < table->rows_count; i++) {
		struct table_row *row = &table->rows[i];
		int64_t sum = 0;
		int rc = work_tick(table->work, 16 * (uint32_t)table->indexed_count, err);

		if (rc)
			return rc;
		if (row->least < table->bounds.least)
			continue;
		left--;
		for (size_t at = 0; at < table->indexed_count; at++) {
			const struct indexed_sums *sums = &table->indexed[at];
			uint32_t found = function_index_find(sums->index, &row->key, row->hash);

			if (found < sums->index->flat_rows_count)
				sum = work_add(sum, sums->flats[found]);
		}
		row->least = sum > row->least ? sum : row->least;
	}
	return 0;
}

/* Rows are looked at one by one where they are few, most counters are high, or all are shown. */
static int take_all(struct table *table, struct err *err)
{
	for (size_t i = 0; i < table->indexed_count; i++) {
		const struct indexed_sums *sums = &table->indexed[i];
		uint32_t count = table->bounds.least ? sums->index->flat_rows_count
						     : sums->index->rows_count;
		int rc = work_tick(table->work, count, err);

		for (uint32_t row = 0; !rc && row < count; row++) {
			uint64_t hash;

			if (table->bounds.least && !sums->flats[row])
				continue;
			function_index_key(sums->index, row, &hash);
			if (table->bounds.least &&
			    *bounds_counter(&table->bounds, hash) < table->bounds.least)
				continue;
			if (!take_row(table, sums, row))
				return work_over_budget(table->work, err);
		}
		if (rc)
			return rc;
	}
	return 0;
}

int table_indexed_flats(struct table *table, struct err *err)
{
	int64_t least = table->bounds.least;
	size_t rows = 0, high = 0, buckets = (size_t)1 << table->bounds.bits;
	int rc = 0;

	for (size_t i = 0; i < table->indexed_count; i++)
		rows += table->indexed[i].index->flat_rows_count;
	for (size_t bucket = 0; rows > buckets && least && bucket < buckets; bucket++)
		high += table->bounds.most[bucket] >= least;
	if (rows <= buckets || !least || high * table->indexed_count > rows / 16)
		return take_all(table, err);
	for (uint64_t bucket = 0; !rc && high && bucket < buckets; bucket++) {
		if (table->bounds.most[bucket] < least)
			continue;
		high--;
		rc = work_tick(table->work, 16 * (uint32_t)table->indexed_count, err);
		for (size_t i = 0; !rc && i < table->indexed_count; i++)
			if (!take_bucket(table, &table->indexed[i], bucket))
				return work_over_budget(table->work, err);
	}
	return rc;
}

/* For each row that is shown, and each index in which it occurs. */
static int each_shown(struct table *table,
		      bool (*meet)(struct table *table, const struct indexed_sums *sums,
				   uint32_t row, struct function_occurrences *list),
		      struct err *err)
{
	for (size_t i = 0; i < table->indexed_count; i++) {
		const struct indexed_sums *sums = &table->indexed[i];

		for (size_t at = 0; at < table->shown_count; at++) {
			uint32_t id = table->shown[at];
			struct row_key key = table->rows[id].key;
			uint32_t row = function_index_find(sums->index, &key, table->rows[id].hash);
			struct function_occurrences list;
			int rc = work_tick(table->work, 16, err);

			if (rc)
				return rc;
			if (row == FUNCTION_INDEX_NONE)
				continue;
			list = function_index_of_row(sums->index, row);
			rc = work_tick(table->work, list.left, err);
			if (rc)
				return rc;
			if (!meet(table, sums, id, &list))
				return work_over_budget(table->work, err);
		}
	}
	return 0;
}

static bool meet_cum(struct table *table, const struct indexed_sums *sums, uint32_t row,
		     struct function_occurrences *list)
{
	struct function_occurrence at;
	struct sum sum = { .value = table->cums[row].value };

	while (function_occurrences_next(list, &at)) {
		int64_t value = value_of(sums, &at);

		table_add_once(&sum, at.first, at.end, value);
		table->rows[row].has_inlined |= at.inlined && value;
	}
	table->cums[row].value = sum.value;
	table->any_inlined |= table->rows[row].has_inlined;
	return true;
}

int table_indexed_cums(struct table *table, struct err *err)
{
	return each_shown(table, meet_cum, err);
}

static bool meet_callers(struct table *table, const struct indexed_sums *sums, uint32_t row,
			 struct function_occurrences *list)
{
	struct function_occurrence at;

	if (!table->rows[row].has_inlined)
		return true;
	while (function_occurrences_next(list, &at)) {
		uint32_t caller = NO_ROW;
		struct row_key key;
		uint64_t hash;

		if (!value_of(sums, &at))
			continue;
		if (at.caller != FUNCTION_INDEX_NONE) {
			key = function_index_key(sums->index, at.caller, &hash);
			caller = table_find_row(table, &key, hash);
			if (caller == NO_ROW)
				return false;
		}
		if (!table_meet_edge(table, caller, row, at.inlined, table->begin + at.first,
				     table->begin + at.end))
			return false;
	}
	return true;
}

int table_indexed_edges(struct table *table, struct err *err)
{
	const struct indexed_sums *all = table->indexed;
	size_t count = table->indexed_count;
	int rc = 0;

	/* One after the other, so that places of each lie behind those of all before. */
	for (size_t i = 0; !rc && i < count; i++) {
		table->indexed = &all[i];
		table->indexed_count = 1;
		rc = each_shown(table, meet_callers, err);
		table->begin += all[i].index->stacks_count;
	}
	table->indexed = all;
	table->indexed_count = count;
	return rc;
}

/* What one reason, or all together, costs; `item` as in function_index_of_item. */
static int64_t item_value(const struct indexed_sums *sums, uint32_t item)
{
	struct function_occurrences list = function_index_of_item(sums->index, item);
	struct function_occurrence at;
	int64_t value = 0;

	while (function_occurrences_next(&list, &at))
		value += value_of(sums, &at);
	return value;
}

int table_indexed_reasons(struct table *table, struct err *err)
{
	for (size_t i = 0; i < table->indexed_count; i++) {
		const struct indexed_sums *sums = &table->indexed[i];
		struct sum *sum;

		table->total = work_add(table->total, sums->before[sums->index->stacks_count]);
		for (uint32_t row = 0; row < sums->index->flat_rows_count; row++)
			if (sums->index->unnamed[row])
				table->unnamed_flat =
					work_add(table->unnamed_flat, sums->flats[row]);
		for (uint32_t item = 0; item <= sums->index->items_count; item++) {
			int64_t value = item_value(sums, item);
			uint32_t number = 0;
			int rc = work_tick(table->work, 64, err);

			if (rc)
				return rc;
			if (!value)
				continue;
			if (item)
				number = unresolved_add_item(&table->names->unresolved,
							     &sums->index->items[item - 1]);
			sum = number == IDMAP_NONE ? NULL : table_item(table, number);
			if (!sum)
				return work_over_budget(table->work, err);
			sum->value = work_add(sum->value, value);
		}
	}
	return 0;
}
