/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/table/range_cover.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order/bisect.h"

void address_range_list_add(struct address_range_list *list, uint64_t low, uint64_t high,
			    uint32_t value)
{
	mem_grow(list->items, list->count, list->capacity);
	list->items[list->count++] = (struct address_range){ low, high, value };
}

void address_range_list_free(struct address_range_list *list)
{
	free(list->items);
	*list = (struct address_range_list){ 0 };
}

/* By start; of those that start together the longest first, then the one with the lower value. */
static int compare_ranges(const void *a, const void *b)
{
	const struct address_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

void address_range_list_sort(struct address_range_list *list)
{
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare_ranges);
}

/* Ranges nested in each other, being turned into a cover. */
struct flattener {
	struct range_cover *out;
	struct address_range *open; /* innermost last */
	size_t open_count, open_capacity;
	struct cover_entry last;
	bool has_last; /* not yet in the cover: a later one may start at the same address */
};

static void flatten_from(struct flattener *flat, uint64_t start, uint32_t value)
{
	struct range_cover *out = flat->out;

	if (flat->has_last && flat->last.start != start &&
	    (!out->count || out->items[out->count - 1].value != flat->last.value)) {
		mem_grow(out->items, out->count, out->capacity);
		out->items[out->count++] = flat->last;
	}
	flat->last = (struct cover_entry){ start, value };
	flat->has_last = true;
}

static void flatten_close(struct flattener *flat, uint64_t until)
{
	while (flat->open_count && flat->open[flat->open_count - 1].high <= until) {
		uint64_t end = flat->open[--flat->open_count].high;

		flatten_from(flat, end,
			     flat->open_count ? flat->open[flat->open_count - 1].value
					      : RANGE_NONE);
	}
}

void range_cover_make(struct range_cover *cover, struct address_range_list *list)
{
	struct flattener flat = { .out = cover };

	cover->count = 0;
	address_range_list_sort(list);
	for (size_t i = 0; i < list->count; i++) {
		struct address_range range = list->items[i];

		flatten_close(&flat, range.low);
		if (flat.open_count && range.high > flat.open[flat.open_count - 1].high)
			range.high = flat.open[flat.open_count - 1].high;
		flatten_from(&flat, range.low, range.value);
		mem_grow(flat.open, flat.open_count, flat.open_capacity);
		flat.open[flat.open_count++] = range;
	}
	flatten_close(&flat, UINT64_MAX);
	if (list->count)
		flatten_from(&flat, UINT64_MAX, RANGE_NONE);
	free(flat.open);
}

void range_cover_free(struct range_cover *cover)
{
	free(cover->items);
	*cover = (struct range_cover){ 0 };
}

uint32_t range_cover_find(const struct range_cover *cover, uint64_t address)
{
	size_t first = bisect(0, cover->count, i, cover->items[i].start <= address);

	return first ? cover->items[first - 1].value : RANGE_NONE;
}
