/* SPDX-License-Identifier: Apache-2.0 */
/* The times of samples, and what they were taken for: tables.h. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/tables_int.h"

static bool link_equal(const void *context, uint32_t id, const void *key)
{
	const struct tables *tables = context;

	return !memcmp((const struct trace_link *)tables->links.data + id, key,
		       sizeof(struct trace_link));
}

uint32_t tables_link(struct tables *tables, const struct trace_link *link)
{
	static const struct trace_link none;
	uint64_t hash = hash_bytes(link, sizeof(*link));
	struct trace_link *place;
	uint32_t id;

	if (!memcmp(link, &none, sizeof(none)))
		return 0;
	id = idmap_find(&tables->link_map, hash, link_equal, tables, link);
	if (id != IDMAP_NONE)
		return id;
	place = vmarray_add(&tables->links, 1);
	if (!place)
		return TABLES_FULL;
	*place = *link;
	id = (uint32_t)(tables->links.count - 1);
	idmap_add(&tables->link_map, hash, id);
	return id;
}

static int moment_order(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->tick != b->tick)
		return a->tick < b->tick ? -1 : 1;
	return (a->link > b->link) - (a->link < b->link);
}

/* They mostly are in order: where each sample is a row. */
void tables_order_moments(struct moment *moments, size_t count)
{
	size_t sorted = 1;

	while (sorted < count && moment_order(&moments[sorted - 1], &moments[sorted]) <= 0)
		sorted++;
	if (sorted < count)
		qsort(moments, count, sizeof(*moments), moment_order);
}

static struct report *newest_report(const struct tables *tables)
{
	assert(tables->reports.count > 0);
	return (struct report *)tables->reports.data + tables->reports.count - 1;
}

/* Room for the moments of the newest report; NULL when there is none. */
static struct moment *add_moments(struct tables *tables, uint32_t count)
{
	struct report *report = newest_report(tables);
	struct moment *place;

	assert(!report->moment_count);
	if (vmarray_room(&tables->moments) < count)
		return NULL;
	place = vmarray_add(&tables->moments, count);
	if (place)
		report->moment_count = count;
	return place;
}

bool tables_moments(struct tables *tables, const struct moment *moments, uint32_t count)
{
	const struct report *report = newest_report(tables);
	struct moment *place = count ? add_moments(tables, count) : NULL;

	if (!place)
		return !count;
	for (uint32_t i = 0; i < count; i++) {
		assert(moments[i].row < report->row_count && moments[i].link < tables->links.count);
		assert(!i || moments[i].row > moments[i - 1].row ||
		       (moments[i].row == moments[i - 1].row &&
			moments[i].tick >= moments[i - 1].tick));
		place[i] = moments[i];
	}
	return true;
}

static uint32_t copy_link(struct tables_copy *copy, uint32_t id)
{
	if (!id)
		return 0;
	if (!copy->links) {
		copy->links = mem_realloc(NULL, copy->from.links_count, sizeof(*copy->links));
		memset(copy->links, 0xff, copy->from.links_count * sizeof(*copy->links));
	}
	if (copy->links[id] == TABLES_FULL)
		copy->links[id] = tables_link(copy->into, &copy->from.links[id]);
	return copy->links[id];
}

bool tables_copy_moments(struct tables_copy *copy, const struct report *report)
{
	struct moment *place =
		report->moment_count ? add_moments(copy->into, report->moment_count) : NULL;

	if (!place)
		return !report->moment_count;
	for (uint32_t i = 0; i < report->moment_count; i++) {
		place[i] = copy->from.moments[report->moment_first + i];
		place[i].link = copy_link(copy, place[i].link);
		if (place[i].link == TABLES_FULL)
			place[i].link = 0; /* the time is known all the same */
	}
	return true;
}
