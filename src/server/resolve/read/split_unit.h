/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_unit - the DWARF of one compilation that was left in its .dwo file, or packed into a .dwp.
 *
 * libdw would open any path that the skeleton names, and reads no packages. So this opens the file,
 * and puts its sections (or the unit's parts of them) together with the unit's part of the
 * program's .debug_addr, as a file in memory that libdw takes for an ordinary one.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_SPLIT_UNIT_H
#define FIRN_SERVER_RESOLVE_READ_SPLIT_UNIT_H

#include <elfutils/libdw.h>

#include "base/err.h"
#include "base/slice.h"

/* Where split units are looked for. */
struct split_places {
	const char *directory; /* of the binary; NULL: .dwo files are not looked for */
	Elf *package;	       /* .dwp, or NULL */
};

/* What the skeleton in the program says. */
struct split_skeleton {
	uint64_t id;
	struct slice name, directory; /* of the .dwo; the second is that of the compilation */
	struct slice addresses;	      /* its part of .debug_addr */
	bool is_dwarf_5;
};

struct split_unit {
	Dwarf *dwarf;
	Dwarf_Die die;
	/* The unit's parts; all of .debug_str.dwo. */
	struct slice info, abbrev, str, str_offsets, ranges;
	Elf *file, *image;
	int fd; /* of the .dwo, or -1 */
};

/* ERR_NOT_FOUND when no file has the unit. The skeleton's addresses outlive the unit. */
int split_unit_open(struct split_unit *unit, const struct split_places *places,
		    const struct split_skeleton *skeleton, struct err *err);
void split_unit_close(struct split_unit *unit);

#endif
