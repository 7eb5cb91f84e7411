/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/series_part.h"

#include <assert.h>

#include "base/hash.h"
#include "base/order/bisect.h"
#include "model/tables.h"
#include "server/query/query.h"

static uint64_t add_label(uint64_t id, struct slice name, struct slice value)
{
	if (!value.len || slice_starts_with(name, SLICE_LITERAL("__")))
		return id;
	return hash_stable(value.data, value.len, hash_stable(name.data, name.len, id));
}

uint64_t series_part_id(const struct query_series *series)
{
	uint64_t id = 0;

	assert(series->labels || !series->labels_count);
	for (size_t i = 0; i < series->labels_count; i++)
		id = add_label(id, series->labels[i].name, series->labels[i].value);
	return id;
}

static uint64_t id_of_set(const struct tables_view *view, const struct label_set *set)
{
	uint64_t id = 0;

	assert(set->label_first + set->label_count <= view->labels_count);
	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];

		id = add_label(id, tables_text(view, label->name), tables_text(view, label->value));
	}
	return id;
}

bool series_part_has(const struct series_part *part, const struct tables_view *view,
		     uint32_t label_set)
{
	uint64_t id = id_of_set(view, &view->label_sets[label_set]);
	size_t low = 0, high = part->ids_count;

	assert(label_set < view->label_sets_count);
	assert(!part->parts || part->part < part->parts);
	low = bisect(low, high, i, part->ids[i] < id);
	if (part->only)
		return low < part->ids_count && part->ids[low] == id;
	if (low == part->ids_count || part->ids[low] != id)
		return id % part->parts == part->part;
	return low * part->parts / part->ids_count == part->part;
}
