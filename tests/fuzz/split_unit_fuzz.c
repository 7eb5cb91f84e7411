/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A package of split units (.dwp) from any bytes: its index, the unit put together from its parts,
 * and range lists. The first byte says which; 8 bytes of unit id follow for packages. Seeds are
 * packages of a small program by binutils' dwp (DWARF 4) and llvm-dwp (DWARF 5), and lists by hand.
 */
#include "server/resolve/read/split_unit.h"

#include <string.h>

#include "server/resolve/read/range_list.h"

#define DIES_MAX 1000
#define RANGES_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_package(const uint8_t *data, size_t size)
{
	static const uint8_t addresses[64];
	struct split_skeleton skeleton = { .name = SLICE_LITERAL("unit.dwo"),
					   .addresses = slice_from(addresses, sizeof(addresses)),
					   .is_dwarf_5 = true };
	struct split_places places = { .directory = NULL };
	struct split_unit unit;
	Dwarf_Die die;

	if (size < sizeof(skeleton.id))
		return;
	memcpy(&skeleton.id, data, sizeof(skeleton.id));
	elf_version(EV_CURRENT);
	places.package = elf_memory((char *)(uintptr_t)data + 8, size - 8);
	if (!places.package)
		return;
	if (!split_unit_open(&unit, &places, &skeleton, NULL)) {
		if (!dwarf_child(&unit.die, &die))
			for (int i = 0; i < DIES_MAX && !dwarf_siblingof(&die, &die); i++)
				dwarf_tag(&die);
		split_unit_close(&unit);
	}
	elf_end(places.package);
}

static void read_ranges(const uint8_t *data, size_t size, bool is_dwarf_5)
{
	struct range_list list = {
		.bytes = slice_from(data, size),
		.addresses = slice_from(data + size / 2, size - size / 2),
		.address_bytes = 8,
		.is_dwarf_5 = is_dwarf_5,
	};
	uint64_t low, high;
	size_t at;

	for (int i = 0; i < RANGES_MAX && range_list_next(&list, &low, &high); i++)
		;
	if (size && range_list_find(list.bytes, data[0], &at)) {
		list.at = at;
		range_list_next(&list, &low, &high);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] % 3 == 0)
		read_package(data + 1, size - 1);
	else
		read_ranges(data + 1, size - 1, data[0] % 3 == 1);
	return 0;
}
