/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_pack - packs the split units (.dwo) that a program names into one package (.dwp) with the
 * sections that symbols need, for a server that lacks the files.
 *
 * The package has .debug_info, .debug_abbrev, .debug_str, .debug_str_offsets, .debug_rnglists and
 * the index of units, as DWARF 5, 7.3.5 (GNU's version 2 of it when all units are of DWARF 4).
 * Texts are not shared between units. For `firn debuginfo upload`: files are trusted as far as
 * libdw trusts them. One thread.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_SPLIT_PACK_H
#define FIRN_SERVER_RESOLVE_READ_SPLIT_PACK_H

#include <stddef.h>

#include "base/err.h"

/* What came of it. */
struct split_pack_report {
	size_t named;	/* units that the program has elsewhere */
	size_t missing; /* of these, in no file that could be found */
};

/*
 * Writes the package of the program or debug file `fd`, which lies at `path`, to `out_fd`, an empty
 * file. Without any unit found nothing is written. ERR_LIMIT when a section would have 4 GiB.
 */
int split_pack_write(int fd, const char *path, int out_fd, struct split_pack_report *ret,
		     struct err *err);

#endif
