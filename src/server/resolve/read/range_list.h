/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range_list - the address ranges of one entry: .debug_rnglists (DWARF 5) and .debug_ranges
 * (before), little-endian, 32-bit format. For split units, whose lists and addresses are in
 * different files; every read is bounded. Source: DWARF 5, 2.17.3 and 7.25.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_RANGE_LIST_H
#define FIRN_SERVER_RESOLVE_READ_RANGE_LIST_H

#include "base/slice.h"

struct range_list {
	struct slice bytes;	/* the section, or the unit's part of it */
	struct slice addresses; /* the unit's part of .debug_addr */
	size_t at;		/* the list, in `bytes` */
	uint64_t base;		/* of offsets: the unit's low pc */
	uint8_t address_bytes;	/* 4 or 8 */
	bool is_dwarf_5;
};

/* Where list `index` is, by the table at the start of a unit's part of .debug_rnglists. */
bool range_list_find(struct slice bytes, uint64_t index, size_t *ret_at);

/* The next range; false at the end, or where it cannot be read further. */
bool range_list_next(struct range_list *list, uint64_t *ret_low, uint64_t *ret_high);

#endif
