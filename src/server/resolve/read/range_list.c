/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/range_list.h"

#include <dwarf.h>

#include "codec/elf/section_reader.h"

#define HEADER_BYTES 12u /* of .debug_rnglists: length, version, sizes, count of offsets */

static bool take(struct range_list *list, size_t bytes, uint64_t *ret)
{
	const uint8_t *p = (const uint8_t *)list->bytes.data + list->at;

	if (list->at > list->bytes.len || list->bytes.len - list->at < bytes)
		return false;
	*ret = bytes == 1 ? p[0] : bytes == 4 ? section_u32(p) : section_u64(p);
	list->at += bytes;
	return true;
}

static bool take_varint(struct range_list *list, uint64_t *ret)
{
	uint64_t value = 0, byte;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (!take(list, 1, &byte))
			return false;
		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

/* An address by its number. */
static bool take_index(struct range_list *list, uint64_t *ret)
{
	struct range_list table = { .bytes = list->addresses };
	uint64_t index;

	if (!take_varint(list, &index) || index > list->addresses.len / list->address_bytes)
		return false;
	table.at = (size_t)index * list->address_bytes;
	return take(&table, list->address_bytes, ret);
}

bool range_list_find(struct slice bytes, uint64_t index, size_t *ret_at)
{
	struct range_list table = { .bytes = bytes };
	uint64_t offset;

	if (index > bytes.len / 4)
		return false;
	table.at = HEADER_BYTES + (size_t)index * 4;
	if (!take(&table, 4, &offset) || offset > bytes.len)
		return false;
	*ret_at = HEADER_BYTES + (size_t)offset;
	return true;
}

static bool next_pair(struct range_list *list, uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t all_ones = list->address_bytes == 4 ? UINT32_MAX : UINT64_MAX;
	uint64_t low, high;

	while (take(list, list->address_bytes, &low) && take(list, list->address_bytes, &high)) {
		if (!low && !high)
			return false;
		if (low == all_ones) {
			list->base = high;
			continue;
		}
		*ret_low = list->base + low;
		*ret_high = list->base + high;
		return true;
	}
	return false;
}

/* Reads the operands of an entry that is a range. */
static bool take_range(struct range_list *list, uint64_t kind, uint64_t *ret_low,
		       uint64_t *ret_high)
{
	uint64_t low, high;
	bool is_read, is_length = kind == DW_RLE_startx_length || kind == DW_RLE_start_length;

	if (kind == DW_RLE_startx_endx || kind == DW_RLE_startx_length)
		is_read = take_index(list, &low);
	else if (kind == DW_RLE_offset_pair)
		is_read = take_varint(list, &low);
	else
		is_read = take(list, list->address_bytes, &low);
	if (!is_read)
		return false;
	if (kind == DW_RLE_startx_endx)
		is_read = take_index(list, &high);
	else if (kind == DW_RLE_start_end)
		is_read = take(list, list->address_bytes, &high);
	else
		is_read = take_varint(list, &high);
	if (kind == DW_RLE_offset_pair)
		low += list->base;
	*ret_low = low;
	*ret_high =
		is_length ? low + high : (kind == DW_RLE_offset_pair ? high + list->base : high);
	return is_read;
}

bool range_list_next(struct range_list *list, uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t kind;

	if (!list->is_dwarf_5)
		return next_pair(list, ret_low, ret_high);
	while (take(list, 1, &kind)) {
		switch (kind) {
		case DW_RLE_base_addressx:
			if (!take_index(list, &list->base))
				return false;
			break;
		case DW_RLE_base_address:
			if (!take(list, list->address_bytes, &list->base))
				return false;
			break;
		case DW_RLE_startx_endx:
		case DW_RLE_startx_length:
		case DW_RLE_offset_pair:
		case DW_RLE_start_end:
		case DW_RLE_start_length:
			return take_range(list, kind, ret_low, ret_high);
		default:
			return false;
		}
	}
	return false;
}
