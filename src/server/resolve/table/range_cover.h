/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range_cover - which of many overlapping ranges holds at each address.
 *
 * Ranges should nest, and the innermost counts. If two start together, the shorter is the inner
 * one; of equal ones, that with the higher value. A range that reaches beyond the range it starts
 * in is cut there.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_RANGE_COVER_H
#define FIRN_SERVER_RESOLVE_TABLE_RANGE_COVER_H

#include <stddef.h>
#include <stdint.h>

#define RANGE_NONE UINT32_MAX

/* value is valid in [low, high). */
struct address_range {
	uint64_t low, high;
	uint32_t value;
};

struct address_range_list { /* zero-initialised is empty and valid */
	struct address_range *items;
	size_t count, capacity;
};

void address_range_list_add(struct address_range_list *list, uint64_t low, uint64_t high,
			    uint32_t value);
void address_range_list_free(struct address_range_list *list);
void address_range_list_sort(struct address_range_list *list);

/* From here on, this value; RANGE_NONE where no range is. */
struct cover_entry {
	uint64_t start;
	uint32_t value;
};

struct range_cover {
	struct cover_entry *items; /* by rising start */
	size_t count, capacity;
};

/* Sorts the list and makes the cover anew; when it is not empty, its last entry is RANGE_NONE. */
void range_cover_make(struct range_cover *cover, struct address_range_list *list);
void range_cover_free(struct range_cover *cover);

/* The value at an address. */
uint32_t range_cover_find(const struct range_cover *cover, uint64_t address);

#endif
